/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A policy in cid form that takes the number of a CPU for a cid: each task runs
 * on the first CPU that it may use, by its kernel's mask.
 */
#include <cid.h>

BPF_LICENSE();

ARENA(arena, 64);

s32 OP(cid_confused_select_cid, struct task_struct *p, s32 prev_cid, u64 wake_flags)
{
	use_arena(arena);
	return prev_cid;
}

void OP(cid_confused_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 first = bpf_cpumask_first(p->cpus_ptr);

	use_arena(arena);
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | first, SCX_SLICE_DFL, enq_flags);
}

CID_POLICY(cid_confused_ops,
	.select_cid = (void *)cid_confused_select_cid,
	.enqueue = (void *)cid_confused_enqueue,
	.name = "cid_confused");
