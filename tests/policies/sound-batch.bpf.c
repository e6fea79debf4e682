/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Gathers tasks, and lets them go together every 400 ms, so that CPUs can sleep deeply between.
 *
 * Bound: 400 ms, and one round of the tasks that were gathered.
 */
#include "sound.h"

#define GATHERED 0
#define QUEUE 1

static __always_inline void let_go(void)
{
	struct task_struct *p;
	s32 cpu;

	for_each_queued(it, p, GATHERED, 0)
		scx_bpf_dsq_move(&it, p, QUEUE, 0);
	for_each_number(cpu, 0, min(scx_bpf_nr_cpu_ids(), CPUS_MAX))
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

TIMER(let_go, 400 * NSEC_PER_MSEC)

SELECT_CPU_PREV(batch)

void OP(batch_enqueue, struct task_struct *p, u64 enq_flags)
{
	/* Who has been let go runs until it sleeps. */
	if (enq_flags & SCX_ENQ_WAKEUP)
		scx_bpf_dsq_insert(p, GATHERED, SLICE_NS, enq_flags);
	else
		scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
}

void OP(batch_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(QUEUE);
}

s32 OP_SLEEPABLE(batch_init)
{
	s32 error = scx_bpf_create_dsq(GATHERED, -1) ?: scx_bpf_create_dsq(QUEUE, -1);

	return error ?: let_go_begins();
}

SOUND(batch, "none");
