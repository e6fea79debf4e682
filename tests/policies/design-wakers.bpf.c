/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whoever wakes goes before whoever has used its slice up, strictly: for a machine whose work is
 * answers.
 *
 * Keeps: no CPU idles beside a task that may use it.
 */
#include "design.h"

#define SLOW 1

SELECT_CPU_PREV(wakers)

void OP(wakers_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, enq_flags & SCX_ENQ_WAKEUP ? QUEUE : SLOW, SLICE_NS, enq_flags);
	tell_idle(p);
}

void OP(wakers_dispatch, s32 cpu, struct task_struct *prev)
{
	if (!scx_bpf_dsq_move_to_local(QUEUE))
		scx_bpf_dsq_move_to_local(SLOW);
}

s32 OP_SLEEPABLE(wakers_init)
{
	return scx_bpf_create_dsq(QUEUE, -1) ?: scx_bpf_create_dsq(SLOW, -1);
}

DESIGN(wakers);
