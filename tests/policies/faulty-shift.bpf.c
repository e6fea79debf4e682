/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Doubles the slice for each hundred of a task's weight. That of nice -10 lasts for seconds,
 * that of nice -20 for ever.
 *
 * Breaks: every runnable task runs in bounded time.
 */
#include "faulty.h"

SELECT_CPU_PREV(shift)

void OP(shift_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 doublings = p->scx.weight / 100;
	u64 slice = doublings < 40 ? (u64)SLICE_NS << doublings : SCX_SLICE_INF;

	scx_bpf_dsq_insert(p, QUEUE, slice, enq_flags); /* the fault */
}

DISPATCH_QUEUE(shift)
INIT_QUEUE(shift)
FAULTY(shift);
