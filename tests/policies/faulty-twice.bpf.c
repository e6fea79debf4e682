/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inserts a task a second time when its pid is a multiple of three.
 *
 * Breaks: a callback inserts a task once.
 */
#include "faulty.h"

SELECT_CPU_PREV(twice)

void OP(twice_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
	if ((u32)p->pid % 3 == 0)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SLICE_NS, enq_flags); /* the fault */
}

DISPATCH_QUEUE(twice)
INIT_QUEUE(twice)
FAULTY(twice);
