/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * First come, first served: whoever has a CPU keeps it until it sleeps.
 *
 * What it shows: a long job makes all behind it wait (the convoy). A task that
 * never sleeps starves the others: on a kernel the watchdog then ends the policy.
 *
 * Source: Arpaci-Dusseau, "Operating Systems: Three Easy Pieces", chapter 7,
 * section "First In, First Out (FIFO)".
 * Differs from the source: several CPUs share the queue; a woken task takes an
 * idle CPU first.
 */
#include <lesson.bpf.h>

s32 OP(fcfs_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return take_idle(p, prev_cpu, wake_flags, SCX_SLICE_INF);
}

void OP(fcfs_enqueue, struct task_struct *p, u64 enq_flags)
{
	/* The order of arrival. */
	put(p, SCX_SLICE_INF, bpf_ktime_get_ns(), enq_flags);
}

void OP(fcfs_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(QUEUE);
}

LESSON(fcfs,
       .select_cpu	= (void *)fcfs_select_cpu,
       .enqueue		= (void *)fcfs_enqueue,
       .dispatch	= (void *)fcfs_dispatch);
