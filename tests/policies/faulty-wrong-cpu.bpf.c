/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sends every task to the CPU after its own, whether or not it may run there.
 *
 * Breaks: no task is sent to a CPU outside its affinity.
 */
#include "faulty.h"

SELECT_CPU_PREV(wrong_cpu)

void OP(wrong_cpu_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 next = (scx_bpf_task_cpu(p) + 1) % scx_bpf_nr_cpu_ids();

	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | next, SLICE_NS, enq_flags); /* the fault */
}

DISPATCH_QUEUE(wrong_cpu)
INIT_QUEUE(wrong_cpu)
FAULTY(wrong_cpu);
