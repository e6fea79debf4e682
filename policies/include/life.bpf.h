/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the schedulers of Linux 2.6 do alike as a task wakes, waits, runs and
 * goes; over the queues of percpu.bpf.h.
 *
 * The kernel keeps a task that a higher class displaced in the CPU's own queue,
 * and brings it back without asking: `in_local` marks it, and when a better one
 * waits by then the CPU has to choose again. A change of nice level, affinity or
 * group takes a runnable task off its CPU for a moment: `changing` marks it, for
 * the turn goes on.
 */
#ifndef RUNSLICE_LIFE_BPF_H
#define RUNSLICE_LIFE_BPF_H

#include <knobs.bpf.h>
#include <percpu.bpf.h>

KNOB(bool, wake_idle, 0, "bool",
     "a woken or new task takes an idle CPU instead of its previous one", 0, 1);

/* In `enable`: the task may have run in another class meanwhile. */
static __always_inline void come_in(struct task_struct *p, struct queued *q)
{
	u64 now = scx_bpf_now();

	q->charged_ns = p->se.sum_exec_runtime;
	q->stamp_ns = now;
	q->left_cpu_ns = now;
	q->ready_ns = now;
	q->requeue = true;
}

/*
 * In `select_cpu`: where the task is to run. It wakes where it ran, or goes along
 * with a waker that `takes_along`; nobody looks for an idle CPU unless told to.
 */
static __always_inline s32 choose_cpu(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
				      bool takes_along)
{
	s32 this_cpu = bpf_get_smp_processor_id();
	bool is_idle = false;

	if (wake_idle)
		return scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags & ~SCX_WAKE_SYNC, &is_idle);
	return takes_along && may_run_on(p, this_cpu) ? this_cpu : prev_cpu;
}

/* In `runnable`, when the task has been woken. */
static __always_inline void begin_wait(struct queued *q, u64 now)
{
	q->ready_ns = now;
	q->left_cpu_ns = now;
	q->requeue = true;
}

/* In `set_weight`: the task belongs to `list` from now on, and the CPU decides again. */
static __always_inline void change_list(struct queued *q, u64 list, struct cpu_queue *cq)
{
	if (q->asleep)
		return;
	to_tail_of(q, list, cq);
	kick(cq->cpu, SCX_KICK_PREEMPT);
}

/* In `enqueue`: whether the task comes, by a wakeup or from another CPU. */
static __always_inline bool arrives(struct queued *q, s32 cpu, u64 enq_flags)
{
	return (enq_flags & SCX_ENQ_WAKEUP) ||
	       (q->requeue && cpu != (s32)bpf_get_smp_processor_id());
}

/* In `enqueue`, at its end. */
static __always_inline void end_enqueue(struct queued *q)
{
	q->requeue = false;
	q->sync = false;
	q->changing = false;
	q->in_local = false;
}

/* In `running`, at its end: a task that comes without our say may have been overtaken. */
static __always_inline void ask_again(struct task_struct *p, struct queued *q,
				      struct cpu_queue *cq)
{
	bool overtaken = is_overtaken(cq, q);

	if ((q->in_local || overtaken) && may_ask_again(p) && waits_before(cq->cpu, q->key))
		kick(cq->cpu, SCX_KICK_PREEMPT);
	q->in_local = false;
}

/* In `stopping`, when the task has been charged. */
static __always_inline void leave_turn(struct queued *q, bool runnable, u64 now)
{
	q->rescued = false;
	q->left_cpu_ns = now;
	if (!runnable)
		return;
	q->ready_ns = now;
	/* Stays true if the kernel keeps it in the local queue: enqueue clears it. */
	q->in_local = true;
}

/* In `quiescent`: whether the task goes to sleep. */
static __always_inline bool falls_asleep(struct queued *q, u64 deq_flags)
{
	q->changing = !(deq_flags & SCX_DEQ_SLEEP);
	if (q->changing)
		return false;
	q->asleep = true;
	q->in_local = false;
	return true;
}

/* In a policy's table: its own callbacks, which are called like it. */
#define LIFE_OPS(policy)							\
	.init_task	= (void *)policy##_init_task,				\
	.enable		= (void *)policy##_enable,				\
	.select_cpu	= (void *)policy##_select_cpu,				\
	.runnable	= (void *)policy##_runnable,				\
	.set_weight	= (void *)policy##_set_weight,				\
	.enqueue	= (void *)policy##_enqueue,				\
	.dispatch	= (void *)policy##_dispatch,				\
	.running	= (void *)policy##_running,				\
	.tick		= (void *)policy##_tick,				\
	.yield		= (void *)policy##_yield,				\
	.stopping	= (void *)policy##_stopping,				\
	.quiescent	= (void *)policy##_quiescent

#endif /* RUNSLICE_LIFE_BPF_H */
