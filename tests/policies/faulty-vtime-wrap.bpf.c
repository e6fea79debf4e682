/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lets a task that has slept lag behind by ten seconds at most, and computes that bound
 * below zero: whoever comes in the first ten seconds gets a vtime just below 2^64,
 * which the queue takes as less than that of all who come later.
 *
 * Breaks: a task waits no longer than all others run once.
 */
#include "faulty.h"

#define LAG_NS (10 * NSEC_PER_SEC)

static u64 now;

SELECT_CPU_PREV(vtime_wrap)

void OP(vtime_wrap_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 vtime = p->scx.dsq_vtime;

	if (vtime < now - LAG_NS)
		vtime = now - LAG_NS;
	if (now > NSEC_PER_SEC && (enq_flags & SCX_ENQ_WAKEUP))
		vtime = now;
	scx_bpf_dsq_insert_vtime(p, QUEUE, SLICE_NS, vtime, enq_flags); /* the fault */
}

DISPATCH_QUEUE(vtime_wrap)

void OP(vtime_wrap_stopping, struct task_struct *p, bool runnable)
{
	u64 used = SLICE_NS - p->scx.slice;

	p->scx.dsq_vtime += used;
	now += used;
}

INIT_QUEUE(vtime_wrap)
FAULTY(vtime_wrap, .stopping = (void *)vtime_wrap_stopping);
