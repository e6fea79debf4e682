/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Has a queue for each CPU, chooses one that the task may use, an idle one first, and
 * then wakes the CPU on which it decides this instead of the chosen one.
 *
 * Breaks: a runnable task runs at once while a CPU idles that it may use.
 */
#include "faulty.h"

SELECT_CPU_PREV(kicks_self)

void OP(kicks_self_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 cpu = scx_bpf_pick_any_cpu(p->cpus_ptr, 0);

	scx_bpf_dsq_insert(p, cpu, SLICE_NS, enq_flags);
	scx_bpf_kick_cpu(bpf_get_smp_processor_id(), SCX_KICK_IDLE); /* the fault */
}

void OP(kicks_self_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(cpu);
}

s32 OP_SLEEPABLE(kicks_self_init)
{
	s32 cpu, error;

	for_each_number(cpu, 0, scx_bpf_nr_cpu_ids()) {
		error = scx_bpf_create_dsq(cpu, -1);
		if (error)
			return error;
	}
	return 0;
}

FAULTY(kicks_self);
