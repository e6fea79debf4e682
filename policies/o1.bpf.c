/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The O(1) scheduler of Linux 2.6: two arrays, and a memory for sleep.
 *
 * Every CPU has an active and an expired array of priority lists, and runs the
 * head of the best active list. A task that uses up its time slice, longer for
 * better nice levels, goes to the expired array with a new one; when the
 * active array is empty the two are exchanged. Who sleeps much gains up to
 * five levels, who computes loses up to five; those with enough bonus are
 * interactive and stay active when their slice ends, in turns of small pieces,
 * unless the expired ones starve.
 *
 * Source: kernel/sched.c of Linux 2.6.3 (version=3), as Torrey, Coleman and
 * Miller compare it with an MLFQ (2007); with version=10 the time slices and
 * the sleep limit of Linux 2.6.10.
 * Differs from the source: run time is counted in nanoseconds, a jiffy is 1 ms
 * whatever the kernel's tick, slices and pieces end at ticks, and what a slice
 * overran is taken off the next; only wakeups that find the CPU idle count as
 * made by an interrupt, because nothing tells a policy of the others; a run of
 * no time at all is not charged; a synchronous wakeup of a task that may use
 * one CPU only looks like any other; the waker's CPU is taken in a synchronous
 * wakeup if the task may run there, and today's kernel flags those of sockets,
 * too, which the source did not (sync_wakeups=0: none); CPUs and nodes are
 * balanced as by 2.6.3 also with version=10, which had scheduling domains, so
 * rows for several CPUs read "balancer of 2.6.3, no domains", and no task moves
 * when it executes a program; idle CPUs are called by the ticks of busy ones
 * instead of looking themselves, and if idle_ns=1000000 makes them look as in
 * the source, each look is a call of schedule(), too; real-time tasks are none
 * of a policy's business; SCHED_IDLE is nice 19.
 *
 * The kernel ends a policy under which a task waits too long (30 s), which the
 * source's rules allow with 30 tasks on a CPU. The guard against that,
 * guard_ms, and kthreads_fast, without which RCU's and per-CPU kernel threads
 * wait behind hogs and stall a kernel, are off in a simulation, as in the
 * source, and on on a kernel.
 */
#include <guard.bpf.h>
#include <knobs.bpf.h>
#include <report.bpf.h>

BPF_LICENSE();

/* ---- Tunables ---- */

KNOB(u32, version, 3, "2.6.x", "slices and sleep limit: 3 as Linux 2.6.3, 10 as 2.6.10", 3, 10);
KNOB(bool, wake_idle, 0, "bool",
     "a woken or new task takes an idle CPU instead of its previous one", 0, 1);
KNOB(bool, sync_wakeups, 1, "bool",
     "a synchronous waker takes its task along, as at pipes of the source; 0: none, as at sockets",
     0, 1);
KNOB(bool, disk_case, 1, "bool",
     "waits for a disk earn less than other sleep; 0: the same, as Torrey and others tried", 0, 1);

/* ---- State ---- */

/* Worse than any static priority. */
#define NO_EXPIRED_PRIO 140

/* The tick ends turns, not the kernel's slice, which is longer than any. */
#define LONG_SLICE_NS (2 * NSEC_PER_SEC)

/* A list is a priority in an array; arrays have numbers that grow with each exchange. */
#define ARRAY_SHIFT 8
#define ARRAY_MASK 0xfff

struct task_ctx {
	u64 key;		/* in its queue: array, priority, place; see percpu.bpf.h */
	u64 ready_ns;		/* since when it waits */
	u64 left_cpu_ns;	/* when it last ran or woke */
	u64 charged_ns;		/* the task's run time up to which time_slice_ns is true */
	u64 timestamp_ns;	/* last switch, decision or wakeup */
	u64 sleep_avg_ns;	/* 0..max_sleep() */
	u64 parent_key;		/* of a new child: it goes before its parent */
	u64 stamp_ns;		/* up to when time_slice_ns is true */
	s64 time_slice_ns;	/* left of the slice; below 0 when overrun */
	s64 ticked_ns;		/* time_slice_ns at the last tick */
	s32 home;		/* the CPU that `key` belongs to */
	s32 last_cpu;		/* where it ran last */
	s32 activated;		/* enum activated */
	s32 credit;		/* interactive_credit */
	u32 prio;
	u32 static_prio;
	bool is_new;		/* has not been woken under this policy */
	bool asleep;
	bool deep_sleep;	/* blocked uninterruptibly */
	bool first_slice;	/* a child in its first slice */
	bool forked;		/* a child that has not been queued yet */
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
	u64 array;		/* number of the active array */
	u64 expired_ns;		/* since when tasks are expired; 0: none since the swap */
	u32 best_expired;	/* best static priority among them */
	u32 prio;		/* of the running task; NO_PRIO if none of ours */
	bool offline;
} __attribute__((aligned(64)));

enum {
	COUNT_SCHEDULE,
	COUNT_KEPT,
	COUNT_ARRAY_SWITCHES,
	COUNT_EXPIRED,
	COUNT_STAYED_ACTIVE,
	COUNT_PIECES,
	COUNT_PREEMPTED,
	COUNT_PICKED_ELSEWHERE,
	COUNT_YIELDS,
	COUNT_YIELDS_BOTH_EMPTY,
	COUNT_YIELDS_ACTIVE_EMPTY,
	COUNT_YIELDS_EXPIRED_EMPTY,
	COUNT_LB_IDLE,
	COUNT_LB_BUSY,
	COUNT_LB_RESCHED,
	COUNT_LB_IMBALANCE,
	COUNT_LB_NOT_FOUND,
	COUNT_PULLED,
	COUNT_PULLED_FROM,
	COUNT_GUARDED,
};

COUNTERS("schedule", "kept", "array_switches", "expired", "stayed_active", "pieces",
	 "preempted", "picked_elsewhere", "yields", "yields_both_empty", "yields_active_empty",
	 "yields_expired_empty", "lb_idle", "lb_busy", "lb_resched", "lb_imbalance",
	 "lb_not_found", "pulled", "pulled_from", "guarded");

#include <percpu.bpf.h>
#include <life.bpf.h>

/* Lists of the active array and of the expired one behind it. */
static __always_inline u64 active_list(struct cpu_ctx *cctx, u32 prio)
{
	return (cctx->array & ARRAY_MASK) << ARRAY_SHIFT | prio;
}

static __always_inline u64 expired_list(struct cpu_ctx *cctx, u32 prio)
{
	return ((cctx->array + 1) & ARRAY_MASK) << ARRAY_SHIFT | prio;
}

static __always_inline bool is_active(struct cpu_ctx *cctx, u64 key)
{
	return list_of(key) >> ARRAY_SHIFT == (cctx->array & ARRAY_MASK);
}

/* The expired array is robbed first, because its tasks are not in the cache. */
static __always_inline u64 pull_order(u64 key, s32 from)
{
	struct cpu_ctx *cctx = cpu_ctx(from);
	u64 prio = list_of(key) & ((1 << ARRAY_SHIFT) - 1);

	return cctx && is_active(cctx, key) ? prio + 256 : prio;
}

static __always_inline void place_pulled(struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	to_tail(tctx, active_list(cctx, tctx->prio), cctx, cpu);
}

#include <balance.bpf.h>
#include <sleep_avg.bpf.h>

/* ---- Charging ---- */

/* Takes what the task has run since the last call off its slice. */
static void charge(struct task_struct *p, struct task_ctx *tctx)
{
	/* Below 0 if fork charged time that an interrupt took. */
	s64 ran = p->se.sum_exec_runtime - tctx->charged_ns;

	tctx->charged_ns += ran;
	tctx->stamp_ns = scx_bpf_now();
	tctx->time_slice_ns -= ran;
}

static void take_class(struct task_struct *p, struct task_ctx *tctx)
{
	tctx->static_prio = p->policy == SCHED_IDLE ? WORST_PRIO : p->static_prio;
}

/* ---- The tick: ends of slices and of pieces ---- */

/* EXPIRED_STARVING: the expired wait too long, or one of them has a better nice level. */
static bool is_starving(struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	u64 running = scx_bpf_dsq_nr_queued(cpu) + 1;
	u64 limit = (max_sleep() * running + 1) * JIFFY;

	return scx_bpf_now() - cctx->expired_ns >= limit ||
	       tctx->static_prio > cctx->best_expired;
}

/* The slice is used up: a new one, in the expired array unless the task is interactive. */
static void expire(struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	tctx->prio = effective_prio(tctx);
	tctx->time_slice_ns = full_slice(tctx) + min(tctx->time_slice_ns, 0LL);
	if (tctx->time_slice_ns <= 0)
		tctx->time_slice_ns = full_slice(tctx);
	tctx->ticked_ns = tctx->time_slice_ns;
	tctx->first_slice = false;
	count(COUNT_EXPIRED);
	if (!cctx->expired_ns)
		cctx->expired_ns = scx_bpf_now();
	if (is_interactive(tctx) && !is_starving(tctx, cctx, cpu)) {
		count(COUNT_STAYED_ACTIVE);
		to_tail(tctx, active_list(cctx, tctx->prio), cctx, cpu);
		return;
	}
	to_tail(tctx, expired_list(cctx, tctx->prio), cctx, cpu);
	cctx->best_expired = min(cctx->best_expired, tctx->static_prio);
}

/* TIMESLICE_GRANULARITY: 10 ms at full bonus, twice as long for each step below 9. */
static __always_inline u64 piece_ns(struct task_ctx *tctx)
{
	u32 steps = max(MAX_BONUS - bonus(tctx), 1U) - 1;

	return (10 * JIFFY * nr_cpus) << steps;
}

/*
 * Interactive tasks of one priority take turns. The source asks at each tick
 * whether the used part of the slice is a multiple of the piece; here, whether
 * a multiple was passed since the last tick.
 */
static bool ends_piece(struct task_ctx *tctx)
{
	u64 piece = piece_ns(tctx);
	s64 full = full_slice(tctx);
	u64 used = max(full - tctx->time_slice_ns, 0LL), before = max(full - tctx->ticked_ns, 0LL);

	return is_interactive(tctx) && used / piece != before / piece &&
	       tctx->time_slice_ns >= (s64)piece;
}

/* ---- Callbacks, in the order of a task's life ---- */

/*
 * Parent and child share the slice, in whole jiffies, and the child takes most
 * of the parent's bonus. A parent with nothing left expires, and the child
 * goes where its parent is. Called in the parent's context.
 */
static void fork_from(struct task_struct *parent, struct task_ctx *tctx)
{
	struct task_ctx *from = task_ctx(parent);
	s32 cpu = scx_bpf_task_cpu(parent);
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	s64 ran, left, share;

	if (!from || !cctx)
		return;
	/* The kernel's count is as old as the last tick. */
	ran = scx_bpf_now() - from->stamp_ns;
	from->charged_ns += ran;
	from->stamp_ns += ran;
	from->time_slice_ns -= ran;
	left = max(from->time_slice_ns, 1LL);
	share = ((u64)left + JIFFY - 1) / JIFFY;
	share = min((share + 1) / 2 * (s64)JIFFY, left);
	tctx->time_slice_ns = share;
	tctx->first_slice = true;
	tctx->forked = true;
	tctx->sleep_avg_ns = bonus(from) * CHILD_PENALTY / 100 * max_sleep() / MAX_BONUS * JIFFY;
	from->sleep_avg_ns = bonus(from) * max_sleep() / MAX_BONUS * JIFFY;
	from->time_slice_ns = left - share;
	from->ticked_ns = from->time_slice_ns;
	if (!from->time_slice_ns)
		expire(from, cctx, cpu);
	tctx->prio = from->prio;
	tctx->parent_key = from->key;
	tctx->home = cpu;
}

s32 OP_SLEEPABLE(o1_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *tctx;

	tctx = bpf_task_storage_get(&task_ctxs, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!tctx || !report_init(p))
		return -ENOMEM;
	take_class(p, tctx);
	tctx->prio = effective_prio(tctx);
	tctx->time_slice_ns = full_slice(tctx);
	tctx->is_new = true;
	tctx->asleep = true;
	tctx->last_cpu = -1;
	if (args->fork) {
		fork_from(bpf_get_current_task_btf(), tctx);
		tctx->is_new = false;
	}
	return 0;
}

void OP(o1_enable, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);

	if (!tctx)
		return;
	come_in(p, tctx);
	tctx->timestamp_ns = tctx->stamp_ns;
}

/* A task wakes where it ran, or with a synchronous waker; nobody looks for an idle CPU. */
s32 OP(o1_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 this_cpu = bpf_get_smp_processor_id();
	bool sync = sync_wakeups && (wake_flags & SCX_WAKE_SYNC);
	bool is_idle = false;

	if (tctx)
		tctx->sync = sync;
	if (wake_idle)
		return scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags & ~SCX_WAKE_SYNC, &is_idle);
	return sync && may_run_on(p, this_cpu) ? this_cpu : prev_cpu;
}

/* Whether the waker is about to leave this CPU to the task that it wakes. */
static __always_inline bool is_local_sync(struct task_ctx *tctx, s32 cpu)
{
	return tctx->sync && tctx->last_cpu == cpu && cpu == (s32)bpf_get_smp_processor_id();
}

static void wake_up(struct task_struct *p, struct task_ctx *tctx)
{
	u64 now = scx_bpf_now();

	if (tctx->deep_sleep)
		tctx->activated = WOKEN_DEEP;
	tctx->deep_sleep = false;
	if (is_local_sync(tctx, scx_bpf_task_cpu(p)))
		return;
	credit_sleep(p, tctx, now - tctx->timestamp_ns);
	/* Whoever interrupts the idle task is an interrupt. */
	if (tctx->activated == NOT_WOKEN)
		tctx->activated = bpf_get_current_task_btf()->pid ? WOKEN_BY_TASK :
								    WOKEN_BY_INTERRUPT;
	tctx->timestamp_ns = now;
}

void OP(o1_runnable, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = task_ctx(p);

	if (!tctx)
		return;
	tctx->asleep = false;
	if (!(enq_flags & SCX_ENQ_WAKEUP))
		return;
	/* A task that comes in asleep has no history: it starts as a new one. */
	if (!tctx->is_new)
		wake_up(p, tctx);
	tctx->is_new = false;
	begin_wait(tctx);
}

/* A new nice level: the bonus is lost until it is computed anew; the array stays. */
void OP(o1_set_weight, struct task_struct *p, u32 weight)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	u64 array;
	u32 was;

	if (!tctx || !cctx)
		return;
	was = tctx->static_prio;
	take_class(p, tctx);
	if (was == tctx->static_prio)
		return;
	/* A child's priority is its parent's until it is queued. */
	if (tctx->forked)
		return;
	tctx->prio = tctx->static_prio;
	array = list_of(tctx->key) >> ARRAY_SHIFT;
	change_list(tctx, array << ARRAY_SHIFT | tctx->prio, cctx, cpu);
}

/* Puts a task into the queue of `cpu`; a strictly better one that comes takes the CPU. */
static void queue(struct task_struct *p, struct task_ctx *tctx, s32 cpu, u64 enq_flags)
{
	bool elsewhere = cpu != (s32)bpf_get_smp_processor_id();
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	bool arrives = (enq_flags & SCX_ENQ_WAKEUP) || (tctx->requeue && elsewhere);
	bool before_parent = tctx->forked && tctx->home == cpu;

	if (!cctx)
		return;
	if (before_parent)
		tctx->key = tctx->parent_key - 1;
	else if (tctx->requeue || tctx->home != cpu)
		to_tail(tctx, active_list(cctx, tctx->prio), cctx, cpu);
	scx_bpf_dsq_insert_vtime(p, cpu, LONG_SLICE_NS, tctx->key, enq_flags);
	if (is_local_sync(tctx, cpu) || cctx->prio == NO_PRIO)
		return;
	if (before_parent || (arrives && tctx->prio < cctx->prio)) {
		if (!before_parent)
			count(COUNT_PREEMPTED);
		kick(cpu, SCX_KICK_PREEMPT);
	}
}

void OP(o1_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);

	if (runs_at_once(p, enq_flags))
		return;
	if (!tctx) {
		scx_bpf_error("no context for task %d", (u64)p->pid);
		return;
	}
	if (is_leaving(cpu))
		insert_leaving(p, SCX_SLICE_DFL, enq_flags);
	else
		queue(p, tctx, cpu, enq_flags);
	tctx->requeue = false;
	tctx->forked = false;
	tctx->sync = false;
	tctx->changing = false;
	tctx->in_local = false;
}

/* The task is on the CPU: others compare themselves with it, and tools see it. */
static void show(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx)
{
	cctx->prio = tctx->rescued ? 0 : tctx->prio;
	report_task(p, tctx->prio, bonus(tctx),
		    is_interactive(tctx) ? RUNSLICE_TASK_INTERACTIVE : 0);
}

/* When the best key is of the expired array, the active one is empty: they change roles. */
static void exchange_before(struct cpu_ctx *cctx, u64 key)
{
	if (list_of(key) >> ARRAY_SHIFT != ((cctx->array + 1) & ARRAY_MASK))
		return;
	count(COUNT_ARRAY_SWITCHES);
	cctx->array++;
	cctx->expired_ns = 0;
	cctx->best_expired = NO_EXPIRED_PRIO;
}

/* schedule() for a task that can go on: it does if nobody is before it. */
static void decide(struct task_struct *prev, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	u64 key = 0;
	bool waits;

	charge(prev, tctx);
	charge_sleep_avg(tctx);
	balance_busy(cctx, cpu);
	waits = first_key(cpu, &key);
	if (waits && is_before(key, tctx->key)) {
		exchange_before(cctx, key);
		if (scx_bpf_dsq_move_to_local(cpu))
			return;
	}
	exchange_before(cctx, tctx->key);
	count(COUNT_KEPT);
	set_slice(prev, LONG_SLICE_NS);
	show(prev, tctx, cctx);
}

/* schedule() for a CPU whose task has gone. */
static void decide_anew(struct cpu_ctx *cctx, s32 cpu, bool was_idle)
{
	u64 key = 0;

	if (first_key(cpu, &key))
		exchange_before(cctx, key);
	if (!take_or_pull(cpu, was_idle))
		cctx->expired_ns = 0;
}

/* schedule(): the head of the best active list. `prev` is in no queue, but its key counts. */
void OP(o1_dispatch, s32 cpu, struct task_struct *prev)
{
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	struct task_ctx *tctx;

	count(COUNT_SCHEDULE);
	if (!cctx)
		return;
	if (rescue(cpu))
		return;
	tctx = able_to_go_on(prev);
	if (tctx)
		decide(prev, tctx, cctx, cpu);
	else
		decide_anew(cctx, cpu, !prev);
}

/* A woken task gets the CPU: its wait was sleep too, in part, and it takes a new place. */
static void first_run(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	u64 waited = scx_bpf_now() - tctx->timestamp_ns;

	if (tctx->activated == WOKEN_BY_TASK)
		waited = waited * ON_RUNQUEUE_WEIGHT / 128;
	if (tctx->activated > NOT_WOKEN) {
		credit_sleep(p, tctx, waited);
		to_tail(tctx, active_list(cctx, tctx->prio), cctx, cpu);
	}
	tctx->activated = NOT_WOKEN;
	tctx->timestamp_ns = scx_bpf_now();
	tctx->ticked_ns = tctx->time_slice_ns;
	note_cpu(tctx, cpu);
}

void OP(o1_running, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx(cpu);

	if (!tctx || !cctx)
		return;
	tctx->stamp_ns = scx_bpf_now();
	if (tctx->home != cpu)
		to_tail(tctx, active_list(cctx, tctx->prio), cctx, cpu);
	if (!tctx->changing)
		first_run(p, tctx, cctx, cpu);
	tctx->changing = false;
	show(p, tctx, cctx);
	ask_again(p, tctx, cpu);
}

/* scheduler_tick() */
void OP(o1_tick, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx(cpu);

	if (!tctx || !cctx)
		return;
	charge(p, tctx);
	if (tctx->time_slice_ns <= 0) {
		expire(tctx, cctx, cpu);
		set_slice(p, 0);
	} else if (ends_piece(tctx) && is_active(cctx, tctx->key)) {
		count(COUNT_PIECES);
		tctx->prio = effective_prio(tctx);
		to_tail(tctx, active_list(cctx, tctx->prio), cctx, cpu);
		set_slice(p, 0);
	}
	tctx->ticked_ns = tctx->time_slice_ns;
	look_around(p, cctx, cpu, balance_is_due(cctx));
}

/* The four counters of the source's yield statistics; the second includes the first. */
static void count_yield(struct cpu_ctx *cctx, s32 cpu)
{
	bool active = false, expired = false;
	struct task_struct *p;

	for_each_queued(it, p, cpu, 0) {
		active = is_active(cctx, p->scx.dsq_vtime);
		break;
	}
	for_each_queued(back, p, cpu, SCX_DSQ_ITER_REV) {
		expired = !is_active(cctx, p->scx.dsq_vtime);
		break;
	}
	count(COUNT_YIELDS);
	if (!active && !expired)
		count(COUNT_YIELDS_BOTH_EMPTY);
	if (!active)
		count(COUNT_YIELDS_ACTIVE_EMPTY);
	else if (!expired)
		count(COUNT_YIELDS_EXPIRED_EMPTY);
}

/* The task goes to the expired array with what is left of its slice. */
bool OP(o1_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *tctx = task_ctx(from);
	s32 cpu = scx_bpf_task_cpu(from);
	struct cpu_ctx *cctx = cpu_ctx(cpu);

	if (to || !tctx || !cctx)
		return false;
	count_yield(cctx, cpu);
	to_tail(tctx, expired_list(cctx, tctx->prio), cctx, cpu);
	set_slice(from, 0);
	return true;
}

void OP(o1_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tctx = task_ctx(p);
	struct cpu_ctx *cctx = cpu_ctx(scx_bpf_task_cpu(p));

	if (cctx)
		cctx->prio = NO_PRIO;
	if (!tctx)
		return;
	charge(p, tctx);
	if (runnable)
		charge_sleep_avg(tctx);
	leave_turn(tctx, runnable);
}

/*
 * A child that ends in its first slice leaves the rest to its parent, and one
 * that slept less than its parent takes from the parent's sleep_avg.
 */
static void leave_to_parent(struct task_struct *p, struct task_ctx *tctx)
{
	s64 most = (version == 10 ? 4 : 1) * MAX_SLICE * (s64)JIFFY;
	struct task_struct *parent = p->real_parent;
	struct task_ctx *to = parent ? task_ctx(parent) : NULL;

	if (!to)
		return;
	if (tctx->first_slice && tctx->time_slice_ns > 0) {
		to->time_slice_ns = min(to->time_slice_ns + tctx->time_slice_ns, most);
		to->ticked_ns = to->time_slice_ns;
	}
	if (tctx->sleep_avg_ns < to->sleep_avg_ns)
		to->sleep_avg_ns = to->sleep_avg_ns / 4 * 3 + tctx->sleep_avg_ns / 4;
}

void OP(o1_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tctx = task_ctx(p);

	if (!tctx || !falls_asleep(tctx, deq_flags))
		return;
	/* do_exit() settles with the parent before schedule() charges the last run. */
	if (p->flags & PF_EXITING)
		leave_to_parent(p, tctx);
	charge_sleep_avg(tctx);
	tctx->deep_sleep = disk_case && (p->__state & TASK_UNINTERRUPTIBLE);
}

/* ---- Machine, load and unload ---- */

void OP_SLEEPABLE(o1_cpu_online, s32 cpu)
{
	return_cpu(cpu);
}

void OP(o1_cpu_offline, s32 cpu)
{
	leave_cpu(cpu);
}

s32 OP_SLEEPABLE(o1_init)
{
	u32 cpu;

	for (cpu = 0; cpu < NR_CPUS_MAX; cpu++) {
		struct cpu_ctx *cctx = cpu_ctx(cpu);

		if (cctx)
			cctx->best_expired = NO_EXPIRED_PRIO;
	}
	return prepare_queues();
}

void OP(o1_exit, struct scx_exit_info *info)
{
	report_exit(info);
}

POLICY(o1_ops,
       .init_task	= (void *)o1_init_task,
       .enable		= (void *)o1_enable,
       .select_cpu	= (void *)o1_select_cpu,
       .runnable	= (void *)o1_runnable,
       .set_weight	= (void *)o1_set_weight,
       .enqueue		= (void *)o1_enqueue,
       .dispatch	= (void *)o1_dispatch,
       .running		= (void *)o1_running,
       .tick		= (void *)o1_tick,
       .yield		= (void *)o1_yield,
       .stopping	= (void *)o1_stopping,
       .quiescent	= (void *)o1_quiescent,
       .cpu_online	= (void *)o1_cpu_online,
       .cpu_offline	= (void *)o1_cpu_offline,
       .init		= (void *)o1_init,
       .exit		= (void *)o1_exit,
       /* An exiting task is one like any other, and waits in its list. */
       .flags		= SCX_OPS_ENQ_EXITING,
       .name		= "o1");
