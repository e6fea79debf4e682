/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks of a nice value above 0 wait behind a gate, which is open for 50 ms of each 500 ms.
 */
#include "design.h"

POLICY_RIGHT("none");

#define GATED 1

static u64 ticks;
static bool is_open;

static void turn_gate(void)
{
	is_open = ++ticks % 10 == 0;
	if (is_open)
		tell_all();
}

CLOCK(50 * NSEC_PER_MSEC, turn_gate)

SELECT_CPU_PREV(gated)

void OP(gated_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, p->static_prio > 120 ? GATED : QUEUE, SLICE_NS, enq_flags);
	tell_idle(p);
}

void OP(gated_dispatch, s32 cpu, struct task_struct *prev)
{
	if (is_open && scx_bpf_dsq_move_to_local(GATED))
		return;
	scx_bpf_dsq_move_to_local(QUEUE);
}

s32 OP_SLEEPABLE(gated_init)
{
	s32 error = scx_bpf_create_dsq(QUEUE, -1);

	if (!error)
		error = scx_bpf_create_dsq(GATED, -1);
	return error ?: start_clock();
}

DESIGN(gated);
