/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Saves power: CPU n works for the shared queue only if more than 8 n tasks wait there. Tasks
 * that may not use all CPUs have the queue of the first one that they may use.
 *
 * Bound: one round of at most eight tasks for each CPU that works, then the next CPU comes;
 * and while a higher class has CPU 0, the time that it takes.
 */
#include "sound.h"

#define SHARED CPUS_MAX
#define EACH 8

static s32 nr_cpus;

SELECT_CPU_PREV(compact)

void OP(compact_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 cpu, last;

	if (p->nr_cpus_allowed < nr_cpus) {
		cpu = bpf_cpumask_first(p->cpus_ptr);
		scx_bpf_dsq_insert(p, cpu, SLICE_NS, enq_flags);
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
		return;
	}
	scx_bpf_dsq_insert(p, SHARED, SLICE_NS, enq_flags);
	last = min((u32)scx_bpf_dsq_nr_queued(SHARED) / EACH, (u32)nr_cpus - 1);
	for_each_number(cpu, 0, last + 1)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

void OP(compact_dispatch, s32 cpu, struct task_struct *prev)
{
	static u32 turns;

	/* Both queues have their turns, the own one first every other time. */
	if (turns++ % 2 && scx_bpf_dsq_move_to_local(cpu))
		return;
	if (scx_bpf_dsq_nr_queued(SHARED) >= cpu * EACH && scx_bpf_dsq_move_to_local(SHARED))
		return;
	scx_bpf_dsq_move_to_local(cpu);
}

s32 OP_SLEEPABLE(compact_init)
{
	s32 cpu;

	nr_cpus = scx_bpf_nr_cpu_ids();
	for_each_number(cpu, 0, nr_cpus)
		if (scx_bpf_create_dsq(cpu, -1))
			return -ENOMEM;
	return scx_bpf_create_dsq(SHARED, -1);
}

SOUND(compact, "none");
