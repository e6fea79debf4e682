/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Puts tasks with an odd pid into a queue that `dispatch` does not know.
 *
 * Breaks: every runnable task runs in bounded time.
 */
#include "faulty.h"

#define FORGOTTEN 1

SELECT_CPU_PREV(unread)

void OP(unread_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 queue = p->pid & 1 ? FORGOTTEN : QUEUE;

	scx_bpf_dsq_insert(p, queue, SLICE_NS, enq_flags); /* the fault */
}

DISPATCH_QUEUE(unread)

s32 OP_SLEEPABLE(unread_init)
{
	return scx_bpf_create_dsq(QUEUE, -1) ?: scx_bpf_create_dsq(FORGOTTEN, -1);
}

FAULTY(unread);
