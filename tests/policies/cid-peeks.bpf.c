/* SPDX-License-Identifier: GPL-2.0-only */
/* A policy that looks at the first task of a queue before it takes one from its own. */
#include <cid.h>

BPF_LICENSE();

/* The queue that it looks at; it has created 0 alone. */
const volatile u64 looks_at = 0;

ARENA(arena, 64);

__kfunc struct task_struct *scx_bpf_dsq_peek(u64 dsq_id);
__kfunc bool scx_bpf_dsq_move_to_local___v2___new(u64 dsq_id, u64 enq_flags);

s32 OP_SLEEPABLE(cid_peeks_init)
{
	use_arena(arena);
	return scx_bpf_create_dsq(0, -1);
}

s32 OP(cid_peeks_select_cid, struct task_struct *p, s32 prev_cid, u64 wake_flags)
{
	use_arena(arena);
	return prev_cid;
}

void OP(cid_peeks_enqueue, struct task_struct *p, u64 enq_flags)
{
	use_arena(arena);
	scx_bpf_dsq_insert(p, 0, SCX_SLICE_DFL, enq_flags);
	scx_bpf_kick_cid(scx_bpf_task_cid(p), SCX_KICK_IDLE);
}

void OP(cid_peeks_dispatch, s32 cid, struct task_struct *prev)
{
	struct task_struct *first = scx_bpf_dsq_peek(looks_at);

	use_arena(arena);
	if (first)
		bpf_printk("first %d", first->pid);
	if (scx_bpf_dsq_move_to_local___v2___new(0, 0))
		bpf_printk("took");
}

void OP(cid_peeks_running, struct task_struct *p)
{
	use_arena(arena);
	bpf_printk("runs %d", p->pid);
}

CID_POLICY(cid_peeks_ops,
	.select_cid = (void *)cid_peeks_select_cid,
	.enqueue = (void *)cid_peeks_enqueue,
	.dispatch = (void *)cid_peeks_dispatch,
	.running = (void *)cid_peeks_running,
	.init = (void *)cid_peeks_init,
	.name = "cid_peeks");
