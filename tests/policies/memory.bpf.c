/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Looks at the kernel's memory where policies may: run queues by the address
 * of the variable, and a mask of CPUs filled from words. It prints what it
 * finds.
 */
#include <scx.h>

BPF_LICENSE();

/* Declared in full: a function is found by what its types are. */
struct bpf_cpumask {
	struct cpumask cpumask;
} __core;

extern const struct rq runqueues __ksym;

static void *(*const bpf_per_cpu_ptr)(const void *variable, u32 cpu) = (void *)153;
static void *(*const bpf_this_cpu_ptr)(const void *variable) = (void *)154;

__kfunc struct bpf_cpumask *bpf_cpumask_create(void);
__kfunc void bpf_cpumask_release(struct bpf_cpumask *cpumask);
__kfunc int bpf_cpumask_populate(struct cpumask *cpumask, void *src, unsigned long src__sz);
__kfunc struct rq *scx_bpf_cpu_rq(s32 cpu);

struct rq___curr {
	int cpu;
	struct task_struct *curr;
} __core;

u64 words[4] = { 0x8000000000000005, 0xffffffffffffff03, 0, 0 };

static __always_inline void masks(void)
{
	struct bpf_cpumask *own = bpf_cpumask_create();
	struct cpumask *mask = (struct cpumask *)own;
	s32 none, one, both;

	if (!own)
		return;
	none = bpf_cpumask_populate(mask, words, 7);
	one = bpf_cpumask_populate(mask, words, 8);
	both = bpf_cpumask_populate(mask, words, 16);
	bpf_printk("populate %d %d %d", none, one, both);
	bpf_printk("has %d, first %d", bpf_cpumask_weight(mask), bpf_cpumask_first(mask));
	bpf_printk("bits %d %d %d", bpf_cpumask_test_cpu(1, mask), bpf_cpumask_test_cpu(2, mask),
		   bpf_cpumask_test_cpu(65, mask));
	bpf_cpumask_release(own);
}

s32 OP_SLEEPABLE(memory_init)
{
	masks();
	return 0;
}

void OP(memory_running, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p), other = cpu ? 0 : 1;
	struct rq___curr *own = bpf_this_cpu_ptr(&runqueues);
	struct rq___curr *same = bpf_per_cpu_ptr(&runqueues, cpu);
	struct rq___curr *next = bpf_per_cpu_ptr(&runqueues, other);
	void *beyond = bpf_per_cpu_ptr(&runqueues, 4096);

	if (!same || !next)
		return;
	bpf_printk("cpu %d: own %d, other %d", cpu, own->cpu, next->cpu);
	bpf_printk("same %d %d, beyond %d", own == same,
		   (void *)same == (void *)scx_bpf_cpu_rq(cpu), beyond != NULL);
	bpf_printk("runs %d, there %d", same->curr->pid == p->pid, next->curr->pid);
}

POLICY(memory_ops,
       .running	= (void *)memory_running,
       .init	= (void *)memory_init,
       .name	= "memory");
