/* SPDX-License-Identifier: GPL-2.0-only */
/* A policy in cid form without an arena: no kernel attaches it. */
#include <cid.h>

BPF_LICENSE();

void OP(bare_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}

CID_POLICY(bare_ops, .enqueue = (void *)bare_enqueue, .name = "bare");
