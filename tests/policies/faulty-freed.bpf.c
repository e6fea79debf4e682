/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Frees what it knows of a task when the task stops, also when the task stays runnable,
 * and then does not know it any more.
 *
 * Breaks: every runnable task runs in bounded time.
 */
#include "faulty.h"

TASK_STORAGE(known, u32);

SELECT_CPU_PREV(freed)

void OP(freed_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 *own = bpf_task_storage_get(&known, p, NULL, 0);

	if (!own) /* the fault */
		return;
	scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
}

DISPATCH_QUEUE(freed)

void OP(freed_stopping, struct task_struct *p, bool runnable)
{
	bpf_task_storage_delete(&known, p);
}

s32 OP_SLEEPABLE(freed_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	return bpf_task_storage_get(&known, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE) ? 0 : -ENOMEM;
}

INIT_QUEUE(freed)
FAULTY(freed, .stopping = (void *)freed_stopping, .init_task = (void *)freed_init_task);
