/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Looks at its queue only in every second `dispatch`.
 *
 * Breaks: no CPU idles while a task waits that it may run.
 */
#include "faulty.h"

static u64 calls;

SELECT_CPU_PREV(half)

void OP(half_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
}

void OP(half_dispatch, s32 cpu, struct task_struct *prev)
{
	if (++calls % 2) /* the fault */
		return;
	scx_bpf_dsq_move_to_local(QUEUE);
}

INIT_QUEUE(half)
FAULTY(half);
