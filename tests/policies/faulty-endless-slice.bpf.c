/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Gives slices without end.
 *
 * Breaks: every runnable task runs in bounded time, once there are more of them than
 * CPUs.
 */
#include "faulty.h"

SELECT_CPU_PREV(endless_slice)

void OP(endless_slice_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, QUEUE, SCX_SLICE_INF, enq_flags); /* the fault */
}

DISPATCH_QUEUE(endless_slice)
INIT_QUEUE(endless_slice)
FAULTY(endless_slice);
