/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps a CPU free for the task that has just gone to sleep there, as it may be back soon.
 * Nothing ends that, and a task that exits does not come back.
 *
 * Breaks: no CPU idles while a task waits that it may run.
 */
#include "faulty.h"

#define CPUS 64

/* By CPU: the pid of the task for which it is kept free; 0: none. */
static s32 awaited[CPUS];

SELECT_CPU_PREV(anticipates)

void OP(anticipates_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 cpu = (u32)scx_bpf_task_cpu(p) % CPUS;

	if (awaited[cpu] == p->pid)
		awaited[cpu] = 0;
	scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
}

void OP(anticipates_dispatch, s32 cpu, struct task_struct *prev)
{
	if (awaited[(u32)cpu % CPUS]) /* the fault */
		return;
	scx_bpf_dsq_move_to_local(QUEUE);
}

void OP(anticipates_stopping, struct task_struct *p, bool runnable)
{
	if (!runnable)
		awaited[(u32)scx_bpf_task_cpu(p) % CPUS] = p->pid;
}

INIT_QUEUE(anticipates)
FAULTY(anticipates, .stopping = (void *)anticipates_stopping);
