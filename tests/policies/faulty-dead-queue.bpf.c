/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Moves every fifth task on to a second queue, as a step that was once followed by a
 * look at that queue.
 *
 * Breaks: every runnable task runs in bounded time.
 */
#include "faulty.h"

#define OLD 1

static u64 count;

SELECT_CPU_PREV(dead_queue)

void OP(dead_queue_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
}

void OP(dead_queue_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_struct *p;

	for_each_queued(it, p, QUEUE, 0) {
		if (++count % 5 == 0)
			scx_bpf_dsq_move(&it, p, OLD, 0); /* the fault */
		break;
	}
	scx_bpf_dsq_move_to_local(QUEUE);
}

s32 OP_SLEEPABLE(dead_queue_init)
{
	return scx_bpf_create_dsq(QUEUE, -1) ?: scx_bpf_create_dsq(OLD, -1);
}

FAULTY(dead_queue);
