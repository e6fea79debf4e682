/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Has a queue for each CPU and chooses an idle CPU, which claims it. Then it kicks that CPU
 * only if it can claim it, and so never.
 *
 * Breaks: a runnable task runs at once while a CPU idles that it may use.
 */
#include "faulty.h"

SELECT_CPU_PREV(claims_twice)

void OP(claims_twice_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);

	if (cpu < 0)
		cpu = scx_bpf_task_cpu(p);
	scx_bpf_dsq_insert(p, cpu, SLICE_NS, enq_flags);
	if (scx_bpf_test_and_clear_cpu_idle(cpu)) /* the fault */
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

void OP(claims_twice_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(cpu);
}

s32 OP_SLEEPABLE(claims_twice_init)
{
	s32 cpu, error;

	for_each_number(cpu, 0, scx_bpf_nr_cpu_ids()) {
		error = scx_bpf_create_dsq(cpu, -1);
		if (error)
			return error;
	}
	return 0;
}

FAULTY(claims_twice);
