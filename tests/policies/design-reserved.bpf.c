/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The last CPU is kept for tasks that may use no other, and for those with a nice value below 0.
 *
 * Keeps: a task waits for at most one slice of each. The last CPU idles beside those that it is
 * not for.
 */
#include "design.h"

#define RESERVED 1

SELECT_CPU_PREV(reserved)

static bool is_for(struct task_struct *p, s32 last)
{
	return p->static_prio < 120 ||
	       (p->nr_cpus_allowed == 1 && bpf_cpumask_test_cpu(last, p->cpus_ptr));
}

void OP(reserved_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 last = scx_bpf_nr_cpu_ids() - 1, cpu;

	if (last > 0 && is_for(p, last) && bpf_cpumask_test_cpu(last, p->cpus_ptr)) {
		scx_bpf_dsq_insert(p, RESERVED, SLICE_NS, enq_flags);
		tell_idle(p);
		return;
	}
	scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
	for (cpu = 0; cpu < 64; cpu++) {
		if (cpu >= max(last, 1))
			break;
		if (bpf_cpumask_test_cpu(cpu, p->cpus_ptr) &&
		    scx_bpf_test_and_clear_cpu_idle(cpu)) {
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
			break;
		}
	}
}

void OP(reserved_dispatch, s32 cpu, struct task_struct *prev)
{
	s32 last = scx_bpf_nr_cpu_ids() - 1;

	if (scx_bpf_dsq_move_to_local(RESERVED))
		return;
	if (cpu < last || !last)
		scx_bpf_dsq_move_to_local(QUEUE);
}

s32 OP_SLEEPABLE(reserved_init)
{
	return scx_bpf_create_dsq(QUEUE, -1) ?: scx_bpf_create_dsq(RESERVED, -1);
}

DESIGN(reserved);
