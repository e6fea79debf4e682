/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps the pids of waiting tasks in a ring that has room for 32, and does not look
 * whether the place is free: the 33rd task overwrites the first.
 *
 * Breaks: every runnable task runs in bounded time.
 */
#include "faulty.h"

#define ROOM 32

static s32 ring[ROOM];
static u32 in, out;

SELECT_CPU_PREV(ring)

void OP(ring_enqueue, struct task_struct *p, u64 enq_flags)
{
	ring[in++ % ROOM] = p->pid; /* the fault */
}

void OP(ring_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_struct *p;

	if (in == out)
		return;
	p = bpf_task_from_pid(ring[out++ % ROOM]);
	if (!p)
		return;
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SLICE_NS, 0);
	bpf_task_release(p);
}

INIT_QUEUE(ring)
FAULTY(ring);
