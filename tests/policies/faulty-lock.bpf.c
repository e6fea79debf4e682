/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * `dispatch` takes a lock, for which it spins a while and then gives up, and does not
 * give it back where the queue is empty.
 *
 * Breaks: every runnable task runs in bounded time.
 */
#include "faulty.h"

static u64 locked;

SELECT_CPU_PREV(lock)

void OP(lock_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
}

void OP(lock_dispatch, s32 cpu, struct task_struct *prev)
{
	s32 turn;

	for_each_number(turn, 0, 1000) { /* the fault */
		if (__sync_lock_test_and_set(&locked, 1)) /* the fault */
			continue;
		if (!scx_bpf_dsq_move_to_local(QUEUE))
			return;
		__sync_lock_test_and_set(&locked, 0);
		return;
	}
}

INIT_QUEUE(lock)
FAULTY(lock);
