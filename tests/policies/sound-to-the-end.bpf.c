/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Batch: the first that came has the CPU until it sleeps.
 *
 * Bound: a task waits only while tasks that came earlier have not slept.
 */
#include "sound.h"

#define QUEUE 0

SELECT_CPU_PREV(to_the_end)

void OP(to_the_end_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, QUEUE, SCX_SLICE_INF, enq_flags);
	call_idle(p);
}

void OP(to_the_end_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(QUEUE);
}

s32 OP_SLEEPABLE(to_the_end_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

SOUND(to_the_end, "none");
