/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The earliest deadline first. A job's deadline is so long after it woke: 20 ms above nice 0,
 * 100 ms at 0, 2 s below. It keeps that until it sleeps, also when it is late.
 *
 * Bound: a task waits only while tasks with earlier deadlines run. In overload somebody is late.
 */
#include "sound.h"

#define QUEUE 0

SELECT_CPU_PREV(deadline)

void OP(deadline_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 ms = p->scx.weight > 100 ? 20 : p->scx.weight == 100 ? 100 : 2000;

	if ((enq_flags & SCX_ENQ_WAKEUP) || !p->scx.dsq_vtime)
		p->scx.dsq_vtime = bpf_ktime_get_ns() + ms * NSEC_PER_MSEC;
	scx_bpf_dsq_insert_vtime(p, QUEUE, SLICE_NS, p->scx.dsq_vtime, enq_flags);
	call_idle(p);
}

void OP(deadline_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(QUEUE);
}

s32 OP_SLEEPABLE(deadline_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

SOUND(deadline, "deadline");
