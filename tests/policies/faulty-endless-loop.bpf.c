/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A loop in `enqueue` that ends only at a value which its variable never has.
 *
 * Breaks: every callback ends.
 */
#include "faulty.h"

SELECT_CPU_PREV(endless_loop)

void OP(endless_loop_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 at = 1;

	while (at != 100) { /* the fault */
		at += 2;
		opaque(at);
	}
	scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
}

DISPATCH_QUEUE(endless_loop)
INIT_QUEUE(endless_loop)
FAULTY(endless_loop);
