/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Virtual run time as Linux before 6.6 has it: who has had the least is first, a
 * queue has a time that only grows, and who comes is placed by it.
 *
 * A task's virtual run time advances by 1024/weight of its run time. The time of
 * a queue (min_vruntime) follows the least of those in it. A task that leaves for
 * another queue takes along how far it is from that; one that has slept comes
 * back at most a part of a period behind; a child begins one turn behind.
 *
 * Source: kernel/sched/fair.c of Linux 5.10; the constants are the defaults of its
 * sysctls on one CPU.
 * Differs from the source: as weights.bpf.h.
 *
 * The contexts of tasks and CPUs stand here, for a policy that has no other.
 */
#ifndef RUNSLICE_LEAST_TIME_BPF_H
#define RUNSLICE_LEAST_TIME_BPF_H

#include <weights.bpf.h>

/* ---- Tunables ---- */

KNOB(u64, latency_ns, 6000000, "ns",
     "period in which each of few tasks has a turn; grows with the CPUs as the kernel scales it",
     100000, 1000000000);
KNOB(u64, min_granularity_ns, 750000, "ns",
     "least turn, of which so many as fit make the period longer; grows as the period", 100000,
     1000000000);
KNOB(bool, gentle_sleepers, 1, "bool",
     "who slept is at most half a period behind; 0: a whole one (GENTLE_FAIR_SLEEPERS)", 0, 1);
KNOB(bool, start_debit, 1, "bool",
     "a child begins one turn behind the others (START_DEBIT)", 0, 1);

/* ---- State ---- */

struct task_ctx {
	struct queued q;	/* q.key: virtual run time in that of q.home; see `at` */
	u64 turn_ns;		/* its run time when its turn began (prev_sum_exec_runtime) */
	u32 weight;
	s32 at;			/* asleep: whose time q.key is in; or NOWHERE */
	bool is_idle;		/* of the policy SCHED_IDLE */
	bool slept;		/* since it was last in a queue */
	bool lowered;		/* got a worse nice level while it ran */
	bool skipped;		/* it has yielded */
};

struct cpu_ctx {
	u32 weight;		/* of the running task */
	u64 load;		/* sum of the weights of the queue and of who runs */
	u64 runnable;		/* how many these are */
	u64 least;		/* virtual run time that only grows (min_vruntime) */
	struct cpu_queue q;
	u64 vruntime;		/* of the running task, at stamp_ns */
	u64 stamp_ns;
	u32 failed;		/* looks for work in a row that moved nothing */
	bool is_idle;		/* it is of the policy SCHED_IDLE */
	bool rescued;		/* it runs because the guard says so */
} __attribute__((aligned(64)));

CONTEXTS;

enum {
	COUNT_BEHIND = NR_PERCPU_COUNTERS,	/* sleepers that were moved forward */
	NR_LEAST_TIME_COUNTERS,
};

#define LEAST_TIME_COUNTERS PERCPU_COUNTERS, "behind"

/* ---- Virtual run time ---- */

static __always_inline u64 later(u64 one, u64 other)
{
	return is_before(one, other) ? other : one;
}

/* What the running task has run since it was last charged, in virtual time. */
static __always_inline u64 uncharged(struct cpu_ctx *cctx)
{
	s64 ran = scx_bpf_now() - cctx->stamp_ns;

	return cctx->q.prio == NO_PRIO || ran < 0 ? 0 : to_virtual(ran, cctx->weight);
}

/* update_min_vruntime(); `key` is that of the running task, if it counts. */
static void advance_least(struct cpu_ctx *cctx, s32 cpu, bool runs, u64 key)
{
	u64 first = key;

	if (!first_key(cpu, &first)) {
		if (!runs)
			return;
		first = key;
	} else if (runs && is_before(key, first)) {
		first = key;
	}
	cctx->least = later(cctx->least, first);
}

/* Charges what the task has run since the last call (update_curr). */
static void charge(struct task_struct *p, struct task_ctx *tctx)
{
	s64 ran = p->se.sum_exec_runtime - tctx->q.charged_ns;
	struct cpu_ctx *cctx = cpu_ctx(tctx->q.home);

	tctx->q.charged_ns += ran;
	if (ran <= 0 || tctx->q.home == NOWHERE || !cctx)
		return;
	tctx->q.key += to_virtual(ran, tctx->weight);
	cctx->vruntime = tctx->q.key;
	cctx->stamp_ns = scx_bpf_now();
	advance_least(cctx, tctx->q.home, true, tctx->q.key);
}

/* sched_slice(): the task's part of a period in which so many have a turn. */
static u64 slice_of(u64 runnable, u64 load, u32 weight)
{
	u64 least = min_granularity_ns * scale_of_cpus();
	u64 period = latency_ns * scale_of_cpus();
	u64 fit = (latency_ns + min_granularity_ns - 1) / max(min_granularity_ns, 1ULL);

	if (runnable > fit)
		period = runnable * least;
	return period * weight / max(load, 1ULL);
}

/* ---- Coming to a queue and leaving it ---- */

struct place {
	u64 key;
};

/* Takes the task out of its queue's sums, if it is in one. */
static bool forget(struct task_ctx *tctx)
{
	s32 home = __sync_lock_test_and_set(&tctx->q.home, NOWHERE);
	struct cpu_ctx *cctx;

	if (home == NOWHERE)
		return false;
	cctx = cpu_ctx(home);
	if (cctx) {
		__sync_fetch_and_sub(&cctx->load, tctx->weight);
		__sync_fetch_and_sub(&cctx->runnable, 1);
	}
	return true;
}

static void enter(struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu, struct place *place)
{
	tctx->q.key = place->key;
	tctx->at = NOWHERE;
	tctx->slept = false;
	__sync_fetch_and_add(&cctx->load, tctx->weight);
	__sync_fetch_and_add(&cctx->runnable, 1);
	tctx->q.home = cpu;
}

/* Where a task of the queue of `source` stands when it moves to that of `target`. */
static struct place place_moved(struct cpu_ctx *source, struct cpu_ctx *target,
				struct task_ctx *tctx)
{
	struct place place = { .key = tctx->q.key - source->least + target->least };

	return place;
}

/* The task leaves its queue: to sleep, or for a change or another CPU (dequeue_entity). */
static void leave(struct task_ctx *tctx, bool sleeps)
{
	s32 home = tctx->q.home;
	struct cpu_ctx *cctx = cpu_ctx(home);

	if (home == NOWHERE || !cctx)
		return;
	forget(tctx);
	tctx->slept = sleeps;
	tctx->at = home;
	if (!sleeps) {
		tctx->q.key -= cctx->least;
		tctx->at = NOWHERE;
	}
	/* One that only changes is back before time passes. */
	if (sleeps)
		advance_least(cctx, home, false, 0);
}

/* place_entity() and enqueue_entity(): the task counts in the queue of `cpu` from now on. */
static bool settle(struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	u64 credit = latency_ns * scale_of_cpus();
	struct cpu_ctx *old = cpu_ctx(tctx->at);
	struct place place;

	if (tctx->q.home == cpu)
		return false;
	leave(tctx, false);
	place.key = tctx->q.key;
	if (tctx->at == NOWHERE)
		place.key += cctx->least;
	else if (tctx->at != cpu && old)
		place.key += cctx->least - old->least;
	if (tctx->slept) {
		if (gentle_sleepers)
			credit /= 2;
		if (is_before(place.key, cctx->least - credit)) {
			place.key = cctx->least - credit;
			count(COUNT_BEHIND);
		}
	}
	enter(tctx, cctx, cpu, &place);
	return true;
}

/* task_fork_fair(): where the parent is, but with START_DEBIT at least one turn behind. */
static void begin(struct task_ctx *tctx)
{
	struct cpu_ctx *cctx = cpu_ctx(bpf_get_smp_processor_id());
	u64 slice;

	tctx->q.key = 0;
	if (!cctx || cctx->q.prio == NO_PRIO)
		return;
	tctx->q.key = cctx->vruntime + uncharged(cctx) - cctx->least;
	if (!start_debit) {
		tctx->q.key = later(tctx->q.key, 0);
		return;
	}
	slice = slice_of(cctx->runnable + 1, cctx->load + tctx->weight, tctx->weight);
	tctx->q.key = later(tctx->q.key, to_virtual(slice, tctx->weight));
}

#endif /* RUNSLICE_LEAST_TIME_BPF_H */
