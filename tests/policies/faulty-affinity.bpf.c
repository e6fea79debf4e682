/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Remembers which tasks it has queued, so that it queues none twice, and forgets that
 * only when a task runs. A change of its affinity takes a queued task out and offers it
 * again.
 *
 * Breaks: every runnable task runs in bounded time.
 */
#include "faulty.h"

TASK_STORAGE(queued, u32);

SELECT_CPU_PREV(affinity)

void OP(affinity_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 *is_queued = bpf_task_storage_get(&queued, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (is_queued && *is_queued) /* the fault */
		return;
	if (is_queued)
		*is_queued = 1;
	scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
}

DISPATCH_QUEUE(affinity)

void OP(affinity_running, struct task_struct *p)
{
	u32 *is_queued = bpf_task_storage_get(&queued, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (is_queued)
		*is_queued = 0;
}

INIT_QUEUE(affinity)
FAULTY(affinity, .running = (void *)affinity_running);
