/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps masks of CPUs inside its own data, as scx_lavd does: a verifier takes
 * any memory of the size of a `struct bpf_cpumask` for one, because it has
 * nothing but numbers in it. It prints what the kernel's functions make of
 * them.
 */
#include <scx.h>

BPF_LICENSE();

/* With room for 8,192 CPUs, as the kernels of distributions have it. */
struct bpf_cpumask {
	struct cpumask cpumask;
	u64 more[127];
	u32 usage;
};

__kfunc void bpf_cpumask_set_cpu(u32 cpu, struct bpf_cpumask *cpumask);
__kfunc void bpf_cpumask_clear_cpu(u32 cpu, struct bpf_cpumask *cpumask);
__kfunc bool bpf_cpumask_test_and_set_cpu(u32 cpu, struct bpf_cpumask *cpumask);
__kfunc void bpf_cpumask_setall(struct bpf_cpumask *cpumask);
__kfunc bool bpf_cpumask_and(struct bpf_cpumask *dst, const struct cpumask *a,
			     const struct cpumask *b);
__kfunc void bpf_cpumask_copy(struct bpf_cpumask *dst, const struct cpumask *src);
__kfunc void bpf_cpumask_release(struct bpf_cpumask *cpumask);

struct domain {
	u64 before;
	struct bpf_cpumask mask;
	u64 behind;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct domain);
} domains SEC(".maps");

struct domain whole = { .before = 1, .behind = 2 };

/* Nobody created the mask that is released: a kernel's verifier refuses that. */
const volatile bool release_it;

s32 OP_SLEEPABLE(embedded_init)
{
	u32 one = 1;
	struct domain *some = bpf_map_lookup_elem(&domains, &one);
	struct cpumask *all = (struct cpumask *)&whole.mask;

	if (!some)
		return -22;
	some->before = some->behind = ~0ULL;
	bpf_cpumask_setall(&whole.mask);
	bpf_cpumask_clear_cpu(2, &whole.mask);
	bpf_cpumask_set_cpu(2, &some->mask);
	bpf_cpumask_set_cpu(65, &some->mask);
	bpf_printk("again %d, both %d", bpf_cpumask_test_and_set_cpu(65, &some->mask),
		   bpf_cpumask_and(&some->mask, (struct cpumask *)&some->mask, all));
	bpf_printk("has %d, first %d, all %d", bpf_cpumask_weight((struct cpumask *)&some->mask),
		   bpf_cpumask_first((struct cpumask *)&some->mask), bpf_cpumask_weight(all));
	bpf_cpumask_copy(&some->mask, all);
	bpf_printk("has %d now", bpf_cpumask_weight((struct cpumask *)&some->mask));
	bpf_printk("around %d %d", some->before == ~0ULL && some->behind == ~0ULL,
		   whole.before == 1 && whole.behind == 2);
	if (release_it)
		bpf_cpumask_release(&whole.mask);
	return 0;
}

POLICY(embedded_ops,
       .init	= (void *)embedded_init,
       .name	= "embedded");
