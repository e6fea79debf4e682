/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A policy whose tasks wait in one queue, out of which nobody runs: a CPU without
 * work has the kernel offer them again, and then they go into another one.
 */
#include <scx.h>

BPF_LICENSE();

#define RUN 0
#define WAIT 1
/* Since 7.1; the same numbers since then. */
#define REASON(flags) ((flags) >> 12 & 3)
#define REASON_KFUNC 1

__kfunc void scx_bpf_dsq_reenq(u64 dsq_id, u64 reenq_flags);

/* The queue that is gone through, and with which flags. */
const volatile u64 queue = WAIT;
const volatile u64 flags = 0;
/* Tasks that come back wait again, and all is asked for again. */
const volatile bool insists = false;

s32 OP(reoffers_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu;
}

void OP(reoffers_enqueue, struct task_struct *p, u64 enq_flags)
{
	bool is_back = enq_flags & SCX_ENQ_REENQ;

	if (is_back && REASON(p->scx.flags) != REASON_KFUNC)
		scx_bpf_error("reason %u", (u64)REASON(p->scx.flags));
	if (is_back && !insists) {
		scx_bpf_dsq_insert(p, RUN, SCX_SLICE_DFL, 0);
		scx_bpf_kick_cpu(scx_bpf_task_cpu(p), SCX_KICK_IDLE);
		return;
	}
	scx_bpf_dsq_insert(p, WAIT, SCX_SLICE_DFL, 0);
	if (is_back)
		scx_bpf_dsq_reenq(queue, flags);
	else
		scx_bpf_kick_cpu(scx_bpf_task_cpu(p), SCX_KICK_IDLE);
}

void OP(reoffers_dispatch, s32 cpu, struct task_struct *prev)
{
	if (!scx_bpf_dsq_move_to_local(RUN) && scx_bpf_dsq_nr_queued(WAIT) > 0)
		scx_bpf_dsq_reenq(queue, flags);
}

s32 OP_SLEEPABLE(reoffers_init)
{
	return scx_bpf_create_dsq(RUN, -1) ?: scx_bpf_create_dsq(WAIT, -1);
}

POLICY(reoffers_ops,
	.select_cpu = (void *)reoffers_select_cpu,
	.enqueue = (void *)reoffers_enqueue,
	.dispatch = (void *)reoffers_dispatch,
	.init = (void *)reoffers_init,
	.name = "reoffers");
