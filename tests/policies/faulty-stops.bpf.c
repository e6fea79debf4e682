/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * `dispatch` gives up after two seconds and looks at nothing any more.
 *
 * Breaks: every runnable task runs in bounded time.
 */
#include "faulty.h"

static u64 began;

SELECT_CPU_PREV(stops)

void OP(stops_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
}

void OP(stops_dispatch, s32 cpu, struct task_struct *prev)
{
	if (bpf_ktime_get_ns() - began > 2 * NSEC_PER_SEC) /* the fault */
		return;
	scx_bpf_dsq_move_to_local(QUEUE);
}

s32 OP_SLEEPABLE(stops_init)
{
	began = bpf_ktime_get_ns();
	return scx_bpf_create_dsq(QUEUE, -1);
}

FAULTY(stops);
