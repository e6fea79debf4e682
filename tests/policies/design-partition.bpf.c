/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two partitions of the machine: even and odd process numbers, even and odd CPUs. A task that may
 * use no CPU of its partition belongs to the other one.
 *
 * Keeps: within its partition a task waits for at most one slice of each. CPUs of the other one
 * idle beside it.
 */
#include "design.h"

SELECT_CPU_PREV(partition)

/* The partition of `p`. */
static u64 part_of(struct task_struct *p)
{
	u32 cpus = scx_bpf_nr_cpu_ids(), own = p->pid & 1;

	for (u32 cpu = 0; cpu < 64; cpu++)
		if (cpu < cpus && (cpu & 1) == own && bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			return own;
	return !own;
}

void OP(partition_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 cpus = scx_bpf_nr_cpu_ids();
	u64 part = part_of(p);

	scx_bpf_dsq_insert(p, part, SLICE_NS, enq_flags);
	for (u32 cpu = 0; cpu < 64; cpu++) {
		if (cpu >= cpus || (cpu & 1) != part || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		if (scx_bpf_test_and_clear_cpu_idle(cpu)) {
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
			break;
		}
	}
}

void OP(partition_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(cpu & 1);
}

s32 OP_SLEEPABLE(partition_init)
{
	return scx_bpf_create_dsq(0, -1) ?: scx_bpf_create_dsq(1, -1);
}

DESIGN(partition);
