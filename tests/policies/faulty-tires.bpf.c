/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Has a queue by vtime, in which tasks overtake each other, and stops to look at it
 * after two seconds.
 *
 * Breaks: every runnable task runs in bounded time.
 */
#include "faulty.h"

static u64 began;

SELECT_CPU_PREV(tires)

void OP(tires_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 key = bpf_ktime_get_ns() - (bpf_get_prandom_u32() & 0x3ffffff);

	scx_bpf_dsq_insert_vtime(p, QUEUE, SLICE_NS, key, enq_flags);
}

void OP(tires_dispatch, s32 cpu, struct task_struct *prev)
{
	if (bpf_ktime_get_ns() - began > 2 * NSEC_PER_SEC) /* the fault */
		return;
	scx_bpf_dsq_move_to_local(QUEUE);
}

s32 OP_SLEEPABLE(tires_init)
{
	began = bpf_ktime_get_ns();
	return scx_bpf_create_dsq(QUEUE, -1);
}

FAULTY(tires);
