/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Charges a task's vtime in microseconds and the clock of all tasks in nanoseconds.
 * Whoever sleeps is lifted to the clock, and does not get behind those who never do.
 *
 * Breaks: a task waits no longer than all others run once.
 */
#include "faulty.h"

static u64 now;

SELECT_CPU_PREV(vtime_unit)

void OP(vtime_unit_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (enq_flags & SCX_ENQ_WAKEUP)
		p->scx.dsq_vtime = max(p->scx.dsq_vtime, now);
	scx_bpf_dsq_insert_vtime(p, QUEUE, SLICE_NS, p->scx.dsq_vtime, enq_flags); /* the fault */
}

DISPATCH_QUEUE(vtime_unit)

void OP(vtime_unit_stopping, struct task_struct *p, bool runnable)
{
	u64 used = SLICE_NS - p->scx.slice;

	p->scx.dsq_vtime += used / NSEC_PER_USEC;
	now += used;
}

INIT_QUEUE(vtime_unit)
FAULTY(vtime_unit, .stopping = (void *)vtime_unit_stopping);
