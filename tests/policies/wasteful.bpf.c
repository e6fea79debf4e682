/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Wastes CPU time in two ways: only CPUs 0 and 1 ever work, and whoever wakes preempts one of
 * them.
 */
#include "sound.h"

#define SHARED 0
#define WORKING 2

SELECT_CPU_PREV(wasteful)

void OP(wasteful_enqueue, struct task_struct *p, u64 enq_flags)
{
	static u32 turns;

	scx_bpf_dsq_insert(p, SHARED, SLICE_NS, enq_flags);
	if (enq_flags & SCX_ENQ_WAKEUP)
		scx_bpf_kick_cpu(turns++ % WORKING, SCX_KICK_PREEMPT);
}

void OP(wasteful_dispatch, s32 cpu, struct task_struct *prev)
{
	if (cpu < WORKING)
		scx_bpf_dsq_move_to_local(SHARED);
}

s32 OP_SLEEPABLE(wasteful_init)
{
	return scx_bpf_create_dsq(SHARED, -1);
}

SOUND(wasteful, "none");
