/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Looks at its queue only where the clock does not stand at a whole millisecond, and gives a CPU
 * directly to a task that wakes while its CPU idles. Tasks that begin and end at whole
 * milliseconds starve whoever is in the queue, until anything at all shifts them.
 *
 * Breaks: every runnable task runs in bounded time.
 */
#include "faulty.h"

SELECT_CPU_PREV(resonates)

void OP(resonates_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (scx_bpf_test_and_clear_cpu_idle(scx_bpf_task_cpu(p)))
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SLICE_NS, enq_flags);
	else
		scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
}

void OP(resonates_dispatch, s32 cpu, struct task_struct *prev)
{
	if (scx_bpf_now() % NSEC_PER_MSEC)
		scx_bpf_dsq_move_to_local(QUEUE);
}

INIT_QUEUE(resonates)
FAULTY(resonates);
