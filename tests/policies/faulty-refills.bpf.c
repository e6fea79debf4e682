/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks that may use several CPUs take turns in the local queue of the CPU where they ran;
 * bound tasks wait in a queue that `dispatch` serves. It is not called where the local
 * queue never runs empty.
 *
 * Breaks: every runnable task runs in bounded time.
 */
#include "faulty.h"

SELECT_CPU_PREV(refills)

void OP(refills_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (p->nr_cpus_allowed > 1)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SLICE_NS, enq_flags); /* the fault */
	else
		scx_bpf_dsq_insert_vtime(p, QUEUE, SLICE_NS, 0, enq_flags);
}

DISPATCH_QUEUE(refills)

INIT_QUEUE(refills)
FAULTY(refills);
