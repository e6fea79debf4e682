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
 * Source: Kolivas, "[PATCH]Staircase scheduler - experimental" (version 5),
 * linux-kernel mailing list, 25 March 2004.
 * Differs from the source: its patch is lost, and what the announcement leaves
 * open follows the patch 6.3 of June 2004 or is decided at the place where it
 * matters and marked "Decision"; the rule of 6.3 that punishes short waits for
 * a disk is left out; run time is counted in nanoseconds instead of ticks, an
 * interval still ends at a tick, and what it overran is taken off the next;
 * an interval is 10 ms times the number of CPUs, but of no more than
 * cpu_factor_max if that is set, because 64 CPUs mean turns of 12.8 s; the
 * balancer is that of 2.6.3, or with domains=1, which is another object, has
 * domains; real-time tasks are none of a policy's business; SCHED_IDLE is nice 19.
 *
 * A kernel ends a policy under which a task waits for 30 s, which the source's
 * rules allow. guard_ms and kthreads_fast (guard.bpf.h), which keep it alive, are
 * off in a simulation, as in the source, and on on a kernel, where cpu_factor_max
 * is 8.
 */
#include <stairs.bpf.h>

BPF_LICENSE();

/* ---- Tunables ---- */

KNOB(u64, rr_ns, 10000000, "ns", "interval on one stair, for each CPU of the machine", 1000000,
     1000000000);
KNOB_ON_KERNEL(u32, cpu_factor_max, 0, 8, "CPUs",
	       "if not 0, no more CPUs lengthen the interval", 0, 1024);
KNOB(u32, sub_jiffy, 1, "rule",
     "which wakeup is no sleep: 1 a short run's within an interval, "
     "2 a sleep below a jiffy, 0 none", 0, 2);
KNOB(bool, rise_from_here, 0, "bool",
     "a sleep lifts a task by one from the stair where it is, not from where it started", 0, 1);

/* ---- State ---- */

struct task_ctx {
	struct queued q;
	struct slices s;
	u32 level;		/* stairs below the best one at which descents start */
	bool first;		/* a child in its first slice */
};

struct cpu_ctx {
	struct cpu_queue q;
} __attribute__((aligned(64)));

CONTEXTS;
COUNTERS(STAIRS_COUNTERS);

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
	return LAST_STAIR + 1 - min(tctx->s.static_prio, (u32)LAST_STAIR);
}

static __always_inline s64 full_slice(struct task_ctx *tctx)
{
	return interval() * stairs(tctx);
}

static void take_class(struct task_struct *p, struct task_ctx *tctx)
{
	tctx->s.static_prio = p->policy == SCHED_IDLE ? LAST_STAIR : p->static_prio;
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
	tctx->q.prio = min(tctx->s.static_prio + tctx->level, (u32)LAST_STAIR);
	tctx->s.slice_ns = full_slice(tctx);
	tctx->s.interval_ns = interval() * (tctx->level + 1);
}

/* The next stay begins with what the last one overran. */
static void carry_over(struct task_ctx *tctx, s64 overrun)
{
	tctx->s.interval_ns += min(overrun, 0LL);
	if (tctx->s.interval_ns <= 0)
		tctx->s.interval_ns = interval();
}

/*
 * The tick's work, done when the CPU decides: at the end of an interval one
 * stair down, at the end of the slice back to the start of the next descent;
 * always to the tail.
 */
static void settle(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx)
{
	s64 slice, overrun;

	charge(p, &tctx->q, &tctx->s);
	if (!has_expired(&tctx->s))
		return;
	count(COUNT_EXPIRED);
	slice = tctx->s.slice_ns;
	overrun = tctx->s.interval_ns;
	if (slice <= 0) {
		begin_descent(p, tctx, tctx->level + 1);
		tctx->first = false;
		if (tctx->s.slice_ns + slice > 0)
			tctx->s.slice_ns += slice;
	} else {
		tctx->s.interval_ns = interval();
		if (!(p->flags & PF_KTHREAD))
			tctx->q.prio = min(tctx->q.prio + 1, (u32)LAST_STAIR);
	}
	carry_over(tctx, overrun);
	to_tail(&tctx->q, &cctx->q);
}

/*
 * Whether a wakeup ends a sleep; if not, the slice goes on. "The sub-jiffy case
 * is handled specially" is all that the announcement says. Decision, from 6.3: a
 * run that a tick may miss is no work that a sleep ended, if the sleep ends
 * within the interval. By the other reading it is the sleep that a tick may
 * miss. Whoever sleeps just before each tick gains by neither.
 */
static bool has_slept(struct slices *s, u64 slept)
{
	if (sub_jiffy == 1)
		return s->run_ns >= jiffy_ns || (s64)(s->run_ns + slept) >= interval();
	return sub_jiffy != 2 || slept >= jiffy_ns;
}

/*
 * "Every time a task sleeps it moves back up one priority." Decision: it is the
 * start of the descent that rises.
 */
static void wake_up(struct task_struct *p, struct task_ctx *tctx, u64 now)
{
	u32 level = tctx->level;

	if (!has_slept(&tctx->s, now - tctx->q.left_cpu_ns))
		return;
	if (rise_from_here)
		level = tctx->q.prio - min(tctx->q.prio, tctx->s.static_prio);
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
	ran = scx_bpf_now() - from->q.stamp_ns;
	slice = (max(from->s.slice_ns - (s64)ran, 1LL) + 1) >> 1;
	stay = (max(from->s.interval_ns - (s64)ran, 1LL) + 1) >> 1;
	tctx->s.slice_ns = min(slice, full_slice(tctx));
	tctx->s.interval_ns = min(stay, interval());
	tctx->first = true;
	from->s.slice_ns -= slice;
	from->s.interval_ns -= stay;
	/* The kernel's own count runs on, so it loses the same. */
	set_slice(parent, parent->scx.slice - min(parent->scx.slice, (u64)stay));
}

s32 OP_SLEEPABLE(staircase5_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *tctx = new_task_ctx(p);

	if (!tctx)
		return -ENOMEM;
	take_class(p, tctx);
	begin_descent(p, tctx, 0);
	tctx->q.charged_ns = p->se.sum_exec_runtime;
	if (args->fork)
		fork_from(bpf_get_current_task_btf(), tctx);
	return 0;
}

void OP(staircase5_enable, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);

	if (tctx)
		come_in(p, &tctx->q);
}

s32 OP(staircase5_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return choose_cpu(p, prev_cpu, wake_flags, false);
}

void OP(staircase5_runnable, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = task_ctx(p);
	u64 now;

	if (!tctx)
		return;
	tctx->q.asleep = false;
	if (!(enq_flags & SCX_ENQ_WAKEUP))
		return;
	now = scx_bpf_now();
	wake_up(p, tctx, now);
	begin_wait(&tctx->q, now);
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
	was = tctx->s.static_prio;
	take_class(p, tctx);
	if (was == tctx->s.static_prio)
		return;
	tctx->q.prio = tctx->s.static_prio;
	change_list(&tctx->q, tctx->q.prio, &cctx->q);
}

/* Puts a task into the queue of its CPU; a strictly better one that comes takes the CPU. */
static void queue(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, u64 enq_flags)
{
	s32 cpu = cctx->q.cpu;

	if (tctx->q.requeue || tctx->q.home != cpu)
		to_tail(&tctx->q, &cctx->q);
	scx_bpf_dsq_insert_vtime(p, cpu, turn(&tctx->s), tctx->q.key, enq_flags);
	if (!arrives(&tctx->q, cpu, enq_flags))
		return;
	note_arrival(&cctx->q, true);
	if (cctx->q.prio == NO_PRIO || tctx->q.prio >= cctx->q.prio)
		return;
	count(COUNT_PREEMPTED);
	kick(cpu, SCX_KICK_PREEMPT);
}

void OP(staircase5_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx(cpu);

	if (!comes_to_queue(p, tctx, enq_flags) || !cctx)
		return;
	/* The kernel may end a slice without asking dispatch: a local queue was not empty. */
	settle(p, tctx, cctx);
	if (!leaves_with_cpu(p, cpu, enq_flags))
		queue(p, tctx, cctx, enq_flags);
	end_enqueue(&tctx->q);
}

/* The task is on the CPU: others compare themselves with its stair, and tools see it. */
static void show(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx)
{
	cctx->q.prio = tctx->q.rescued ? 0 : tctx->q.prio;
	report_task(p, tctx->q.prio, tctx->level, 0);
}

/* schedule(): the head of the best stair. `prev` is in no queue, but its key counts. */
void OP(staircase5_dispatch, s32 cpu, struct task_struct *prev)
{
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	struct task_ctx *tctx;

	count(COUNT_SCHEDULE);
	if (!cctx)
		return;
	if (begin_choice(&cctx->q))
		return;
	tctx = could_go_on(prev) ? task_ctx(prev) : NULL;
	if (tctx) {
		settle(prev, tctx, cctx);
		tctx->q.stamp_ns = choice_ns(&cctx->q);
		balance_busy(&cctx->q, cpu);
		if (gives_way(&tctx->q, &cctx->q))
			return;
		/* A slice that dispatch sets lets it go on. */
		set_slice(prev, turn(&tctx->s));
		show(prev, tctx, cctx);
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
	tctx->q.stamp_ns = scx_bpf_now();
	if (tctx->q.home != cpu)
		to_tail(&tctx->q, &cctx->q);
	begins_turn(&tctx->q, &tctx->s, cpu);
	show(p, tctx, cctx);
	ask_again(p, &tctx->q, &cctx->q);
}

void OP(staircase5_tick, struct task_struct *p)
{
	end_tick(p, scx_bpf_now());
}

/* The task gets a full slice, and goes to the tail of the stair where it begins. */
bool OP(staircase5_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *tctx = task_ctx(from);
	s32 cpu = scx_bpf_task_cpu(from);
	struct cpu_ctx *cctx = cpu_ctx(cpu);

	if (to || !tctx || !cctx)
		return false;
	charge(from, &tctx->q, &tctx->s);
	tctx->q.stamp_ns = scx_bpf_now();
	count_yield(cpu);
	begin_descent(from, tctx, tctx->level);
	to_tail(&tctx->q, &cctx->q);
	set_slice(from, 0);
	return true;
}

void OP(staircase5_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tctx = task_ctx(p);

	free_cpu(scx_bpf_task_cpu(p));
	if (!tctx)
		return;
	charge(p, &tctx->q, &tctx->s);
	leave_turn(&tctx->q, runnable, scx_bpf_now());
}

/* A child that ends in its first slice leaves its interval to its parent. */
static void refund(struct task_struct *p, struct task_ctx *tctx)
{
	struct task_struct *parent = p->real_parent;
	struct task_ctx *to = parent ? task_ctx(parent) : NULL;
	s64 most;

	if (!to || tctx->s.interval_ns <= 0)
		return;
	most = interval() * (to->level + 1);
	if (to->s.interval_ns < most)
		to->s.interval_ns = min(to->s.interval_ns + tctx->s.interval_ns, most);
}

void OP(staircase5_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tctx = task_ctx(p);

	if (!tctx || !falls_asleep(&tctx->q, deq_flags))
		return;
	if (tctx->first && (p->flags & PF_EXITING))
		refund(p, tctx);
}

POLICY_RIGHT("rank"); /* New tasks begin on the best stair: a stream of them goes first. */
POLICY(staircase5_ops, LIFE_OPS(staircase5), BALANCE_OPS, .name = "staircase5");
