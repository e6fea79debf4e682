/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Leaves a woken task at its old CPU, in the shared queue, and wakes none of the CPUs
 * that idle. What runs has a slice without end, which would starve nobody if the others
 * were told.
 *
 * Breaks: a runnable task runs at once while a CPU idles that it may use.
 */
#include "faulty.h"

SELECT_CPU_PREV(no_kick)

void OP(no_kick_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, QUEUE, SCX_SLICE_INF, enq_flags); /* the fault */
}

DISPATCH_QUEUE(no_kick)
INIT_QUEUE(no_kick)
FAULTY(no_kick);
