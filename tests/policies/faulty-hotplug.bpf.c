/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Has a queue for each CPU, and leaves the tasks in that of a CPU which goes offline.
 *
 * Breaks: every runnable task runs in bounded time.
 */
#include "faulty.h"

SELECT_CPU_PREV(hotplug)

void OP(hotplug_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, scx_bpf_task_cpu(p), SLICE_NS, enq_flags); /* the fault */
}

void OP(hotplug_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(cpu);
}

void OP_SLEEPABLE(hotplug_cpu_online, s32 cpu)
{
}

void OP_SLEEPABLE(hotplug_cpu_offline, s32 cpu)
{
}

s32 OP_SLEEPABLE(hotplug_init)
{
	s32 cpu, error;

	for_each_number(cpu, 0, scx_bpf_nr_cpu_ids()) {
		error = scx_bpf_create_dsq(cpu, -1);
		if (error)
			return error;
	}
	return 0;
}

FAULTY(hotplug,
       .cpu_online	= (void *)hotplug_cpu_online,
       .cpu_offline	= (void *)hotplug_cpu_offline);
