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
 * balanced as by 2.6.3 also with version=10, unless domains=1 asks for another
 * object of this policy, which has the scheduling domains of then; no task moves
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
#include <balance.bpf.h>
#include <life.bpf.h>
#include <sleep_avg.bpf.h>
#include <sync.bpf.h>

BPF_LICENSE();

/* ---- State ---- */

/* The tick ends turns, not the kernel's slice, which is longer than any. */
#define LONG_SLICE_NS (2 * NSEC_PER_SEC)

struct task_ctx {
	struct queued q;
	struct sleep_avg sleep;
	u64 parent_key;		/* of a new child: it goes before its parent */
	s64 time_slice_ns;	/* left of the slice; below 0 when overrun */
	s64 ticked_ns;		/* time_slice_ns at the last tick */
	bool is_new;		/* has not been woken under this policy */
	bool first_slice;	/* a child in its first slice */
	bool forked;		/* a child that has not been queued yet */
};

struct cpu_ctx {
	struct cpu_queue q;
	u64 expired_ns;		/* since when tasks are expired; 0: none since the swap */
	u32 best_expired;	/* best static priority among them; 0: there is none */
	bool expired;		/* somebody may be in the expired array */
} __attribute__((aligned(64)));

CONTEXTS;

enum {
	COUNT_KEPT = NR_BALANCE_COUNTERS,
	COUNT_ARRAY_SWITCHES,
	COUNT_EXPIRED,
	COUNT_STAYED_ACTIVE,
	COUNT_PIECES,
	COUNT_PREEMPTED,
	COUNT_YIELDS,
	COUNT_YIELDS_BOTH_EMPTY,
	COUNT_YIELDS_ACTIVE_EMPTY,
	COUNT_YIELDS_EXPIRED_EMPTY,
};

COUNTERS(BALANCE_COUNTERS, "kept", "array_switches", "expired", "stayed_active", "pieces",
	 "preempted", "yields", "yields_both_empty", "yields_active_empty",
	 "yields_expired_empty");

/* ---- Charging ---- */

/* Takes what the task has run since the last call off its slice. */
static void charge(struct task_struct *p, struct task_ctx *tctx, u64 now)
{
	/* Below 0 if fork charged time that an interrupt took. */
	s64 ran = p->se.sum_exec_runtime - tctx->q.charged_ns;

	tctx->q.charged_ns += ran;
	tctx->q.stamp_ns = now;
	tctx->time_slice_ns -= ran;
}

static void take_class(struct task_struct *p, struct task_ctx *tctx)
{
	tctx->sleep.static_prio = p->policy == SCHED_IDLE ? WORST_PRIO : p->static_prio;
}

/* ---- The tick: ends of slices and of pieces ---- */

/* EXPIRED_STARVING: the expired wait too long, or one of them has a better nice level. */
static bool is_starving(struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	u64 running = scx_bpf_dsq_nr_queued(cpu) + 1;
	u64 limit = (max_sleep() * running + 1) * JIFFY;

	return scx_bpf_now() - cctx->expired_ns >= limit ||
	       (cctx->best_expired && tctx->sleep.static_prio > cctx->best_expired);
}

static void to_expired(struct task_ctx *tctx, struct cpu_ctx *cctx)
{
	cctx->expired = true;
	to_tail_of(&tctx->q, expired_list(&cctx->q, tctx->q.prio), &cctx->q);
}

/* The slice is used up: a new one, in the expired array unless the task is interactive. */
static void expire(struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	tctx->q.prio = effective_prio(&tctx->sleep);
	tctx->time_slice_ns = full_slice(&tctx->sleep) + min(tctx->time_slice_ns, 0LL);
	if (tctx->time_slice_ns <= 0)
		tctx->time_slice_ns = full_slice(&tctx->sleep);
	tctx->ticked_ns = tctx->time_slice_ns;
	tctx->first_slice = false;
	count(COUNT_EXPIRED);
	if (!cctx->expired_ns)
		cctx->expired_ns = scx_bpf_now();
	if (is_interactive(&tctx->sleep, tctx->q.prio) && !is_starving(tctx, cctx, cpu)) {
		count(COUNT_STAYED_ACTIVE);
		to_tail(&tctx->q, &cctx->q);
		return;
	}
	to_expired(tctx, cctx);
	if (!cctx->best_expired || tctx->sleep.static_prio < cctx->best_expired)
		cctx->best_expired = tctx->sleep.static_prio;
}

/* TIMESLICE_GRANULARITY: 10 ms at full bonus, twice as long for each step below 9. */
static __always_inline u64 piece_ns(struct task_ctx *tctx)
{
	u32 steps = max(MAX_BONUS - bonus(&tctx->sleep), 1U) - 1;

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
	s64 full = full_slice(&tctx->sleep);
	u64 used = max(full - tctx->time_slice_ns, 0LL), before = max(full - tctx->ticked_ns, 0LL);

	return is_interactive(&tctx->sleep, tctx->q.prio) && used / piece != before / piece &&
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
	ran = scx_bpf_now() - from->q.stamp_ns;
	from->q.charged_ns += ran;
	from->q.stamp_ns += ran;
	from->time_slice_ns -= ran;
	left = max(from->time_slice_ns, 1LL);
	share = ((u64)left + JIFFY - 1) / JIFFY;
	share = min((share + 1) / 2 * (s64)JIFFY, left);
	tctx->time_slice_ns = share;
	tctx->first_slice = true;
	tctx->forked = true;
	fork_sleep_avg(&from->sleep, &tctx->sleep);
	from->time_slice_ns = left - share;
	from->ticked_ns = from->time_slice_ns;
	if (!from->time_slice_ns)
		expire(from, cctx, cpu);
	tctx->q.prio = from->q.prio;
	tctx->parent_key = from->q.key;
	tctx->q.home = cpu;
}

s32 OP_SLEEPABLE(o1_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *tctx = new_task_ctx(p);

	if (!tctx)
		return -ENOMEM;
	take_class(p, tctx);
	tctx->q.prio = effective_prio(&tctx->sleep);
	tctx->time_slice_ns = full_slice(&tctx->sleep);
	tctx->is_new = true;
	tctx->q.asleep = true;
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
	come_in(p, &tctx->q);
	tctx->sleep.timestamp_ns = tctx->q.stamp_ns;
}

s32 OP(o1_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return choose_cpu(p, prev_cpu, wake_flags, note_sync(queued(p), wake_flags));
}

/* Whether the task wakes without credit and without a look at the waker, which ran where it did. */
static __always_inline bool is_quiet(struct queued *q, s32 cpu)
{
	return q->last_cpu == cpu && is_local_sync(q, cpu);
}

void OP(o1_runnable, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = task_ctx(p);
	u64 now;

	if (!tctx)
		return;
	tctx->q.asleep = false;
	if (!(enq_flags & SCX_ENQ_WAKEUP))
		return;
	now = scx_bpf_now();
	/* A task that comes in asleep has no history: it starts as a new one. */
	if (!tctx->is_new) {
		bool quiet = is_quiet(&tctx->q, scx_bpf_task_cpu(p));

		end_sleep(p, &tctx->sleep, quiet, now);
		if (!quiet)
			tctx->q.prio = effective_prio(&tctx->sleep);
	}
	tctx->is_new = false;
	begin_wait(&tctx->q, now);
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
	was = tctx->sleep.static_prio;
	take_class(p, tctx);
	if (was == tctx->sleep.static_prio)
		return;
	/* A child's priority is its parent's until it is queued. */
	if (tctx->forked)
		return;
	tctx->q.prio = tctx->sleep.static_prio;
	array = list_of(tctx->q.key) >> ARRAY_SHIFT;
	change_list(&tctx->q, array << ARRAY_SHIFT | tctx->q.prio, &cctx->q);
}

/* Puts a task into the queue of `cpu`; a strictly better one that comes takes the CPU. */
static void queue(struct task_struct *p, struct task_ctx *tctx, s32 cpu, u64 enq_flags)
{
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	bool before_parent = tctx->forked && tctx->q.home == cpu;
	bool comes = arrives(&tctx->q, cpu, enq_flags);

	if (!cctx)
		return;
	if (before_parent)
		tctx->q.key = tctx->parent_key - 1;
	else if (tctx->q.requeue || tctx->q.home != cpu)
		to_tail(&tctx->q, &cctx->q);
	scx_bpf_dsq_insert_vtime(p, cpu, LONG_SLICE_NS, tctx->q.key, enq_flags);
	note_arrival(&cctx->q, comes);
	if (is_quiet(&tctx->q, cpu) || cctx->q.prio == NO_PRIO)
		return;
	if (before_parent || (comes && tctx->q.prio < cctx->q.prio)) {
		if (!before_parent)
			count(COUNT_PREEMPTED);
		kick(cpu, SCX_KICK_PREEMPT);
	}
}

void OP(o1_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);

	if (!comes_to_queue(p, tctx, enq_flags))
		return;
	if (!leaves_with_cpu(p, cpu, enq_flags))
		queue(p, tctx, cpu, enq_flags);
	tctx->forked = false;
	end_enqueue(&tctx->q);
}

/* The task is on the CPU: others compare themselves with it, and tools see it. */
static void show(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx)
{
	cctx->q.prio = tctx->q.rescued ? 0 : tctx->q.prio;
	report_task(p, tctx->q.prio, bonus(&tctx->sleep),
		    is_interactive(&tctx->sleep, tctx->q.prio) ? RUNSLICE_TASK_INTERACTIVE : 0);
}

/* When the best key is of the expired array, the active one is empty: they change roles. */
static void exchange_before(struct cpu_ctx *cctx, u64 key)
{
	if (list_of(key) >> ARRAY_SHIFT != ((cctx->q.array + 1) & ARRAY_MASK))
		return;
	count(COUNT_ARRAY_SWITCHES);
	cctx->q.array++;
	cctx->expired_ns = 0;
	cctx->best_expired = 0;
	cctx->expired = false;
}

/* schedule() for a task that can go on: it does if nobody is before it. */
static void decide(struct task_struct *prev, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	u64 key = 0;
	bool waits;

	charge(prev, tctx, choice_ns(&cctx->q));
	charge_sleep_avg(&tctx->sleep, choice_ns(&cctx->q));
	balance_busy(&cctx->q, cpu);
	waits = first_key(cpu, &key);
	if (waits && is_before(key, tctx->q.key)) {
		exchange_before(cctx, key);
		if (scx_bpf_dsq_move_to_local(cpu))
			return;
	}
	exchange_before(cctx, tctx->q.key);
	count(COUNT_KEPT);
	set_slice(prev, LONG_SLICE_NS);
	show(prev, tctx, cctx);
}

/* schedule() for a CPU whose task has gone. */
static void decide_anew(struct cpu_ctx *cctx, s32 cpu, bool was_idle)
{
	u64 key = 0;

	if (cctx->expired && first_key(cpu, &key))
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
	if (begin_choice(&cctx->q))
		return;
	tctx = could_go_on(prev) ? task_ctx(prev) : NULL;
	if (tctx)
		decide(prev, tctx, cctx, cpu);
	else
		decide_anew(cctx, cpu, !prev);
}

void OP(o1_running, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx(cpu);

	if (!tctx || !cctx)
		return;
	tctx->q.stamp_ns = scx_bpf_now();
	if (tctx->q.home != cpu)
		to_tail(&tctx->q, &cctx->q);
	if (!tctx->q.changing) {
		/* A woken task takes a new place. */
		if (end_wait(p, &tctx->sleep, tctx->q.stamp_ns)) {
			tctx->q.prio = effective_prio(&tctx->sleep);
			to_tail(&tctx->q, &cctx->q);
		}
		tctx->ticked_ns = tctx->time_slice_ns;
		note_cpu(&tctx->q, cpu);
	}
	tctx->q.changing = false;
	show(p, tctx, cctx);
	ask_again(p, &tctx->q, &cctx->q);
}

/* scheduler_tick() */
void OP(o1_tick, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	u64 now = scx_bpf_now();

	if (!tctx || !cctx)
		return;
	charge(p, tctx, now);
	if (tctx->time_slice_ns <= 0) {
		expire(tctx, cctx, cpu);
		set_slice(p, 0);
	} else if (ends_piece(tctx) && is_active(&cctx->q, tctx->q.key)) {
		count(COUNT_PIECES);
		tctx->q.prio = effective_prio(&tctx->sleep);
		to_tail(&tctx->q, &cctx->q);
		set_slice(p, 0);
	}
	tctx->ticked_ns = tctx->time_slice_ns;
	end_tick(p, now);
}

/* The four counters of the source's yield statistics; the second includes the first. */
static void count_yield(struct cpu_ctx *cctx, s32 cpu)
{
	bool active = false, expired = false;
	struct task_struct *p;

	for_each_queued(it, p, cpu, 0) {
		active = is_active(&cctx->q, p->scx.dsq_vtime);
		break;
	}
	for_each_queued(back, p, cpu, SCX_DSQ_ITER_REV) {
		expired = !is_active(&cctx->q, p->scx.dsq_vtime);
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
	to_expired(tctx, cctx);
	set_slice(from, 0);
	return true;
}

void OP(o1_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tctx = task_ctx(p);
	u64 now = scx_bpf_now();

	free_cpu(scx_bpf_task_cpu(p));
	if (!tctx)
		return;
	charge(p, tctx, now);
	if (runnable)
		charge_sleep_avg(&tctx->sleep, now);
	leave_turn(&tctx->q, runnable, now);
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
	if (tctx->sleep.avg_ns < to->sleep.avg_ns)
		to->sleep.avg_ns = to->sleep.avg_ns / 4 * 3 + tctx->sleep.avg_ns / 4;
}

void OP(o1_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tctx = task_ctx(p);

	if (!tctx || !falls_asleep(&tctx->q, deq_flags))
		return;
	/* do_exit() settles with the parent before schedule() charges the last run. */
	if (p->flags & PF_EXITING)
		leave_to_parent(p, tctx);
	begin_sleep(p, &tctx->sleep);
}

POLICY_RIGHT("rank"); /* The best list goes first until the expired starve: 1 s a runnable task. */
POLICY(o1_ops, LIFE_OPS(o1), BALANCE_OPS, .name = "o1");
