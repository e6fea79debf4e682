/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What O(1) and both Staircases do alike as a task comes, waits, runs and goes;
 * over the queues of percpu.bpf.h.
 *
 * The kernel keeps a task that a higher class displaced in the CPU's own queue,
 * and brings it back without asking: `in_local` marks it, and when a better one
 * waits by then the CPU has to choose again. A change of nice level, affinity or
 * group takes a runnable task off its CPU for a moment: `changing` marks it, for
 * the turn goes on.
 *
 * A policy includes this file behind percpu.bpf.h and defines, in struct task_ctx,
 *
 *	u64 charged_ns		the task's run time that its slice has paid for
 *	u64 stamp_ns		when that was
 *	u64 ready_ns		since when it waits
 *	u64 left_cpu_ns		when it last ran or woke
 *	bool requeue		takes a new place when it is enqueued
 *	bool asleep, changing, in_local, rescued
 */
#ifndef RUNSLICE_LIFE_BPF_H
#define RUNSLICE_LIFE_BPF_H

#include <percpu.bpf.h>

/* In `enable`: the task may have run in another class meanwhile. */
static __always_inline void come_in(struct task_struct *p, struct task_ctx *tctx)
{
	u64 now = scx_bpf_now();

	tctx->charged_ns = p->se.sum_exec_runtime;
	tctx->stamp_ns = now;
	tctx->left_cpu_ns = now;
	tctx->ready_ns = now;
	tctx->requeue = true;
}

/* In `runnable`, when the task has been woken. */
static __always_inline void begin_wait(struct task_ctx *tctx)
{
	tctx->ready_ns = scx_bpf_now();
	tctx->left_cpu_ns = tctx->ready_ns;
	tctx->requeue = true;
}

/* In `set_weight`: the task belongs to `list` of `cpu` from now on, and the CPU decides again. */
static __always_inline void change_list(struct task_ctx *tctx, u64 list, struct cpu_ctx *cctx,
					s32 cpu)
{
	if (tctx->asleep)
		return;
	to_tail(tctx, list, cctx, cpu);
	kick(cpu, SCX_KICK_PREEMPT);
}

/* In `running`, at its end: a task that returned without our say may have been overtaken. */
static __always_inline void ask_again(struct task_struct *p, struct task_ctx *tctx, s32 cpu)
{
	if (tctx->in_local && may_ask_again(p) && waits_before(cpu, tctx->key))
		kick(cpu, SCX_KICK_PREEMPT);
	tctx->in_local = false;
}

/* In `stopping`, when the task has been charged. */
static __always_inline void leave_turn(struct task_ctx *tctx, bool runnable)
{
	tctx->rescued = false;
	tctx->left_cpu_ns = scx_bpf_now();
	if (!runnable)
		return;
	tctx->ready_ns = tctx->left_cpu_ns;
	/* Stays true if the kernel keeps it in the local queue: enqueue clears it. */
	tctx->in_local = true;
}

/* In `quiescent`: whether the task goes to sleep. */
static __always_inline bool falls_asleep(struct task_ctx *tctx, u64 deq_flags)
{
	tctx->changing = !(deq_flags & SCX_DEQ_SLEEP);
	if (tctx->changing)
		return false;
	tctx->asleep = true;
	tctx->in_local = false;
	return true;
}

#endif /* RUNSLICE_LIFE_BPF_H */
