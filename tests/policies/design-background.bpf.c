/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two classes of tasks: those with a nice value above 0, and batch and idle tasks, run only while
 * no other waits.
 *
 * Keeps: no CPU idles beside a task that may use it. Among the others a task waits for at most one
 * slice of each.
 */
#include "design.h"

#define BACKGROUND 1

SELECT_CPU_PREV(background)

static bool is_background(struct task_struct *p)
{
	return p->static_prio > 120 || p->policy == SCHED_BATCH || p->policy == SCHED_IDLE;
}

void OP(background_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, is_background(p) ? BACKGROUND : QUEUE, SLICE_NS, enq_flags);
	tell_idle(p);
}

void OP(background_dispatch, s32 cpu, struct task_struct *prev)
{
	if (!scx_bpf_dsq_move_to_local(QUEUE))
		scx_bpf_dsq_move_to_local(BACKGROUND);
}

s32 OP_SLEEPABLE(background_init)
{
	return scx_bpf_create_dsq(QUEUE, -1) ?: scx_bpf_create_dsq(BACKGROUND, -1);
}

DESIGN(background);
