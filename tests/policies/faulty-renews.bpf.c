/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Gives the running task a new slice at each tick, so that it never ends.
 *
 * Breaks: every runnable task runs in bounded time.
 */
#include "faulty.h"

SELECT_CPU_PREV(renews)

void OP(renews_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
}

DISPATCH_QUEUE(renews)

void OP(renews_tick, struct task_struct *p)
{
	p->scx.slice = SLICE_NS; /* the fault */
}

INIT_QUEUE(renews)
FAULTY(renews, .tick = (void *)renews_tick);
