/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * All tasks above nice 0 together may run for 100 ms in each 500 ms. The others go first.
 *
 * Bound: five rounds of these tasks, and the time that others take.
 */
#include "sound.h"

#define FREE 0
#define LIMITED 1
#define BUDGET_NS (100 * NSEC_PER_MSEC)

static s64 budget_ns = BUDGET_NS;

static __always_inline void refill(void)
{
	s32 cpu;

	budget_ns = BUDGET_NS;
	for_each_number(cpu, 0, min(scx_bpf_nr_cpu_ids(), CPUS_MAX))
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

TIMER(refill, 500 * NSEC_PER_MSEC)

SELECT_CPU_PREV(budget)

void OP(budget_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, p->scx.weight < 100 ? LIMITED : FREE, SLICE_NS, enq_flags);
	call_idle(p);
}

void OP(budget_dispatch, s32 cpu, struct task_struct *prev)
{
	if (scx_bpf_dsq_move_to_local(FREE) || budget_ns <= 0)
		return;
	scx_bpf_dsq_move_to_local(LIMITED);
}

void OP(budget_stopping, struct task_struct *p, bool runnable)
{
	s64 used = SLICE_NS - min(p->scx.slice, (u64)SLICE_NS);

	if (p->scx.weight < 100)
		__sync_fetch_and_add(&budget_ns, -used);
}

s32 OP_SLEEPABLE(budget_init)
{
	s32 error = scx_bpf_create_dsq(FREE, -1) ?: scx_bpf_create_dsq(LIMITED, -1);

	return error ?: refill_begins();
}

SOUND(budget, "none", .stopping = (void *)budget_stopping);
