/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Takes the tasks back from a CPU that a real-time task takes, and drops them when they
 * are offered again.
 *
 * Breaks: every runnable task runs in bounded time.
 */
#include "faulty.h"

SELECT_CPU_PREV(real_time)

void OP(real_time_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (enq_flags & SCX_ENQ_REENQ) /* the fault */
		return;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SLICE_NS, enq_flags);
}

DISPATCH_QUEUE(real_time)

void OP(real_time_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	scx_bpf_reenqueue_local();
}

INIT_QUEUE(real_time)
FAULTY(real_time, .cpu_release = (void *)real_time_cpu_release);
