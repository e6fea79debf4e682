/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Has one queue for tasks that wake and one for those that go on, and looks at the
 * second only while the first is empty.
 *
 * Breaks: every runnable task runs in bounded time.
 */
#include "faulty.h"

#define GOES_ON 1

SELECT_CPU_PREV(wakers)

void OP(wakers_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, enq_flags & SCX_ENQ_WAKEUP ? QUEUE : GOES_ON, SLICE_NS, enq_flags);
}

void OP(wakers_dispatch, s32 cpu, struct task_struct *prev)
{
	u64 queue = scx_bpf_dsq_nr_queued(QUEUE) ? QUEUE : GOES_ON;

	scx_bpf_dsq_move_to_local(queue); /* the fault */
}

s32 OP_SLEEPABLE(wakers_init)
{
	return scx_bpf_create_dsq(QUEUE, -1) ?: scx_bpf_create_dsq(GOES_ON, -1);
}

FAULTY(wakers);
