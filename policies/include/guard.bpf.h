/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What keeps a kernel alive under a policy whose source lets tasks starve: the
 * starvation guard, and the fast lane for the kernel threads that a kernel
 * waits for: those bound to one CPU, and RCU's. Both are off in a simulation, as
 * in the sources, and on on a kernel.
 *
 * A kernel ejects a policy under which a runnable task does not run for as long
 * as its watchdog waits (30 s). With the guard on, no task waits longer than the
 * limit and one look, plus two turns for each task that is over the limit with
 * it. A starved task runs up to the next tick, undisturbed, and then the others
 * have a turn as long: so neither those starve, nor the others.
 *
 * Some policies leave a CPU to one task for seconds, so it is the tick that sees
 * when a look is due, and sends the CPU to `dispatch`, where the policy looks
 * through its queues and moves the task that it finds.
 */
#ifndef RUNSLICE_GUARD_BPF_H
#define RUNSLICE_GUARD_BPF_H

#include <knobs.bpf.h>
#include <scx.h>

/*
 * On a kernel: with the look of an eighth and the turns of a hundred others a
 * wait stays below a third of the watchdog's 30 s, and two of them, of a reader
 * and of the thread that waits for it, below the 21 s after which RCU complains.
 */
KNOB_ON_KERNEL(u32, guard_ms, 0, 8000, "ms",
	       "if not 0, a task that waited so long runs up to the next tick", 0, 30000);
KNOB_ON_KERNEL(bool, kthreads_fast, 0, 1, "bool",
	       "RCU's and per-CPU kernel threads run at once, outside the policy's queues", 0, 1);

/* A turn: up to the next tick. */
#define GUARD_TURN_NS NSEC_PER_MSEC

/* What a CPU knows of its guard; all zero at first. */
struct guard {
	u64 look_ns;		/* when the next look is due */
	u64 seen_ns;		/* when the CPU last had a tick or made a choice */
	bool others_next;	/* a starved task had the last turn */
};

static __always_inline u64 guard_limit_ns(void)
{
	return guard_ms * NSEC_PER_MSEC;
}

static __always_inline bool is_starved(u64 waited_ns)
{
	return waited_ns >= guard_limit_ns();
}

/* In `tick`, to send the CPU to `dispatch`. */
static __always_inline bool guard_is_due(struct guard *guard, u64 now)
{
	guard->seen_ns = now;
	return guard_ms && now >= guard->look_ns;
}

/* A CPU that serves its queue is seen at each tick. */
#define GUARD_SILENT_NS (100 * NSEC_PER_MSEC)

static __always_inline bool is_silent(struct guard *guard)
{
	return (s64)(scx_bpf_now() - guard->seen_ns) > (s64)GUARD_SILENT_NS;
}

/* In `dispatch`: whether to look for a starved task now, before all else. */
static __always_inline bool guard_looks(struct guard *guard, u64 now)
{
	if (!guard_is_due(guard, now))
		return false;
	if (guard->others_next) {
		guard->others_next = false;
		guard->look_ns = now + GUARD_TURN_NS;
		return false;
	}
	return true;
}

/* What the look came to. Nobody found: an eighth of the limit may pass until the next one. */
static __always_inline void guard_looked(struct guard *guard, bool found)
{
	guard->others_next = found;
	guard->look_ns = scx_bpf_now() + (found ? GUARD_TURN_NS : guard_limit_ns() / 8);
}

/*
 * RCU's kernel threads are bound to no CPU, and a grace period takes several of
 * their turns: where each waits seconds, a kernel complains after 21 s. They are
 * known by their names (rcu_preempt, rcu_exp_gp_kthread_worker, rcu_tasks_kthread
 * and others; nobody but the kernel names a kernel thread). Other unbound kernel
 * threads are left to the policy, for some of them compute for long.
 *
 * Source: kernel/rcu/tree.c, tree_exp.h and tasks.h, 6.18 and 7.2; seen on 7.2,
 * where rcu_preempt waited 5.4 s in the queues of mlfq.
 */
static __always_inline bool is_rcu_thread(struct task_struct *p)
{
	return p->comm[0] == 'r' && p->comm[1] == 'c' && p->comm[2] == 'u';
}

/*
 * A kernel thread that stalls a kernel when it waits behind hogs. It comes back
 * to its CPU past the policy's queues; who makes a CPU choose again when a task
 * comes back without being chosen must not do it for this one, or two of them
 * take the CPU from each other for ever.
 */
static __always_inline bool is_fast(struct task_struct *p)
{
	return kthreads_fast && (p->flags & PF_KTHREAD) &&
	       (p->nr_cpus_allowed == 1 || is_rcu_thread(p));
}

/* The guard of a CPU; the policy defines it. */
static __always_inline struct guard *guard_of(s32 cpu);

/*
 * Whether the CPU has not asked the policy since its guard was due: it asks only
 * when nothing is left of what was given to it.
 */
static __always_inline bool guard_is_passed_by(struct guard *guard)
{
	return guard_ms && guard->look_ns + GUARD_SILENT_NS < scx_bpf_now();
}

/*
 * In `enqueue`, before all else: true if the task has been seen to. One that
 * wakes takes the CPU; one whose turn is over goes behind others of its kind.
 * When those keep the CPU so busy that the guard is passed by, it stands in the
 * policy's queues like any task, until it has slept.
 */
static __always_inline bool runs_at_once(struct task_struct *p, u64 enq_flags)
{
	struct guard *guard;

	if (!is_fast(p))
		return false;
	guard = guard_of(scx_bpf_task_cpu(p));
	if (enq_flags & SCX_ENQ_WAKEUP)
		enq_flags |= SCX_ENQ_PREEMPT;
	else if (guard && guard_is_passed_by(guard))
		return false;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, enq_flags);
	return true;
}

#endif /* RUNSLICE_GUARD_BPF_H */
