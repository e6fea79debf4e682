/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A policy that puts every task into the local queue of its CPU, to run there
 * at once. One that comes back waits in a queue of the policy's. It ends
 * itself if a task comes back for another reason than the kernel's two: it
 * could not run at once, or a higher class took the CPU from it.
 */
#include <scx.h>

BPF_LICENSE();

#define QUEUE 0
/* Since 7.1; the same numbers since then. */
#define ENQ_IMMED (1ULL << 33)
#define TASK_IMMED (1 << 5)
#define REASON(flags) ((flags) >> 12 & 3)
#define REASON_IMMED 2
#define REASON_PREEMPTED 3

/* Ends with an error at the first task that a higher class has preempted. */
const volatile u32 ends_at_preemption;
/* Puts tasks that come back where they were, again and again. */
const volatile u32 insists;
/* Asks for it in a queue that is no CPU's. */
const volatile u32 misuses;

static void insert_now(struct task_struct *p)
{
	u64 queue = misuses ? QUEUE : SCX_DSQ_LOCAL;

	scx_bpf_dsq_insert(p, queue, SCX_SLICE_DFL, INSERT_FLAGS);
}

/* Without it the kernel would insert by itself where a CPU idles. */
s32 OP(immed_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu;
}

void OP(immed_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 reason = REASON(p->scx.flags);

	if (!(enq_flags & SCX_ENQ_REENQ)) {
		if (reason || p->scx.flags & TASK_IMMED)
			scx_bpf_error("flags %x of a fresh enqueue", p->scx.flags);
		insert_now(p);
		return;
	}
	if (reason != REASON_IMMED && reason != REASON_PREEMPTED)
		scx_bpf_error("reason %u", reason);
	if (ends_at_preemption && reason == REASON_PREEMPTED)
		scx_bpf_error("preempted");
	if (insists)
		insert_now(p);
	else
		scx_bpf_dsq_insert(p, QUEUE, SCX_SLICE_DFL, 0);
}

void OP(immed_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(QUEUE);
}

s32 OP_SLEEPABLE(immed_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

POLICY(immed_ops,
       .select_cpu	= (void *)immed_select_cpu,
       .enqueue		= (void *)immed_enqueue,
       .dispatch	= (void *)immed_dispatch,
       .init		= (void *)immed_init,
       .flags		= TABLE_FLAGS,
       .name		= "immed");
