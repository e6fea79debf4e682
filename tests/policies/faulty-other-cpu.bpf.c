/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Has a queue for each CPU and puts a task into that of the next one. A task that is
 * bound to its CPU is never taken there.
 *
 * Breaks: every runnable task runs in bounded time.
 */
#include "faulty.h"

SELECT_CPU_PREV(other_cpu)

void OP(other_cpu_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 next = (scx_bpf_task_cpu(p) + 1) % scx_bpf_nr_cpu_ids();

	scx_bpf_dsq_insert(p, next, SLICE_NS, enq_flags); /* the fault */
	scx_bpf_kick_cpu(next, SCX_KICK_IDLE);
}

void OP(other_cpu_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(cpu);
}

s32 OP_SLEEPABLE(other_cpu_init)
{
	s32 cpu, error;

	for_each_number(cpu, 0, scx_bpf_nr_cpu_ids()) {
		error = scx_bpf_create_dsq(cpu, -1);
		if (error)
			return error;
	}
	return 0;
}

FAULTY(other_cpu);
