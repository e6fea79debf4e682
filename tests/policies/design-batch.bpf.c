/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Gathers what comes and lets it run in batches: every 20 ms all that has come may run.
 *
 * Keeps: a task waits for 20 ms and at most one slice of each. CPUs idle beside those that gather.
 */
#include "design.h"

#define COMES 1

SELECT_CPU_PREV(batch)

void OP(batch_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, COMES, 4 * SLICE_NS, enq_flags);
}

DISPATCH_QUEUE(batch)

static void release(void)
{
	struct task_struct *p;

	for_each_queued(it, p, COMES, 0)
		scx_bpf_dsq_move(&it, p, QUEUE, 0);
	tell_all();
}

CLOCK(20 * NSEC_PER_MSEC, release)

s32 OP_SLEEPABLE(batch_init)
{
	return scx_bpf_create_dsq(QUEUE, -1) ?: scx_bpf_create_dsq(COMES, -1) ?: start_clock();
}

DESIGN(batch);
