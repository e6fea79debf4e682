/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Staircase 10.5: hogs walk down a stair, sleepers stand longer on its top.
 *
 * Every task has a full slice, 200 ms at nice 0, that it uses in intervals of
 * 10 ms. It starts on the stair of its nice level and goes one stair down
 * after each interval; when the slice is used up it is back at the top. A task
 * that sleeps gets a fresh slice and earns burst: one more interval on the top
 * stair before the descent. The best stair runs, in turns, and who wakes on a
 * better stair preempts. No second array, no sleep average, no boost.
 *
 * Source: Kolivas, "Staircase scheduler", patches 7.G (2.6.8-rc3-mm1, August
 * 2004) and 11.2 (May 2005), which bracket version 10.5, and "Using the
 * Staircase Scheduler for Linux Kernel 2.6", Sys Admin, September 2005.
 * Differs from the source: the text of 10.5 is lost, so the resume rule is that of 11.2
 * without its scaling of sleep (resume=10), or that of 7.G (resume=7); run time is
 * counted in nanoseconds instead of ticks, an interval still ends at a tick, and what it
 * overran is taken off the next; a woken task of the same stair with a fresh slice
 * preempts as in 7.G, and to do so goes before the running one, because behind it the
 * preemption would change nothing, and a task that a real-time one has displaced counts
 * as running, so that a waker of that class is as good as an interrupt (not with
 * compute, where preemption is late); a task whose nice value is changed at fork starts
 * at its own stair; a synchronous wakeup preempts if the task may use one CPU only,
 * because the kernel tells nobody then, and today's kernel flags those of sockets, too,
 * which the source did not (sync_wakeups=0: none); the balancer is that of 2.6.3 without
 * domains (balance.bpf.h); no SMT logic, no SCHED_ISO; real-time tasks are none of a
 * policy's business; batch tasks are not raised while they hold kernel locks.
 *
 * SCHED_IDLE is the source's batch class, behind everybody and with slices of
 * ten times the length; today's SCHED_BATCH is a normal task unless
 * batch_idle=1.
 *
 * A kernel ends a policy under which a task waits for 30 s, which the source's
 * rules allow. guard_ms and kthreads_fast (guard.bpf.h), which keep it alive, are
 * off in a simulation, as in the source, and on on a kernel.
 */
#include <stairs.bpf.h>
#include <sync.bpf.h>

BPF_LICENSE();

/* ---- Tunables ---- */

KNOB(bool, interactive, 1, "bool", "burst lengthens the stay on the top stair", 0, 1);
KNOB(bool, compute, 0, "bool",
     "intervals of ten times the length, late preemption, and interactive off", 0, 1);
KNOB(u32, resume, 10, "version",
     "what a wakeup makes of the last slice: 7 as 7.G had it, 10 as 10.5", 7, 10);
KNOB(bool, preempt_equal, 1, "bool", "a fresh slice preempts on the same stair too", 0, 1);
KNOB(u64, rr_ns, 10000000, "ns", "interval on one stair", 1000000, 1000000000);
KNOB(u64, cache_delay_ns, 10000000, "ns",
     "with compute: a task runs so long before a better one preempts it", 0, 1000000000);
KNOB(bool, batch_idle, 0, "bool", "SCHED_BATCH is in the batch class too", 0, 1);

/* ---- State ---- */

/* The batch class comes behind the last stair. */
#define BATCH_PRIO (LAST_STAIR + 1)

struct task_ctx {
	struct queued q;
	struct slices s;
	u64 total_ns;		/* runs that the resume rule adds up (totalrun) */
	u32 burst;		/* 0..max_burst() */
	bool batch;
	bool is_new;		/* has not slept under this policy */
	bool forked;		/* forked since its last wakeup */
	bool yielded;
	bool deep_sleep;	/* blocked uninterruptibly */
};

struct cpu_ctx {
	struct cpu_queue q;
	u64 switched_ns;	/* when the running task came */
	u32 displaced;		/* stair of the task that a higher class displaced; 0: none */
	bool preempted;		/* with compute: the running task is to go, but not yet */
} __attribute__((aligned(64)));

CONTEXTS;
COUNTERS(STAIRS_COUNTERS);

/* ---- Slices and stairs ---- */

static __always_inline s64 interval(void)
{
	return compute ? 10 * rr_ns : rr_ns;
}

static __always_inline u32 max_burst(struct task_ctx *tctx)
{
	return LAST_STAIR - min(tctx->s.static_prio, (u32)LAST_STAIR);
}

/* nice -20: 40 intervals, 0: 20, 19: 1; ten times as many in the batch class. */
static s64 full_slice(struct task_ctx *tctx)
{
	s64 slice = interval() * (1 + max_burst(tctx));

	return tctx->batch ? 10 * slice : slice;
}

/* A batch task has no stairs: its interval is the whole slice. */
static __always_inline s64 full_interval(struct task_ctx *tctx)
{
	return tctx->batch ? full_slice(tctx) : interval();
}

/* The stair follows from what is used of the slice; burst intervals more on the top one. */
static u32 effective_prio(struct task_struct *p, struct task_ctx *tctx)
{
	s64 used = full_slice(tctx) - tctx->s.slice_ns;
	s64 first = interval();
	u64 down;

	if (tctx->batch)
		return BATCH_PRIO;
	if (interactive && !compute && !(p->flags & PF_KTHREAD))
		first *= min(tctx->burst, max_burst(tctx)) + 1;
	if (used < first)
		return tctx->s.static_prio;
	down = 1 + (u64)(used - first) / (u64)interval();
	return min(tctx->s.static_prio + down, (u64)LAST_STAIR);
}

static __always_inline void lose_burst(struct task_ctx *tctx)
{
	if (tctx->burst)
		tctx->burst--;
}

/* The class and the top stair, from the kernel's fields. */
static void take_class(struct task_struct *p, struct task_ctx *tctx)
{
	tctx->s.static_prio = p->static_prio;
	tctx->batch = p->policy == SCHED_IDLE || (batch_idle && p->policy == SCHED_BATCH);
}

/* A full slice, from its top stair. */
static void begin_slice(struct task_struct *p, struct task_ctx *tctx)
{
	tctx->s.slice_ns = full_slice(tctx);
	tctx->s.interval_ns = full_interval(tctx);
	tctx->q.prio = effective_prio(p, tctx);
}

/*
 * The tick's work, done when the CPU decides: at the end of an interval the
 * task goes to the tail of its new stair, at the end of the slice to the top,
 * and has one burst less. Overruns are carried over.
 */
static void settle(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx)
{
	charge(p, &tctx->q, &tctx->s);
	if (!has_expired(&tctx->s))
		return;
	count(COUNT_EXPIRED);
	if (tctx->s.slice_ns <= 0) {
		lose_burst(tctx);
		tctx->s.slice_ns += full_slice(tctx);
		if (tctx->s.slice_ns <= 0)
			tctx->s.slice_ns = full_slice(tctx);
	}
	tctx->s.interval_ns += full_interval(tctx);
	if (tctx->s.interval_ns <= 0 || tctx->s.interval_ns > full_interval(tctx))
		tctx->s.interval_ns = full_interval(tctx);
	tctx->q.prio = effective_prio(p, tctx);
	to_tail(&tctx->q, &cctx->q);
}

/* ---- Wakeup: what becomes of the last slice ---- */

static __always_inline s64 whole_jiffies(s64 ns)
{
	return ns - (s64)((u64)ns % jiffy_ns);
}

/* The slice goes on where the runs so far have brought it. */
static void continue_slice(struct task_ctx *tctx)
{
	s64 used = whole_jiffies(tctx->total_ns);
	u64 rest;

	if (used >= tctx->s.slice_ns) {
		tctx->total_ns -= tctx->s.slice_ns;
		lose_burst(tctx);
		return;
	}
	tctx->s.slice_ns -= used;
	rest = (u64)tctx->s.slice_ns % (u64)interval();
	if (rest && !tctx->batch)
		tctx->s.interval_ns = rest;
}

static __always_inline void gain_burst(struct task_ctx *tctx)
{
	if (!tctx->deep_sleep)
		tctx->burst = min(tctx->burst + 1, max_burst(tctx));
	tctx->total_ns = 0;
}

/* 10.5: sleep pays run time back; who has paid all of it gains burst. */
static void resume_10(struct task_ctx *tctx, s64 slept)
{
	bool forked = tctx->forked;

	tctx->total_ns += tctx->s.run_ns;
	tctx->forked = false;
	if (whole_jiffies(tctx->total_ns) >= tctx->s.slice_ns &&
	    whole_jiffies(slept) < tctx->s.slice_ns) {
		lose_burst(tctx);
		tctx->total_ns = 0;
		return;
	}
	if (!forked && !compute) {
		if (slept >= (s64)tctx->total_ns) {
			gain_burst(tctx);
			return;
		}
		tctx->total_ns -= slept;
	}
	continue_slice(tctx);
}

/* 7.G: only runs that a tick may miss continue the old slice. */
static void resume_7(struct task_ctx *tctx, s64 slept)
{
	bool tiny = tctx->s.run_ns < jiffy_ns || !interactive || compute;
	s64 total = tctx->total_ns + tctx->s.run_ns;

	if (!tctx->forked && !(tiny && (s64)tctx->s.run_ns + slept < interval())) {
		gain_burst(tctx);
		return;
	}
	tctx->forked = false;
	if (tctx->s.slice_ns - whole_jiffies(total) < (s64)jiffy_ns) {
		tctx->total_ns = 0;
		lose_burst(tctx);
	} else {
		tctx->total_ns = total;
		tctx->s.slice_ns -= whole_jiffies(total);
	}
}

static void wake_up(struct task_struct *p, struct task_ctx *tctx, u64 now)
{
	s64 slept = now - tctx->q.left_cpu_ns;

	tctx->s.slice_ns = full_slice(tctx);
	tctx->s.interval_ns = full_interval(tctx);
	/* A task that comes in asleep has no history: it starts as a new one. */
	if (!tctx->is_new) {
		if (resume == 7)
			resume_7(tctx, slept);
		else
			resume_10(tctx, slept);
	}
	tctx->q.prio = effective_prio(p, tctx);
	/* A batch task may hold something that others want: once on the last stair. */
	if (tctx->batch && tctx->deep_sleep) {
		tctx->q.prio = LAST_STAIR;
		tctx->yielded = true;
	}
	tctx->deep_sleep = false;
	tctx->s.run_ns = 0;
}

/* ---- Callbacks, in the order of a task's life ---- */

/* The child goes on where its parent is, at the tail of the same stair, without burst. */
static void fork_from(struct task_struct *parent, struct task_ctx *tctx)
{
	struct task_ctx *from = task_ctx(parent);
	s64 ran;

	if (!from)
		return;
	ran = scx_bpf_now() - from->q.stamp_ns;
	from->forked = true;
	tctx->q.prio = from->q.prio;
	tctx->s.slice_ns = max(from->s.slice_ns - ran, 1LL);
	tctx->s.interval_ns = max(from->s.interval_ns - ran, 1LL);
	if (tctx->s.static_prio != from->s.static_prio || tctx->batch != from->batch)
		tctx->q.prio = tctx->batch ? BATCH_PRIO : tctx->s.static_prio;
}

s32 OP_SLEEPABLE(staircase_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *tctx = new_task_ctx(p);

	if (!tctx)
		return -ENOMEM;
	take_class(p, tctx);
	begin_slice(p, tctx);
	tctx->is_new = true;
	tctx->q.charged_ns = p->se.sum_exec_runtime;
	if (args->fork) {
		fork_from(bpf_get_current_task_btf(), tctx);
		tctx->is_new = false;
	}
	return 0;
}

void OP(staircase_enable, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);

	if (tctx)
		come_in(p, &tctx->q);
}

s32 OP(staircase_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	note_sync(queued(p), wake_flags);
	return choose_cpu(p, prev_cpu, wake_flags, false);
}

void OP(staircase_runnable, struct task_struct *p, u64 enq_flags)
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
void OP(staircase_set_weight, struct task_struct *p, u32 weight)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	u32 was;
	bool was_batch;

	if (!tctx || !cctx)
		return;
	was = tctx->s.static_prio;
	was_batch = tctx->batch;
	take_class(p, tctx);
	if (was == tctx->s.static_prio && was_batch == tctx->batch)
		return;
	tctx->q.prio = tctx->batch ? BATCH_PRIO : tctx->s.static_prio;
	change_list(&tctx->q, tctx->q.prio, &cctx->q);
}

/* The stair of the task that runs, or will when a higher class returns the CPU; 0: none. */
static __always_inline u32 stair_on(struct cpu_ctx *cctx)
{
	if (cctx->q.prio != NO_PRIO)
		return cctx->q.prio;
	return compute ? 0 : cctx->q.chosen ?: cctx->displaced;
}

/* Whether `p`, which comes to `cpu`, takes it from a task of ours on `stair`. */
static bool preempts(struct task_ctx *tctx, struct cpu_ctx *cctx, u32 stair, s32 cpu)
{
	/* A waker that is about to sleep is the task that runs, or has a higher class. */
	if (cctx->q.prio != NO_PRIO && is_local_sync(&tctx->q, cpu))
		return false;
	if (tctx->q.prio < stair)
		return true;
	return preempt_equal && !tctx->is_new && tctx->q.prio == stair &&
	       tctx->s.slice_ns == full_slice(tctx);
}

static void preempt(struct task_struct *p, struct cpu_ctx *cctx, s32 cpu)
{
	/* A displaced task finds out by itself when it returns. */
	if (cctx->q.prio == NO_PRIO)
		return;
	if (compute && !(p->flags & PF_KTHREAD) &&
	    scx_bpf_now() - cctx->switched_ns < cache_delay_ns) {
		cctx->preempted = true;
		return;
	}
	count(COUNT_PREEMPTED);
	kick(cpu, SCX_KICK_PREEMPT);
}

/* Puts a task into the queue of its CPU at its place, and preempts if it came by a wakeup. */
static void queue(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, u64 enq_flags)
{
	s32 cpu = cctx->q.cpu;
	u32 stair = stair_on(cctx);
	bool comes = arrives(&tctx->q, cpu, enq_flags);
	bool preempting = comes && preempts(tctx, cctx, stair, cpu);

	if (preempting && tctx->q.prio == stair)
		to_head_of(&tctx->q, stair, &cctx->q);
	else if (tctx->q.requeue || tctx->q.home != cpu)
		to_tail(&tctx->q, &cctx->q);
	scx_bpf_dsq_insert_vtime(p, cpu, turn(&tctx->s), tctx->q.key, enq_flags);
	note_arrival(&cctx->q, comes);
	if (preempting)
		preempt(p, cctx, cpu);
}

void OP(staircase_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx(cpu);

	if (!comes_to_queue(p, tctx, enq_flags) || !cctx)
		return;
	/* The kernel may end a slice without asking dispatch: a local queue was not empty. */
	settle(p, tctx, cctx);
	/* Its turn is over: if it was displaced, it does not return by itself. */
	if (tctx->q.in_local)
		cctx->displaced = 0;
	if (!leaves_with_cpu(p, cpu, enq_flags))
		queue(p, tctx, cctx, enq_flags);
	end_enqueue(&tctx->q);
}

/* The task is on the CPU: others compare themselves with its stair, and tools see it. */
static void show(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx)
{
	cctx->q.prio = tctx->q.rescued ? 0 : tctx->q.prio;
	report_task(p, tctx->q.prio, tctx->burst, 0);
}

/* A task that yielded returns to the stair that it deserves when its turn comes. */
static void end_yield(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx)
{
	if (!tctx->yielded)
		return;
	tctx->yielded = false;
	tctx->q.prio = effective_prio(p, tctx);
	to_head_of(&tctx->q, tctx->q.prio, &cctx->q);
}

/* schedule(): the head of the best stair. `prev` is in no queue, but its key counts. */
void OP(staircase_dispatch, s32 cpu, struct task_struct *prev)
{
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	struct task_ctx *tctx;

	count(COUNT_SCHEDULE);
	if (!cctx || begin_choice(&cctx->q))
		return;
	tctx = could_go_on(prev) ? task_ctx(prev) : NULL;
	if (tctx) {
		settle(prev, tctx, cctx);
		tctx->q.stamp_ns = choice_ns(&cctx->q);
		balance_busy(&cctx->q, cpu);
		if (gives_way(&tctx->q, &cctx->q))
			return;
		end_yield(prev, tctx, cctx);
		/* A slice that dispatch sets lets it go on. */
		set_slice(prev, turn(&tctx->s));
		show(prev, tctx, cctx);
		return;
	}
	take_or_pull(cpu, !prev);
}

void OP(staircase_running, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx(cpu);

	if (!tctx || !cctx)
		return;
	tctx->q.stamp_ns = scx_bpf_now();
	if (tctx->q.home != cpu)
		to_tail(&tctx->q, &cctx->q);
	if (begins_turn(&tctx->q, &tctx->s, cpu)) {
		end_yield(p, tctx, cctx);
		cctx->switched_ns = tctx->q.stamp_ns;
		cctx->preempted = false;
	}
	cctx->displaced = 0;
	show(p, tctx, cctx);
	ask_again(p, &tctx->q, &cctx->q);
}

void OP(staircase_tick, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	u64 now = scx_bpf_now();

	if (!cctx)
		return;
	if (cctx->preempted && now - cctx->switched_ns >= cache_delay_ns) {
		cctx->preempted = false;
		count(COUNT_PREEMPTED);
		set_slice(p, 0);
	}
	end_tick(p, now);
}

/* The task goes to the tail of the last stair, with a full slice and without burst. */
bool OP(staircase_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *tctx = task_ctx(from);
	s32 cpu = scx_bpf_task_cpu(from);
	struct cpu_ctx *cctx = cpu_ctx(cpu);

	if (to || !tctx || !cctx)
		return false;
	charge(from, &tctx->q, &tctx->s);
	tctx->q.stamp_ns = scx_bpf_now();
	count_yield(cpu);
	tctx->burst = 0;
	tctx->yielded = true;
	tctx->s.slice_ns = full_slice(tctx);
	tctx->s.interval_ns = full_interval(tctx);
	tctx->q.prio = tctx->batch ? BATCH_PRIO : LAST_STAIR;
	to_tail(&tctx->q, &cctx->q);
	set_slice(from, 0);
	return true;
}

void OP(staircase_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx(cpu);

	free_cpu(cpu);
	if (!tctx || !cctx)
		return;
	cctx->displaced = runnable && !tctx->q.rescued ? tctx->q.prio : 0;
	charge(p, &tctx->q, &tctx->s);
	leave_turn(&tctx->q, runnable, scx_bpf_now());
}

void OP(staircase_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tctx = task_ctx(p);

	if (!tctx || !falls_asleep(&tctx->q, deq_flags))
		return;
	tctx->is_new = false;
	tctx->yielded = false;
	tctx->deep_sleep = p->__state & TASK_UNINTERRUPTIBLE;
}

POLICY_RIGHT("rank"); /* No guard: a better stair goes first for as long as it wants. */
POLICY(staircase_ops, LIFE_OPS(staircase), BALANCE_OPS, .name = "staircase");
