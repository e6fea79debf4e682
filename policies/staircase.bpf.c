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
 * Source: Colivas, "Staircase scheduler", patches 7.G (2.6.8-rc3-mm1, August
 * 2004) and 11.2 (May 2005), which bracket version 10.5, and "Using the
 * Staircase Scheduler for Linux Kernel 2.6", Sys Admin, September 2005.
 * Differs from the source: the text of 10.5 is lost, so the resume rule is
 * that of 11.2 without its scaling of sleep (resume=10), or that of 7.G
 * (resume=7); run time is counted in nanoseconds instead of ticks, an interval
 * still ends at a tick, and what it overran is taken off the next; a woken
 * task of the same stair with a fresh slice preempts as in 7.G, and to do so
 * goes before the running one, because behind it the preemption would change
 * nothing; a task whose nice value is changed at fork starts at its own stair;
 * a synchronous wakeup preempts if the task may use one CPU only, because the
 * kernel tells nobody then; the balancer is that of 2.6.3 without domains
 * (balance.bpf.h); no SMT logic, no SCHED_ISO; real-time tasks are none of a
 * policy's business; batch tasks are not raised while they hold kernel locks.
 *
 * SCHED_IDLE is the source's batch class, behind everybody and with slices of
 * ten times the length; today's SCHED_BATCH is a normal task unless
 * batch_idle=1.
 *
 * The kernel ends a policy under which a task waits too long (30 s), which the
 * source's rules allow. The guard against that, guard_ms, and kthreads_fast,
 * without which RCU's and per-CPU kernel threads wait behind hogs and stall a
 * kernel, are off in a simulation, as in the source, and on on a kernel.
 */
#include <guard.bpf.h>
#include <knobs.bpf.h>
#include <report.bpf.h>

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
KNOB(u64, jiffy_ns, 1000000, "ns", "the source's tick, in which the resume rules count", 1,
     10000000);
KNOB(bool, batch_idle, 0, "bool", "SCHED_BATCH is in the batch class too", 0, 1);
KNOB(bool, wake_idle, 0, "bool",
     "a woken or new task takes an idle CPU instead of its previous one", 0, 1);

/* ---- State ---- */

/* The kernel's scale: nice -20 is 100, nice 19 the last stair; the batch class comes behind. */
#define NICE_0_PRIO 120
#define LAST_STAIR 139
#define BATCH_PRIO 140

struct task_ctx {
	u64 key;		/* in its queue: stair and place; see percpu.bpf.h */
	u64 ready_ns;		/* since when it waits */
	u64 left_cpu_ns;	/* when it last ran or woke */
	u64 charged_ns;		/* the task's run time up to which the slices are true */
	u64 stamp_ns;		/* when that was */
	s64 slice_ns;		/* left of the full slice */
	s64 interval_ns;	/* left of the interval on this stair; below 0 when overrun */
	u64 run_ns;		/* length of the last run, since it came to its CPU */
	u64 total_ns;		/* runs that the resume rule adds up (totalrun) */
	s32 home;		/* the CPU that `key` belongs to */
	s32 last_cpu;		/* where it ran last */
	u32 prio;		/* its stair */
	u32 static_prio;	/* its top stair */
	u32 burst;		/* 0..max_burst() */
	bool batch;
	bool is_new;		/* has not slept under this policy */
	bool asleep;
	bool forked;		/* forked since its last wakeup */
	bool yielded;
	bool deep_sleep;	/* blocked uninterruptibly */
	bool requeue;		/* takes a new place when it is enqueued */
	bool sync;		/* woken by somebody who is about to sleep */
	bool changing;		/* off the CPU for a change of nice level or the like */
	bool rescued;		/* runs because the guard says so */
	bool in_local;		/* lost the CPU to a higher class, back without our say */
};

struct cpu_ctx {
	u64 places;		/* given so far; see percpu.bpf.h */
	struct guard guard;
	u64 busy_at_ns;		/* next look for work elsewhere */
	u64 switched_ns;	/* when the running task came */
	u32 prio;		/* of the running task; NO_PRIO if none of ours */
	bool preempted;		/* with compute: the running task is to go, but not yet */
	bool offline;
} __attribute__((aligned(64)));

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
	return compute ? 10 * rr_ns : rr_ns;
}

static __always_inline u32 max_burst(struct task_ctx *tctx)
{
	return LAST_STAIR - min(tctx->static_prio, (u32)LAST_STAIR);
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
	s64 used = full_slice(tctx) - tctx->slice_ns;
	s64 first = interval();
	u64 down;

	if (tctx->batch)
		return BATCH_PRIO;
	if (interactive && !compute && !(p->flags & PF_KTHREAD))
		first *= min(tctx->burst, max_burst(tctx)) + 1;
	if (used < first)
		return tctx->static_prio;
	down = 1 + (u64)(used - first) / (u64)interval();
	return min(tctx->static_prio + down, (u64)LAST_STAIR);
}

static __always_inline void lose_burst(struct task_ctx *tctx)
{
	if (tctx->burst)
		tctx->burst--;
}

/* The class and the top stair, from the kernel's fields. */
static void take_class(struct task_struct *p, struct task_ctx *tctx)
{
	tctx->static_prio = p->static_prio;
	tctx->batch = p->policy == SCHED_IDLE || (batch_idle && p->policy == SCHED_BATCH);
}

/* A full slice, from its top stair. */
static void begin_slice(struct task_struct *p, struct task_ctx *tctx)
{
	tctx->slice_ns = full_slice(tctx);
	tctx->interval_ns = full_interval(tctx);
	tctx->prio = effective_prio(p, tctx);
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

/*
 * The tick's work, done when the CPU decides: at the end of an interval the
 * task goes to the tail of its new stair, at the end of the slice to the top,
 * and has one burst less. Overruns are carried over.
 */
static void settle(struct task_struct *p, struct task_ctx *tctx, s32 cpu)
{
	struct cpu_ctx *cctx = cpu_ctx(cpu);

	charge(p, tctx);
	if (!cctx || (tctx->slice_ns > 0 && tctx->interval_ns > 0))
		return;
	count(COUNT_EXPIRED);
	if (tctx->slice_ns <= 0) {
		lose_burst(tctx);
		tctx->slice_ns += full_slice(tctx);
		if (tctx->slice_ns <= 0)
			tctx->slice_ns = full_slice(tctx);
	}
	tctx->interval_ns += full_interval(tctx);
	if (tctx->interval_ns <= 0 || tctx->interval_ns > full_interval(tctx))
		tctx->interval_ns = full_interval(tctx);
	tctx->prio = effective_prio(p, tctx);
	to_tail(tctx, tctx->prio, cctx, cpu);
}

/* How long the task may run at once. */
static __always_inline u64 turn(struct task_ctx *tctx)
{
	return max(min(tctx->slice_ns, tctx->interval_ns), 1LL);
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

	if (used >= tctx->slice_ns) {
		tctx->total_ns -= tctx->slice_ns;
		lose_burst(tctx);
		return;
	}
	tctx->slice_ns -= used;
	rest = (u64)tctx->slice_ns % (u64)interval();
	if (rest && !tctx->batch)
		tctx->interval_ns = rest;
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

	tctx->total_ns += tctx->run_ns;
	tctx->forked = false;
	if (whole_jiffies(tctx->total_ns) >= tctx->slice_ns &&
	    whole_jiffies(slept) < tctx->slice_ns) {
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
	bool tiny = tctx->run_ns < jiffy_ns || !interactive || compute;
	s64 total = tctx->total_ns + tctx->run_ns;

	if (!tctx->forked && !(tiny && (s64)tctx->run_ns + slept < interval())) {
		gain_burst(tctx);
		return;
	}
	tctx->forked = false;
	if (tctx->slice_ns - whole_jiffies(total) < (s64)jiffy_ns) {
		tctx->total_ns = 0;
		lose_burst(tctx);
	} else {
		tctx->total_ns = total;
		tctx->slice_ns -= whole_jiffies(total);
	}
}

static void wake_up(struct task_struct *p, struct task_ctx *tctx)
{
	s64 slept = scx_bpf_now() - tctx->left_cpu_ns;

	tctx->slice_ns = full_slice(tctx);
	tctx->interval_ns = full_interval(tctx);
	/* A task that comes in asleep has no history: it starts as a new one. */
	if (!tctx->is_new) {
		if (resume == 7)
			resume_7(tctx, slept);
		else
			resume_10(tctx, slept);
	}
	tctx->prio = effective_prio(p, tctx);
	/* A batch task may hold something that others want: once on the last stair. */
	if (tctx->batch && tctx->deep_sleep) {
		tctx->prio = LAST_STAIR;
		tctx->yielded = true;
	}
	tctx->deep_sleep = false;
	tctx->run_ns = 0;
}

/* ---- Callbacks, in the order of a task's life ---- */

/* The child goes on where its parent is, at the tail of the same stair, without burst. */
static void fork_from(struct task_struct *parent, struct task_ctx *tctx)
{
	struct task_ctx *from = task_ctx(parent);
	s64 ran;

	if (!from)
		return;
	ran = scx_bpf_now() - from->stamp_ns;
	from->forked = true;
	tctx->forked = false;
	tctx->prio = from->prio;
	tctx->slice_ns = max(from->slice_ns - ran, 1LL);
	tctx->interval_ns = max(from->interval_ns - ran, 1LL);
	if (tctx->static_prio != from->static_prio || tctx->batch != from->batch)
		tctx->prio = tctx->batch ? BATCH_PRIO : tctx->static_prio;
}

s32 OP_SLEEPABLE(staircase_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *tctx;

	tctx = bpf_task_storage_get(&task_ctxs, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!tctx || !report_init(p))
		return -ENOMEM;
	take_class(p, tctx);
	begin_slice(p, tctx);
	tctx->is_new = true;
	tctx->last_cpu = -1;
	tctx->charged_ns = p->se.sum_exec_runtime;
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
		come_in(p, tctx);
}

s32 OP(staircase_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *tctx = task_ctx(p);
	bool is_idle = false;

	if (tctx)
		tctx->sync = wake_flags & SCX_WAKE_SYNC;
	if (!wake_idle)
		return prev_cpu;
	return scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags & ~SCX_WAKE_SYNC, &is_idle);
}

void OP(staircase_runnable, struct task_struct *p, u64 enq_flags)
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
void OP(staircase_set_weight, struct task_struct *p, u32 weight)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	u32 was;
	bool was_batch;

	if (!tctx || !cctx)
		return;
	was = tctx->static_prio;
	was_batch = tctx->batch;
	take_class(p, tctx);
	if (was == tctx->static_prio && was_batch == tctx->batch)
		return;
	tctx->prio = tctx->batch ? BATCH_PRIO : tctx->static_prio;
	change_list(tctx, tctx->prio, cctx, cpu);
}

/* Whether `p`, which comes to `cpu`, takes it from the running task. */
static bool preempts(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	if (cctx->prio == NO_PRIO)
		return false;
	if (tctx->sync && cpu == (s32)bpf_get_smp_processor_id())
		return false;
	if (tctx->prio < cctx->prio)
		return true;
	return preempt_equal && !tctx->is_new && tctx->prio == cctx->prio &&
	       tctx->slice_ns == full_slice(tctx);
}

static void preempt(struct task_struct *p, struct cpu_ctx *cctx, s32 cpu)
{
	u64 ran = scx_bpf_now() - cctx->switched_ns;

	if (compute && ran < cache_delay_ns && !(p->flags & PF_KTHREAD)) {
		cctx->preempted = true;
		return;
	}
	count(COUNT_PREEMPTED);
	kick(cpu, SCX_KICK_PREEMPT);
}

/* Puts a task into the queue of `cpu` at its place, and preempts if it came by a wakeup. */
static void queue(struct task_struct *p, struct task_ctx *tctx, s32 cpu, u64 enq_flags)
{
	bool elsewhere = cpu != (s32)bpf_get_smp_processor_id();
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	bool arrives = (enq_flags & SCX_ENQ_WAKEUP) || (tctx->requeue && elsewhere);
	bool preempting;

	if (!cctx)
		return;
	preempting = arrives && preempts(p, tctx, cctx, cpu);
	if (preempting && tctx->prio == cctx->prio)
		to_head(tctx, tctx->prio, cctx, cpu);
	else if (tctx->requeue || tctx->home != cpu)
		to_tail(tctx, tctx->prio, cctx, cpu);
	scx_bpf_dsq_insert_vtime(p, cpu, turn(tctx), tctx->key, enq_flags);
	if (preempting)
		preempt(p, cctx, cpu);
}

void OP(staircase_enqueue, struct task_struct *p, u64 enq_flags)
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
	tctx->sync = false;
	tctx->changing = false;
	tctx->in_local = false;
}

/* The task is on the CPU: others compare themselves with its stair, and tools see it. */
static void show(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx)
{
	cctx->prio = tctx->rescued ? 0 : tctx->prio;
	report_task(p, tctx->prio, tctx->burst, 0);
}

/* A task that yielded returns to the stair that it deserves when its turn comes. */
static void end_yield(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	if (!tctx->yielded)
		return;
	tctx->yielded = false;
	tctx->prio = effective_prio(p, tctx);
	to_head(tctx, tctx->prio, cctx, cpu);
}

/* Lets the running task go on: a slice that dispatch sets means so. */
static void keep(struct task_struct *prev, struct task_ctx *tctx, s32 cpu)
{
	struct cpu_ctx *cctx = cpu_ctx(cpu);

	if (!cctx)
		return;
	end_yield(prev, tctx, cctx, cpu);
	set_slice(prev, turn(tctx));
	show(prev, tctx, cctx);
}

/* schedule(): the head of the best stair. `prev` is in no queue, but its key counts. */
void OP(staircase_dispatch, s32 cpu, struct task_struct *prev)
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

void OP(staircase_running, struct task_struct *p)
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
		end_yield(p, tctx, cctx, cpu);
		tctx->run_ns = 0;
		cctx->switched_ns = tctx->stamp_ns;
		cctx->preempted = false;
		note_cpu(tctx, cpu);
	}
	tctx->changing = false;
	show(p, tctx, cctx);
	ask_again(p, tctx, cpu);
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
	look_around(p, cctx, cpu, balance_is_due(cctx));
}

/* The task goes to the tail of the last stair, with a full slice and without burst. */
bool OP(staircase_yield, struct task_struct *from, struct task_struct *to)
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
	tctx->burst = 0;
	tctx->yielded = true;
	tctx->slice_ns = full_slice(tctx);
	tctx->interval_ns = full_interval(tctx);
	tctx->prio = tctx->batch ? BATCH_PRIO : LAST_STAIR;
	to_tail(tctx, tctx->prio, cctx, cpu);
	set_slice(from, 0);
	return true;
}

void OP(staircase_stopping, struct task_struct *p, bool runnable)
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

void OP(staircase_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tctx = task_ctx(p);

	if (!tctx || !falls_asleep(tctx, deq_flags))
		return;
	tctx->is_new = false;
	tctx->yielded = false;
	tctx->deep_sleep = p->__state & TASK_UNINTERRUPTIBLE;
}

/* ---- Machine, load and unload ---- */

void OP_SLEEPABLE(staircase_cpu_online, s32 cpu)
{
	return_cpu(cpu);
}

void OP(staircase_cpu_offline, s32 cpu)
{
	leave_cpu(cpu);
}

s32 OP_SLEEPABLE(staircase_init)
{
	return prepare_queues();
}

void OP(staircase_exit, struct scx_exit_info *info)
{
	report_exit(info);
}

POLICY(staircase_ops,
       .init_task	= (void *)staircase_init_task,
       .enable		= (void *)staircase_enable,
       .select_cpu	= (void *)staircase_select_cpu,
       .runnable	= (void *)staircase_runnable,
       .set_weight	= (void *)staircase_set_weight,
       .enqueue		= (void *)staircase_enqueue,
       .dispatch	= (void *)staircase_dispatch,
       .running		= (void *)staircase_running,
       .tick		= (void *)staircase_tick,
       .yield		= (void *)staircase_yield,
       .stopping	= (void *)staircase_stopping,
       .quiescent	= (void *)staircase_quiescent,
       .cpu_online	= (void *)staircase_cpu_online,
       .cpu_offline	= (void *)staircase_cpu_offline,
       .init		= (void *)staircase_init,
       .exit		= (void *)staircase_exit,
       /* An exiting task is one like any other, and waits in its list. */
       .flags		= SCX_OPS_ENQ_EXITING,
       .name		= "staircase");
