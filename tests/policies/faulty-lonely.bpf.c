/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Has a queue for each two CPUs. A CPU helps the others only if at least two tasks wait
 * there: a single one waits for its own CPUs, also while a higher class has both.
 *
 * Breaks: no CPU idles while a task waits that it may run.
 */
#include "faulty.h"

SELECT_CPU_PREV(lonely)

void OP(lonely_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 idle = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);

	scx_bpf_dsq_insert(p, (u32)scx_bpf_task_cpu(p) / 2, SLICE_NS, enq_flags);
	if (idle >= 0)
		scx_bpf_kick_cpu(idle, SCX_KICK_IDLE);
}

void OP(lonely_dispatch, s32 cpu, struct task_struct *prev)
{
	u64 own = (u32)cpu / 2, pairs = (scx_bpf_nr_cpu_ids() + 1) / 2, other;

	if (scx_bpf_dsq_move_to_local(own))
		return;
	for_each_number(other, 0, pairs) {
		if (scx_bpf_dsq_nr_queued(other) < 2) /* the fault */
			continue;
		if (scx_bpf_dsq_move_to_local(other))
			return;
	}
}

s32 OP_SLEEPABLE(lonely_init)
{
	s32 pair, error;

	for_each_number(pair, 0, (scx_bpf_nr_cpu_ids() + 1) / 2) {
		error = scx_bpf_create_dsq(pair, -1);
		if (error)
			return error;
	}
	return 0;
}

/* What is in the local queue of a CPU that a higher class takes is offered again. */
void OP(lonely_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	scx_bpf_reenqueue_local();
}

FAULTY(lonely, .cpu_release = (void *)lonely_cpu_release);
