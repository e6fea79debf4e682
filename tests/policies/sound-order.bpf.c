/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One queue in the order of nice values, however long somebody waits, and a better task
 * that wakes displaces the one on its CPU.
 *
 * Bound: a task waits only while tasks of a better nice value, and one round of its own, run.
 */
#include "sound.h"

#define QUEUE 0

static u32 weights[CPUS_MAX];

SELECT_CPU_PREV(order)

void OP(order_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 cpu = scx_bpf_task_cpu(p);
	u64 vtime = (u64)(10000 - p->scx.weight) << 40 | (bpf_ktime_get_ns() >> 20);

	scx_bpf_dsq_insert_vtime(p, QUEUE, SLICE_NS, vtime, enq_flags);
	if (cpu < CPUS_MAX && (enq_flags & SCX_ENQ_WAKEUP) && weights[cpu] < p->scx.weight)
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	call_idle(p);
}

void OP(order_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(QUEUE);
}

void OP(order_running, struct task_struct *p)
{
	u32 cpu = scx_bpf_task_cpu(p);

	if (cpu < CPUS_MAX)
		weights[cpu] = p->scx.weight;
}

s32 OP_SLEEPABLE(order_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

SOUND(order, "rank", .running = (void *)order_running);
