/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Asks for the last task of a CPU (`SCX_OPS_ENQ_LAST`) and puts it where no CPU looks.
 *
 * Breaks: every runnable task runs in bounded time.
 */
#include "faulty.h"

#define LAST 1

SELECT_CPU_PREV(last)

void OP(last_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 queue = enq_flags & SCX_ENQ_LAST ? LAST : QUEUE;

	scx_bpf_dsq_insert(p, queue, SLICE_NS, enq_flags); /* the fault */
}

DISPATCH_QUEUE(last)

s32 OP_SLEEPABLE(last_init)
{
	return scx_bpf_create_dsq(QUEUE, -1) ?: scx_bpf_create_dsq(LAST, -1);
}

FAULTY(last, .flags = SCX_OPS_ENQ_LAST);
