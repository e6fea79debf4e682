/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Each task may run for 30 ms in each 300 ms, also where CPUs idle: nobody makes the machine hot.
 *
 * Bound: ten rounds.
 */
#include "sound.h"

#define QUEUE 0
#define SPENT 1
#define PURSE_NS (30 * NSEC_PER_MSEC)

struct purse {
	u64 period;
	u64 used_ns;
};

TASK_STORAGE(purses, struct purse);

static u64 period;

static __always_inline void pay(void)
{
	struct task_struct *p;
	s32 cpu;

	period++;
	for_each_queued(it, p, SPENT, 0)
		scx_bpf_dsq_move(&it, p, QUEUE, 0);
	for_each_number(cpu, 0, min(scx_bpf_nr_cpu_ids(), CPUS_MAX))
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

TIMER(pay, 300 * NSEC_PER_MSEC)

s32 OP_SLEEPABLE(purse_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	return bpf_task_storage_get(&purses, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE) ? 0 : -ENOMEM;
}

SELECT_CPU_PREV(purse)

void OP(purse_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct purse *purse = bpf_task_storage_get(&purses, p, NULL, 0);

	if (purse && purse->period == period && purse->used_ns >= PURSE_NS) {
		scx_bpf_dsq_insert(p, SPENT, SLICE_NS, enq_flags);
		return;
	}
	scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
	call_idle(p);
}

void OP(purse_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(QUEUE);
}

void OP(purse_stopping, struct task_struct *p, bool runnable)
{
	struct purse *purse = bpf_task_storage_get(&purses, p, NULL, 0);

	if (!purse)
		return;
	if (purse->period != period) {
		purse->period = period;
		purse->used_ns = 0;
	}
	purse->used_ns += SLICE_NS - min(p->scx.slice, (u64)SLICE_NS);
}

s32 OP_SLEEPABLE(purse_init)
{
	s32 error = scx_bpf_create_dsq(QUEUE, -1) ?: scx_bpf_create_dsq(SPENT, -1);

	return error ?: pay_begins();
}

SOUND(purse, "none", .init_task = (void *)purse_init_task, .stopping = (void *)purse_stopping);
