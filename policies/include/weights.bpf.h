/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Weights of nice levels and virtual run time, as every fair scheduler of Linux has
 * them since 2.6.24, and what its times are multiplied by on several CPUs.
 *
 * Source: kernel/sched/core.c (sched_prio_to_weight) and fair.c of Linux 6.18, and
 * of 5.10 the same.
 * Differs from the source: run time becomes virtual time by a division, where the
 * source multiplies by a rounded inverse.
 */
#ifndef RUNSLICE_WEIGHTS_BPF_H
#define RUNSLICE_WEIGHTS_BPF_H

#include <knobs.bpf.h>
#include <percpu.bpf.h>

/* queued.home of a task that counts in no queue. */
#define NOWHERE -1

#define NICE_0_WEIGHT 1024
#define IDLE_WEIGHT 3
#define BEST_PRIO 100
#define WORST_PRIO 139

/* sched_prio_to_weight, nice -20 to 19: 25 % between neighbours. */
static const u32 weights[WORST_PRIO - BEST_PRIO + 1] = {
	88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916,
	9548, 7620, 6100, 4904, 3906, 3121, 2501, 1991, 1586, 1277,
	1024, 820, 655, 526, 423, 335, 272, 215, 172, 137,
	110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
};

static u32 weight_of(struct task_struct *p)
{
	u32 at = p->static_prio - BEST_PRIO;

	if (p->policy == SCHED_IDLE)
		return IDLE_WEIGHT;
	return at < sizeof(weights) / sizeof(weights[0]) ? weights[at] : NICE_0_WEIGHT;
}

/* div_s64(): towards zero. */
static __always_inline s64 divide(s64 value, u64 by)
{
	return value < 0 ? -(s64)((u64)-value / by) : (s64)((u64)value / by);
}

/* calc_delta_fair(): run time as virtual time. */
static __always_inline u64 to_virtual(u64 ns, u32 weight)
{
	return ns * NICE_0_WEIGHT / max(weight, 1U);
}

/* get_update_sysctl_factor(): grows with the logarithm of the CPUs, up to 8 of them. */
static u32 scale_of_cpus(void)
{
	return 1 + (nr_cpus >= 2) + (nr_cpus >= 4) + (nr_cpus >= 8);
}

#endif /* RUNSLICE_WEIGHTS_BPF_H */
