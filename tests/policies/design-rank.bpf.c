/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Strict ranks: of those that wait, the least nice value goes first, in the order in which they
 * came. Whoever has a lower rank waits for as long as others want the CPU.
 *
 * Keeps: no CPU idles beside a task that may use it.
 */
#include "design.h"

SELECT_CPU_PREV(rank)

void OP(rank_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert_vtime(p, QUEUE, SLICE_NS, p->static_prio, enq_flags);
	tell_idle(p);
}

DISPATCH_QUEUE(rank)
INIT_QUEUE(rank)
DESIGN(rank);
