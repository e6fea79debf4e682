/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Takes short tasks first, without a bound on how long the others wait. Their stream
 * never ends.
 *
 * Breaks: every runnable task runs in bounded time.
 */
#include "faulty.h"

#define SHORT 1

SELECT_CPU_PREV(stream)

void OP(stream_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (p->static_prio < 120)
		scx_bpf_dsq_insert(p, SHORT, SLICE_NS, enq_flags);
	else
		scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
}

void OP(stream_dispatch, s32 cpu, struct task_struct *prev)
{
	if (scx_bpf_dsq_move_to_local(SHORT)) /* the fault */
		return;
	scx_bpf_dsq_move_to_local(QUEUE);
}

s32 OP_SLEEPABLE(stream_init)
{
	return scx_bpf_create_dsq(QUEUE, -1) ?: scx_bpf_create_dsq(SHORT, -1);
}

FAULTY(stream);
