/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Looks only at the first task of the queue, and leaves if that may not run here: one
 * that is bound to a busy CPU hides all others.
 *
 * Breaks: no CPU idles while a task waits that it may run.
 */
#include "faulty.h"

SELECT_CPU_PREV(head)

void OP(head_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
	scx_bpf_kick_cpu(scx_bpf_pick_any_cpu(p->cpus_ptr, 0), SCX_KICK_IDLE);
}

void OP(head_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_struct *p;

	for_each_queued(it, p, QUEUE, 0) {
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr)) /* the fault */
			return;
		scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL_ON | cpu, 0);
		return;
	}
}

INIT_QUEUE(head)
FAULTY(head);
