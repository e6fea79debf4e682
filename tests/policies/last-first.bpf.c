/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Serves who came last first: `dispatch` walks through the queue from its end. Inserts through a
 * wrapper of another folder's header.
 */
#include <scx.h>

#include "wrap/insert.h"

BPF_LICENSE();

#define QUEUE 0
#define SLICE_NS 5000000

u64 refused;

void OP(last_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (!wrapped_insert(p, QUEUE, SLICE_NS, enq_flags)) /* the insert */
		refused++;
}

void OP(last_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_struct *p;

	for_each_queued(it, p, QUEUE, SCX_DSQ_ITER_REV) {
		if (scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL, 0)) /* the choice */
			break;
	}
}

s32 OP_SLEEPABLE(last_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

POLICY(last_ops,
       .enqueue		= (void *)last_enqueue,
       .dispatch	= (void *)last_dispatch,
       .init		= (void *)last_init,
       .name		= "last");
