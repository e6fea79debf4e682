/* SPDX-License-Identifier: GPL-2.0-only */
/* A table that names its cgroup: it attaches below another scheduler, and never as the root. */
#include <cid.h>

BPF_LICENSE();

ARENA(arena, 16);

void OP(placed_enqueue, struct task_struct *p, u64 enq_flags)
{
	use_arena(arena);
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}

CID_POLICY(placed_ops,
	.enqueue = (void *)placed_enqueue,
	.sub_cgroup_id = 5,
	.name = "placed");
