/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Only CPU 0 looks at the queue, for itself and for nobody else.
 *
 * Breaks: every runnable task runs in bounded time, once one may not use CPU 0.
 */
#include "faulty.h"

SELECT_CPU_PREV(central)

void OP(central_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
}

void OP(central_dispatch, s32 cpu, struct task_struct *prev)
{
	if (cpu) /* the fault */
		return;
	scx_bpf_dsq_move_to_local(QUEUE);
}

INIT_QUEUE(central)
FAULTY(central);
