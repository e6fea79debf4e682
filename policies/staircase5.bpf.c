/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Staircase 5, the announcement: each descent starts one stair lower.
 *
 * Every task has a full slice of as many intervals as there are stairs from
 * its nice level to the last one: 20 at nice 0, 1 at nice 19. It goes one
 * stair down after each interval. When the slice is used up the next descent
 * starts one stair lower and stays there one interval longer, until after 20
 * descents a hog of nice 0 stands on the last stair for its whole slice at
 * once, and hogs share the CPU as 20 to 1. A sleep lifts the start by a stair.
 * The best stair runs, and who wakes on a better stair preempts.
 *
 * Source: Colivas, "[PATCH]Staircase scheduler - experimental" (version 5),
 * linux-kernel mailing list, 25 March 2004.
 * Differs from the source: its patch is lost, and what the announcement leaves
 * open follows the patch 6.3 of June 2004 or is decided at the place where it
 * matters and marked "Decision"; the rule of 6.3 that punishes short waits for
 * a disk is left out; run time is counted in nanoseconds instead of ticks, an
 * interval still ends at a tick, and what it overran is taken off the next;
 * an interval is 10 ms times the number of CPUs, but of no more than
 * cpu_factor_max if that is set, because 64 CPUs mean turns of 12.8 s; the
 * balancer is that of 2.6.3 (balance.bpf.h); real-time tasks are none of a
 * policy's business; SCHED_IDLE is nice 19.
 *
 * The kernel ends a policy under which a task waits too long (30 s), which the
 * source's rules allow. The guard against that, guard_ms, and kthreads_fast,
 * without which RCU's and per-CPU kernel threads wait behind hogs and stall a
 * kernel, are off in a simulation, as in the source, and on on a kernel, where
 * cpu_factor_max is 8.
 */
#include <guard.bpf.h>
#include <knobs.bpf.h>
#include <report.bpf.h>

BPF_LICENSE();

/* ---- Tunables ---- */

KNOB(u64, rr_ns, 10000000, "ns", "interval on one stair, for each CPU of the machine", 1000000,
     1000000000);
KNOB_ON_KERNEL(u32, cpu_factor_max, 0, 8, "CPUs",
	       "if not 0, no more CPUs lengthen the interval", 0, 1024);
KNOB(bool, rise_from_here, 0, "bool",
     "a sleep lifts a task by one from the stair where it is, not from where it started", 0, 1);
KNOB(u64, jiffy_ns, 1000000, "ns", "the source's tick: shorter runs may continue a slice", 1,
     10000000);
KNOB(bool, wake_idle, 0, "bool",
     "a woken or new task takes an idle CPU instead of its previous one", 0, 1);

/* ---- State ---- */

/* The kernel's scale: nice -20 is 100, and nice 19 the last stair. */
#define LAST_STAIR 139

struct task_ctx {
	u64 key;		/* in its queue: stair and place; see percpu.bpf.h */
	u64 ready_ns;		/* since when it waits */
	u64 left_cpu_ns;	/* when it last ran or woke */
	u64 charged_ns;		/* the task's run time up to which the slices are true */
	u64 stamp_ns;		/* when that was */
	s64 slice_ns;		/* left of the full slice */
	s64 interval_ns;	/* left of the time on this stair; below 0 when overrun */
	u64 run_ns;		/* length of the last run, since it came to its CPU */
	s32 home;		/* the CPU that `key` belongs to */
	s32 last_cpu;		/* where it ran last */
	u32 prio;		/* its stair */
	u32 static_prio;	/* its best stair */
	u32 level;		/* stairs below the best one at which descents start */
	bool asleep;
	bool first;		/* a child in its first slice */
	bool requeue;		/* takes a new place when it is enqueued */
	bool changing;		/* off the CPU for a change of nice level or the like */
	bool rescued;		/* runs because the guard says so */
	bool in_local;		/* lost the CPU to a higher class, back without our say */
};

struct cpu_ctx {
	u64 places;		/* given so far; see percpu.bpf.h */
	struct guard guard;
	u64 busy_at_ns;		/* next look for work elsewhere */
	u32 prio;		/* of the running task; NO_PRIO if none of ours */
	bool offline;
} __attribute__((aligned(64)));

/* CPUs that lengthen the interval. */
static u32 nr_online = 1;

enum {
	COUNT_SCHEDULE,
	COUNT_EXPIRED,
	COUNT_PREEMPTED,
	COUNT_PICKED_ELSEWHERE,
	COUNT_YIELDS,
	COUNT_YIELDS_ALONE,
	COUNT_LB_IDLE,
	COUNT_LB_BUSY,
	COUNT_LB_RESCHED,
	COUNT_LB_IMBALANCE,
	COUNT_LB_NOT_FOUND,
	COUNT_PULLED,
	COUNT_PULLED_FROM,
	COUNT_GUARDED,
};

COUNTERS("schedule", "expired", "preempted", "picked_elsewhere", "yields", "yields_alone",
	 "lb_idle", "lb_busy", "lb_resched", "lb_imbalance", "lb_not_found", "pulled",
	 "pulled_from", "guarded");

#include <percpu.bpf.h>
#include <life.bpf.h>

/* One array: the best list first. */
static __always_inline u64 pull_order(u64 key, s32 from)
{
	return list_of(key);
}

static __always_inline void place_pulled(struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	to_tail(tctx, tctx->prio, cctx, cpu);
}

#include <balance.bpf.h>

/* ---- Slices and stairs ---- */

static __always_inline s64 interval(void)
{
	u32 cpus = nr_online;

	if (cpu_factor_max)
		cpus = min(cpus, cpu_factor_max);
	return rr_ns * max(cpus, 1U);
}

/* Stairs from the best to the last: 40 for nice -20, 20 for 0, 1 for 19. */
static __always_inline u32 stairs(struct task_ctx *tctx)
{
	return LAST_STAIR + 1 - min(tctx->static_prio, (u32)LAST_STAIR);
}

static __always_inline s64 full_slice(struct task_ctx *tctx)
{
	return interval() * stairs(tctx);
}

static void take_class(struct task_struct *p, struct task_ctx *tctx)
{
	tctx->static_prio = p->policy == SCHED_IDLE ? LAST_STAIR : p->static_prio;
	tctx->level = min(tctx->level, stairs(tctx) - 1);
}

/*
 * A descent from `level` stairs below the best one. Decision: the longer stay
 * on the first stair is one turn; requeued after each interval, hogs of all
 * nice levels would share alike on the last stair. Kernel threads always stand
 * on their best stair.
 */
static void begin_descent(struct task_struct *p, struct task_ctx *tctx, u32 level)
{
	if (p->flags & PF_KTHREAD)
		level = 0;
	tctx->level = min(level, stairs(tctx) - 1);
	tctx->prio = min(tctx->static_prio + tctx->level, (u32)LAST_STAIR);
	tctx->slice_ns = full_slice(tctx);
	tctx->interval_ns = interval() * (tctx->level + 1);
}

/* Takes what the task has run since the last call off its slices. */
static void charge(struct task_struct *p, struct task_ctx *tctx)
{
	u64 ran = p->se.sum_exec_runtime - tctx->charged_ns;

	tctx->charged_ns += ran;
	tctx->stamp_ns = scx_bpf_now();
	tctx->slice_ns -= ran;
	tctx->interval_ns -= ran;
	tctx->run_ns += ran;
}

/* The next stay begins with what the last one overran. */
static void carry_over(struct task_ctx *tctx, s64 overrun)
{
	tctx->interval_ns += min(overrun, 0LL);
	if (tctx->interval_ns <= 0)
		tctx->interval_ns = interval();
}

/*
 * The tick's work, done when the CPU decides: at the end of an interval one
 * stair down, at the end of the slice back to the start of the next descent;
 * always to the tail.
 */
static void settle(struct task_struct *p, struct task_ctx *tctx, s32 cpu)
{
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	s64 slice, overrun;

	charge(p, tctx);
	if (!cctx || (tctx->slice_ns > 0 && tctx->interval_ns > 0))
		return;
	count(COUNT_EXPIRED);
	slice = tctx->slice_ns;
	overrun = tctx->interval_ns;
	if (slice <= 0) {
		begin_descent(p, tctx, tctx->level + 1);
		tctx->first = false;
		if (tctx->slice_ns + slice > 0)
			tctx->slice_ns += slice;
	} else {
		tctx->interval_ns = interval();
		if (!(p->flags & PF_KTHREAD))
			tctx->prio = min(tctx->prio + 1, (u32)LAST_STAIR);
	}
	carry_over(tctx, overrun);
	to_tail(tctx, tctx->prio, cctx, cpu);
}

/* How long the task may run at once. */
static __always_inline u64 turn(struct task_ctx *tctx)
{
	return max(min(tctx->slice_ns, tctx->interval_ns), 1LL);
}

/*
 * A sleep lifts the task by one stair. Decision, from 6.3: a run that a tick
 * may miss, with a sleep that ends within the interval, is no sleep: the slice
 * goes on. Decision: it is the start of the descent that rises.
 */
static void wake_up(struct task_struct *p, struct task_ctx *tctx)
{
	u64 slept = scx_bpf_now() - tctx->left_cpu_ns;
	u32 level = tctx->level;

	if (tctx->run_ns < jiffy_ns && (s64)(tctx->run_ns + slept) < interval())
		return;
	if (rise_from_here)
		level = tctx->prio - min(tctx->prio, tctx->static_prio);
	begin_descent(p, tctx, level ? level - 1 : 0);
}

/* ---- Callbacks, in the order of a task's life ---- */

/* Parent and child share slice and interval; the child starts on its best stair. */
static void fork_from(struct task_struct *parent, struct task_ctx *tctx)
{
	struct task_ctx *from = task_ctx(parent);
	s64 slice, stay;
	u64 ran;

	if (!from)
		return;
	ran = scx_bpf_now() - from->stamp_ns;
	slice = (max(from->slice_ns - (s64)ran, 1LL) + 1) >> 1;
	stay = (max(from->interval_ns - (s64)ran, 1LL) + 1) >> 1;
	tctx->slice_ns = min(slice, full_slice(tctx));
	tctx->interval_ns = min(stay, interval());
	tctx->first = true;
	from->slice_ns -= slice;
	from->interval_ns -= stay;
	/* The kernel's own count runs on, so it loses the same. */
	set_slice(parent, parent->scx.slice - min(parent->scx.slice, (u64)stay));
}

s32 OP_SLEEPABLE(staircase5_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *tctx;

	tctx = bpf_task_storage_get(&task_ctxs, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!tctx || !report_init(p))
		return -ENOMEM;
	take_class(p, tctx);
	begin_descent(p, tctx, 0);
	tctx->last_cpu = -1;
	tctx->charged_ns = p->se.sum_exec_runtime;
	if (args->fork)
		fork_from(bpf_get_current_task_btf(), tctx);
	return 0;
}

void OP(staircase5_enable, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);

	if (tctx)
		come_in(p, tctx);
}

s32 OP(staircase5_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;

	if (!wake_idle)
		return prev_cpu;
	return scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags & ~SCX_WAKE_SYNC, &is_idle);
}

void OP(staircase5_runnable, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = task_ctx(p);

	if (!tctx)
		return;
	tctx->asleep = false;
	if (!(enq_flags & SCX_ENQ_WAKEUP))
		return;
	wake_up(p, tctx);
	begin_wait(tctx);
}

/* A new nice level: the task stands on its new top stair, and keeps its slice. */
void OP(staircase5_set_weight, struct task_struct *p, u32 weight)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	u32 was;

	if (!tctx || !cctx)
		return;
	was = tctx->static_prio;
	take_class(p, tctx);
	if (was == tctx->static_prio)
		return;
	tctx->prio = tctx->static_prio;
	change_list(tctx, tctx->prio, cctx, cpu);
}

/* Puts a task into the queue of `cpu`; a strictly better one that comes takes the CPU. */
static void queue(struct task_struct *p, struct task_ctx *tctx, s32 cpu, u64 enq_flags)
{
	bool elsewhere = cpu != (s32)bpf_get_smp_processor_id();
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	bool arrives = (enq_flags & SCX_ENQ_WAKEUP) || (tctx->requeue && elsewhere);

	if (!cctx)
		return;
	if (tctx->requeue || tctx->home != cpu)
		to_tail(tctx, tctx->prio, cctx, cpu);
	scx_bpf_dsq_insert_vtime(p, cpu, turn(tctx), tctx->key, enq_flags);
	if (!arrives || cctx->prio == NO_PRIO || tctx->prio >= cctx->prio)
		return;
	count(COUNT_PREEMPTED);
	kick(cpu, SCX_KICK_PREEMPT);
}

void OP(staircase5_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);

	if (runs_at_once(p, enq_flags))
		return;
	if (!tctx) {
		scx_bpf_error("no context for task %d", (u64)p->pid);
		return;
	}
	/* The kernel may end a slice without asking dispatch: a local queue was not empty. */
	settle(p, tctx, cpu);
	if (is_leaving(cpu))
		insert_leaving(p, SCX_SLICE_DFL, enq_flags);
	else
		queue(p, tctx, cpu, enq_flags);
	tctx->requeue = false;
	tctx->changing = false;
	tctx->in_local = false;
}

/* The task is on the CPU: others compare themselves with its stair, and tools see it. */
static void show(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx)
{
	cctx->prio = tctx->rescued ? 0 : tctx->prio;
	report_task(p, tctx->prio, tctx->level, 0);
}

/* Lets the running task go on: a slice that dispatch sets means so. */
static void keep(struct task_struct *prev, struct task_ctx *tctx, s32 cpu)
{
	struct cpu_ctx *cctx = cpu_ctx(cpu);

	if (!cctx)
		return;
	set_slice(prev, turn(tctx));
	show(prev, tctx, cctx);
}

/* schedule(): the head of the best stair. `prev` is in no queue, but its key counts. */
void OP(staircase5_dispatch, s32 cpu, struct task_struct *prev)
{
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	struct task_ctx *tctx;

	count(COUNT_SCHEDULE);
	if (rescue(cpu))
		return;
	tctx = able_to_go_on(prev);
	if (tctx && cctx) {
		settle(prev, tctx, cpu);
		balance_busy(cctx, cpu);
		if (!waits_before(cpu, tctx->key) || !scx_bpf_dsq_move_to_local(cpu))
			keep(prev, tctx, cpu);
		return;
	}
	take_or_pull(cpu, !prev);
}

void OP(staircase5_running, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx(cpu);

	if (!tctx || !cctx)
		return;
	tctx->stamp_ns = scx_bpf_now();
	if (tctx->home != cpu)
		to_tail(tctx, tctx->prio, cctx, cpu);
	if (!tctx->changing) {
		tctx->run_ns = 0;
		note_cpu(tctx, cpu);
	}
	tctx->changing = false;
	show(p, tctx, cctx);
	ask_again(p, tctx, cpu);
}

void OP(staircase5_tick, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx(cpu);

	if (cctx)
		look_around(p, cctx, cpu, balance_is_due(cctx));
}

/* The task gets a full slice, and goes to the tail of the stair where it begins. */
bool OP(staircase5_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *tctx = task_ctx(from);
	s32 cpu = scx_bpf_task_cpu(from);
	struct cpu_ctx *cctx = cpu_ctx(cpu);

	if (to || !tctx || !cctx)
		return false;
	charge(from, tctx);
	count(COUNT_YIELDS);
	if (!scx_bpf_dsq_nr_queued(cpu))
		count(COUNT_YIELDS_ALONE);
	begin_descent(from, tctx, tctx->level);
	to_tail(tctx, tctx->prio, cctx, cpu);
	set_slice(from, 0);
	return true;
}

void OP(staircase5_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tctx = task_ctx(p);
	struct cpu_ctx *cctx = cpu_ctx(scx_bpf_task_cpu(p));

	if (cctx)
		cctx->prio = NO_PRIO;
	if (!tctx)
		return;
	charge(p, tctx);
	leave_turn(tctx, runnable);
}

/* A child that ends in its first slice leaves its interval to its parent. */
static void refund(struct task_struct *p, struct task_ctx *tctx)
{
	struct task_struct *parent = p->real_parent;
	struct task_ctx *to = parent ? task_ctx(parent) : NULL;
	s64 most;

	if (!to || tctx->interval_ns <= 0)
		return;
	most = interval() * (to->level + 1);
	if (to->interval_ns < most)
		to->interval_ns = min(to->interval_ns + tctx->interval_ns, most);
}

void OP(staircase5_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tctx = task_ctx(p);

	if (!tctx || !falls_asleep(tctx, deq_flags))
		return;
	if (tctx->first && (p->flags & PF_EXITING))
		refund(p, tctx);
}

/* ---- Machine, load and unload ---- */

void OP_SLEEPABLE(staircase5_cpu_online, s32 cpu)
{
	return_cpu(cpu);
	nr_online++;
}

void OP(staircase5_cpu_offline, s32 cpu)
{
	leave_cpu(cpu);
	nr_online--;
}

s32 OP_SLEEPABLE(staircase5_init)
{
	const struct cpumask *online = scx_bpf_get_online_cpumask();

	nr_online = bpf_cpumask_weight(online);
	scx_bpf_put_cpumask(online);
	return prepare_queues();
}

void OP(staircase5_exit, struct scx_exit_info *info)
{
	report_exit(info);
}

POLICY(staircase5_ops,
       .init_task	= (void *)staircase5_init_task,
       .enable		= (void *)staircase5_enable,
       .select_cpu	= (void *)staircase5_select_cpu,
       .runnable	= (void *)staircase5_runnable,
       .set_weight	= (void *)staircase5_set_weight,
       .enqueue		= (void *)staircase5_enqueue,
       .dispatch	= (void *)staircase5_dispatch,
       .running		= (void *)staircase5_running,
       .tick		= (void *)staircase5_tick,
       .yield		= (void *)staircase5_yield,
       .stopping	= (void *)staircase5_stopping,
       .quiescent	= (void *)staircase5_quiescent,
       .cpu_online	= (void *)staircase5_cpu_online,
       .cpu_offline	= (void *)staircase5_cpu_offline,
       .init		= (void *)staircase5_init,
       .exit		= (void *)staircase5_exit,
       /* An exiting task is one like any other, and waits in its list. */
       .flags		= SCX_OPS_ENQ_EXITING,
       .name		= "staircase5");
