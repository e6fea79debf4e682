/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The earliest deadline first, and a job that is late waits behind all that can be in time.
 *
 * Bound: a job runs in time, or when no job that can be in time wants its CPU.
 */
#include "sound.h"

#define TIMELY 0
#define LATE 1
#define PERIOD_NS (50 * NSEC_PER_MSEC)

SELECT_CPU_PREV(late)

void OP(late_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 now = bpf_ktime_get_ns();

	if ((enq_flags & SCX_ENQ_WAKEUP) || !p->scx.dsq_vtime)
		p->scx.dsq_vtime = now + PERIOD_NS;
	if (p->scx.dsq_vtime > now)
		scx_bpf_dsq_insert_vtime(p, TIMELY, SLICE_NS, p->scx.dsq_vtime, enq_flags);
	else
		scx_bpf_dsq_insert(p, LATE, SLICE_NS, enq_flags);
	call_idle(p);
}

void OP(late_dispatch, s32 cpu, struct task_struct *prev)
{
	if (!scx_bpf_dsq_move_to_local(TIMELY))
		scx_bpf_dsq_move_to_local(LATE);
}

s32 OP_SLEEPABLE(late_init)
{
	return scx_bpf_create_dsq(TIMELY, -1) ?: scx_bpf_create_dsq(LATE, -1);
}

SOUND(late, "deadline");
