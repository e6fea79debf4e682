/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Leaves by itself when the tenth task comes.
 *
 * Breaks: the policy stays until it is detached.
 */
#include "faulty.h"

static u64 seen;

SELECT_CPU_PREV(quits)

void OP(quits_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (__sync_fetch_and_add(&seen, 1) == 10)
		scx_bpf_exit(3, "too many"); /* the fault */
	scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
}

DISPATCH_QUEUE(quits)
INIT_QUEUE(quits)
FAULTY(quits);
