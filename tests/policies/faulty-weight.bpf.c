/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Multiplies the time that a task has used by its weight where it must divide.
 *
 * Breaks: of two tasks that always want to run, the heavier one gets more.
 */
#include "faulty.h"

SELECT_CPU_PREV(weight)

void OP(weight_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert_vtime(p, QUEUE, SLICE_NS, p->scx.dsq_vtime, enq_flags); /* the fault */
}

DISPATCH_QUEUE(weight)

void OP(weight_stopping, struct task_struct *p, bool runnable)
{
	p->scx.dsq_vtime += (SLICE_NS - p->scx.slice) * p->scx.weight / 100;
}

INIT_QUEUE(weight)
FAULTY(weight, .stopping = (void *)weight_stopping);
