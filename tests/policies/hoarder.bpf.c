/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Creates masks of CPUs without end, and forgets them. No verifier
 * takes it: it shows what becomes of a program that none has seen.
 */
#include <scx.h>

BPF_LICENSE();

/* Declared in full: a function is found by what its types are. */
struct bpf_cpumask {
	struct cpumask cpumask;
} __core;

__kfunc struct bpf_cpumask *bpf_cpumask_create(void);

s32 OP_SLEEPABLE(hoarder_init)
{
	u32 made = 0;

	while (made < 1 << 20 && bpf_cpumask_create())
		made++;
	bpf_printk("%d masks", made);
	return 0;
}

POLICY(hoarder_ops,
       .init	= (void *)hoarder_init,
       .name	= "hoarder");
