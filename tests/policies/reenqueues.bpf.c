/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A policy that never lets a waiting task be: whenever one is offered, it asks
 * for all of the local queue to be offered again. For kernels since 6.19,
 * where any callback may ask.
 */
#include <scx.h>

BPF_LICENSE();

/* Its own name ends like a flavour, so it needs another. */
__kfunc void scx_bpf_reenqueue_local___v2___compat(void);

void OP(reenqueues_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, 0);
	scx_bpf_reenqueue_local___v2___compat();
}

POLICY(reenqueues_ops,
       .enqueue		= (void *)reenqueues_enqueue,
       .name		= "reenqueues");
