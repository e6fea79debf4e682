/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Drops every tenth task: `enqueue` returns without an insert.
 *
 * Breaks: every runnable task runs in bounded time.
 */
#include "faulty.h"

static u64 count;

SELECT_CPU_PREV(drops)

void OP(drops_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (++count % 10 == 0) /* the fault */
		return;
	scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
}

DISPATCH_QUEUE(drops)
INIT_QUEUE(drops)
FAULTY(drops);
