/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shortest job first: the task that ran least before it slept last goes first. Who never
 * slept has a burst that grows.
 *
 * Bound: a task waits only while tasks with shorter bursts run.
 */
#include "sound.h"

#define QUEUE 0

struct burst {
	u64 last_ns;
	u64 now_ns;
};

TASK_STORAGE(bursts, struct burst);

s32 OP_SLEEPABLE(shortest_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	return bpf_task_storage_get(&bursts, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE) ? 0 : -ENOMEM;
}

SELECT_CPU_PREV(shortest)

void OP(shortest_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct burst *burst = bpf_task_storage_get(&bursts, p, NULL, 0);

	scx_bpf_dsq_insert_vtime(p, QUEUE, SLICE_NS, burst ? burst->last_ns : 0, enq_flags);
	call_idle(p);
}

void OP(shortest_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(QUEUE);
}

void OP(shortest_stopping, struct task_struct *p, bool runnable)
{
	struct burst *burst = bpf_task_storage_get(&bursts, p, NULL, 0);

	if (!burst)
		return;
	burst->now_ns += SLICE_NS - min(p->scx.slice, (u64)SLICE_NS);
	burst->last_ns = max(burst->last_ns / 2, burst->now_ns);
	if (!runnable)
		burst->now_ns = 0;
}

s32 OP_SLEEPABLE(shortest_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

SOUND(shortest, "rank", .init_task = (void *)shortest_init_task,
      .stopping = (void *)shortest_stopping);
