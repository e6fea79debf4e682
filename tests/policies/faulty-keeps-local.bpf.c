/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Puts each task into the local queue of the CPU where it was, and does not take it back
 * when a higher class takes that CPU: others idle, and the task waits.
 *
 * Breaks: no CPU idles while a task waits that it may run.
 */
#include "faulty.h"

SELECT_CPU_PREV(keeps_local)

void OP(keeps_local_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SLICE_NS, enq_flags); /* the fault */
}

DISPATCH_QUEUE(keeps_local)

INIT_QUEUE(keeps_local)
FAULTY(keeps_local);
