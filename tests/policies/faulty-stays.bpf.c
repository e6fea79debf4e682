/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lets the running task go on as long as it wants to, and looks for another one only
 * when it sleeps.
 *
 * Breaks: every runnable task runs in bounded time.
 */
#include "faulty.h"

SELECT_CPU_PREV(stays)

void OP(stays_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
}

void OP(stays_dispatch, s32 cpu, struct task_struct *prev)
{
	if (prev && prev->scx.flags & SCX_TASK_QUEUED) {
		prev->scx.slice = SLICE_NS; /* the fault */
		return;
	}
	scx_bpf_dsq_move_to_local(QUEUE);
}

INIT_QUEUE(stays)
FAULTY(stays);
