/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Three strict ranks: above nice 0, nice 0, below. A rank runs when none above it waits.
 *
 * Bound: a task waits only while tasks of higher rank, and one round of its own, run.
 */
#include "sound.h"

SELECT_CPU_PREV(rank)

void OP(rank_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 rank = p->scx.weight > 100 ? 0 : p->scx.weight == 100 ? 1 : 2;

	scx_bpf_dsq_insert(p, rank, SLICE_NS, enq_flags);
	call_idle(p);
}

void OP(rank_dispatch, s32 cpu, struct task_struct *prev)
{
	if (scx_bpf_dsq_move_to_local(0) || scx_bpf_dsq_move_to_local(1))
		return;
	scx_bpf_dsq_move_to_local(2);
}

s32 OP_SLEEPABLE(rank_init)
{
	return scx_bpf_create_dsq(0, -1) ?: scx_bpf_create_dsq(1, -1) ?: scx_bpf_create_dsq(2, -1);
}

SOUND(rank, "rank");
