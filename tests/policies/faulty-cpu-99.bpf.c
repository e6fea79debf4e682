/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sends a task to CPU 99, which the machine does not have.
 *
 * Breaks: every CPU that is named exists.
 */
#include "faulty.h"

SELECT_CPU_PREV(cpu_99)

void OP(cpu_99_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | 99, SLICE_NS, enq_flags); /* the fault */
}

DISPATCH_QUEUE(cpu_99)
INIT_QUEUE(cpu_99)
FAULTY(cpu_99);
