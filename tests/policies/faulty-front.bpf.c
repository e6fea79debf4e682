/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Puts a task that wakes at the front of the queue, and one whose slice is over at the
 * back. As long as tasks wake often enough, no other one runs.
 *
 * Breaks: every runnable task runs in bounded time.
 */
#include "faulty.h"

SELECT_CPU_PREV(front)

void OP(front_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 head = enq_flags | SCX_ENQ_HEAD;

	if (enq_flags & SCX_ENQ_WAKEUP) {
		scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, head); /* the fault */
		scx_bpf_kick_cpu(scx_bpf_task_cpu(p), SCX_KICK_IDLE);
		return;
	}
	scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
}

DISPATCH_QUEUE(front)
INIT_QUEUE(front)
FAULTY(front);
