/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Background tasks (nice above 0) that may use all CPUs have the last one only, so that the
 * others stay free for the foreground.
 *
 * Bound: one round of all tasks that may use the last CPU.
 */
#include "sound.h"

#define FRONT CPUS_MAX

static s32 nr_cpus;

SELECT_CPU_PREV(corner)

void OP(corner_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 cpu = -1;

	if (p->nr_cpus_allowed < nr_cpus)
		cpu = bpf_cpumask_first(p->cpus_ptr);
	else if (p->scx.weight < 100)
		cpu = nr_cpus - 1;
	if (cpu >= 0) {
		scx_bpf_dsq_insert(p, cpu, SLICE_NS, enq_flags);
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
		return;
	}
	scx_bpf_dsq_insert(p, FRONT, SLICE_NS, enq_flags);
	call_idle(p);
}

void OP(corner_dispatch, s32 cpu, struct task_struct *prev)
{
	static u32 turns;

	if (turns++ % 2 && scx_bpf_dsq_move_to_local(cpu))
		return;
	if (!scx_bpf_dsq_move_to_local(FRONT))
		scx_bpf_dsq_move_to_local(cpu);
}

s32 OP_SLEEPABLE(corner_init)
{
	s32 cpu;

	nr_cpus = scx_bpf_nr_cpu_ids();
	for_each_number(cpu, 0, nr_cpus)
		if (scx_bpf_create_dsq(cpu, -1))
			return -ENOMEM;
	return scx_bpf_create_dsq(FRONT, -1);
}

SOUND(corner, "none");
