/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Last in, first out, as a cache likes it: who came last is the warmest.
 *
 * Keeps: no CPU idles beside a task that may use it.
 */
#include "design.h"

SELECT_CPU_PREV(lifo)

void OP(lifo_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags | SCX_ENQ_HEAD);
	tell_idle(p);
}

DISPATCH_QUEUE(lifo)
INIT_QUEUE(lifo)
DESIGN(lifo);
