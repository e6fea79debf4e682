/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two parts of the machine that share nothing: tasks with odd numbers have the second half of
 * the CPUs, the others the first, and those that may not use all CPUs have the queue of the
 * first one that they may use.
 *
 * Bound: one round of the tasks of a part.
 */
#include "sound.h"

#define PART(n) (CPUS_MAX + (n))

static s32 nr_cpus;

static __always_inline s32 part_of(s32 cpu)
{
	return nr_cpus > 1 && cpu >= nr_cpus / 2;
}

SELECT_CPU_PREV(parts)

void OP(parts_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 part = nr_cpus > 1 && p->pid % 2;
	s32 cpu;

	if (p->nr_cpus_allowed < nr_cpus) {
		cpu = bpf_cpumask_first(p->cpus_ptr);
		scx_bpf_dsq_insert(p, cpu, SLICE_NS, enq_flags);
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
		return;
	}
	scx_bpf_dsq_insert(p, PART(part), SLICE_NS, enq_flags);
	for_each_number(cpu, 0, nr_cpus)
		if (part_of(cpu) == part)
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

void OP(parts_dispatch, s32 cpu, struct task_struct *prev)
{
	static u32 turns;

	if (turns++ % 2 && scx_bpf_dsq_move_to_local(cpu))
		return;
	if (!scx_bpf_dsq_move_to_local(PART(part_of(cpu))))
		scx_bpf_dsq_move_to_local(cpu);
}

s32 OP_SLEEPABLE(parts_init)
{
	s32 cpu;

	nr_cpus = scx_bpf_nr_cpu_ids();
	for_each_number(cpu, 0, nr_cpus)
		if (scx_bpf_create_dsq(cpu, -1))
			return -ENOMEM;
	return scx_bpf_create_dsq(PART(0), -1) ?: scx_bpf_create_dsq(PART(1), -1);
}

SOUND(parts, "none");
