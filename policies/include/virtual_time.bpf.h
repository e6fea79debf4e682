/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Virtual time as Linux 6.18 has it: weights, the average of a queue, who is
 * eligible, and the lag that a task takes along when it leaves.
 *
 * A task's virtual time advances by 1024/weight of its run time. The average
 * of a queue, weighted, is where everybody would be under ideal sharing; a
 * queue keeps it as the sum of weight * (virtual time - base), with a base
 * nearby so that the numbers stay small. The running task counts, with what it
 * has run since it was last charged.
 *
 * Source: kernel/sched/fair.c and core.c of Linux 6.18.
 * Differs from the source: the base is the average itself, where the source takes
 * the least virtual time; who sleeps while it is ahead is not in the average any
 * more until it wakes (DELAY_DEQUEUE keeps it there).
 *
 * The contexts of tasks and CPUs stand here, for a policy that has no other.
 */
#ifndef RUNSLICE_VIRTUAL_TIME_BPF_H
#define RUNSLICE_VIRTUAL_TIME_BPF_H

#include <knobs.bpf.h>
#include <weights.bpf.h>

/* ---- Tunables ---- */

KNOB(u64, base_slice_ns, 700000, "ns",
     "slice on one CPU; times 2 from 2 CPUs on, 3 from 4, 4 from 8, as the kernel scales it",
     100000, 100000000);
KNOB(bool, delay_dequeue, 0, "bool",
     "who sleeps while it is ahead stays until it no longer is, as from 6.12 on; 0: as in 6.6", 0,
     1);
KNOB(u64, tick_ns, 4000000, "ns", "period of the kernel's tick, which limits the lag that is kept",
     1000000, 10000000);

/* ---- State ---- */

struct task_ctx {
	struct queued q;	/* q.key: deadline, in the virtual time of q.home */
	u64 vruntime;		/* in the virtual time of q.home */
	s64 lag;		/* behind the average when it left its queue; below 0: ahead */
	u32 weight;
	bool is_idle;		/* of the policy SCHED_IDLE */
	bool keeps_request;	/* its key is relative to its vruntime */
	bool starts;		/* a child that has not been queued yet */
	bool lowered;		/* got a worse nice level while it ran */
	s32 delayed_at;		/* the CPU where it sleeps while it is ahead, or NOWHERE */
	u64 delayed_in;		/* how often that queue had been empty then */
};

struct cpu_ctx {
	struct bpf_spin_lock lock;	/* of the next three */
	u32 weight;		/* of the running task */
	u64 base;		/* a virtual time near the average */
	s64 sum;		/* of weight * (vruntime - base) over the queue and who runs */
	u64 load;		/* sum of the weights */
	u64 emptied;		/* how often nobody was left */
	struct cpu_queue q;
	u64 vruntime;		/* of the running task, at stamp_ns */
	u64 stamp_ns;
	u64 protected_to;	/* before this vruntime nobody takes the CPU from it (vprot) */
	u32 failed;		/* looks for work in a row that moved nothing */
	bool is_idle;		/* it is of the policy SCHED_IDLE */
	bool rescued;		/* it runs because the guard says so */
} __attribute__((aligned(64)));

CONTEXTS;

enum {
	COUNT_REQUESTS = NR_PERCPU_COUNTERS,	/* that were served */
	NR_VIRTUAL_TIME_COUNTERS,
};

#define VIRTUAL_TIME_COUNTERS PERCPU_COUNTERS, "requests"

/* ---- The slice ---- */

/* sysctl_sched_base_slice. */
static u64 slice_ns(void)
{
	return base_slice_ns * scale_of_cpus();
}

/* ---- The average of a queue ---- */

struct average {
	u64 base;
	s64 sum;
	u64 load;
};

static __always_inline s64 to_average(s64 sum, u64 load)
{
	/* Rounded down, so that a task at the average is eligible. */
	if (sum < 0)
		sum -= load - 1;
	return divide(sum, load);
}

/* What the running task has run since it was last charged, in virtual time. */
static __always_inline u64 uncharged(struct cpu_ctx *cctx)
{
	s64 ran = scx_bpf_now() - cctx->stamp_ns;

	return cctx->q.prio == NO_PRIO || ran < 0 ? 0 : to_virtual(ran, cctx->weight);
}

/* The average of the queue of `cctx` and of who runs there, now. */
static void measure(struct cpu_ctx *cctx, struct average *average)
{
	u64 more = uncharged(cctx);

	bpf_spin_lock(&cctx->lock);
	average->base = cctx->base;
	average->sum = cctx->sum;
	average->load = cctx->load;
	bpf_spin_unlock(&cctx->lock);
	average->sum += more * cctx->weight;
}

/* avg_vruntime() */
static __always_inline u64 virtual_time(struct average *average)
{
	return average->base + (average->load ? to_average(average->sum, average->load) : 0);
}

/* entity_eligible(): it has had no more than the average. */
static __always_inline bool is_eligible(struct average *average, u64 vruntime)
{
	return (s64)(vruntime - average->base) * (s64)average->load <= average->sum;
}

/* Adds a task to the average or, with a negative weight, takes it out. */
static void weigh(struct cpu_ctx *cctx, u64 vruntime, s64 weight)
{
	bpf_spin_lock(&cctx->lock);
	cctx->load += weight;
	if (cctx->load && (s64)cctx->load > 0) {
		cctx->sum += (s64)(vruntime - cctx->base) * weight;
	} else {
		cctx->load = 0;
		cctx->emptied++;
		cctx->sum = 0;
		cctx->base = vruntime;
	}
	bpf_spin_unlock(&cctx->lock);
}

/* Moves the average on by what its running task has run, and the base to the average. */
static void advance(struct cpu_ctx *cctx, u64 more, u32 weight)
{
	s64 step;

	bpf_spin_lock(&cctx->lock);
	cctx->sum += more * weight;
	if (cctx->load) {
		step = to_average(cctx->sum, cctx->load);
		cctx->base += step;
		cctx->sum -= step * (s64)cctx->load;
	}
	bpf_spin_unlock(&cctx->lock);
}

/* Charges what the task has run since the last call (update_curr). */
static void charge(struct task_struct *p, struct task_ctx *tctx)
{
	s64 ran = p->se.sum_exec_runtime - tctx->q.charged_ns;
	struct cpu_ctx *cctx = cpu_ctx(tctx->q.home);
	u64 more;

	tctx->q.charged_ns += ran;
	if (ran <= 0 || tctx->q.home == NOWHERE || !cctx)
		return;
	more = to_virtual(ran, tctx->weight);
	tctx->vruntime += more;
	advance(cctx, more, tctx->weight);
	cctx->vruntime = tctx->vruntime;
	cctx->stamp_ns = scx_bpf_now();
}

/* update_deadline(): whether the request is served. The next one begins. */
static bool renew_request(struct task_ctx *tctx)
{
	if (is_before(tctx->vruntime, tctx->q.key))
		return false;
	tctx->q.key = tctx->vruntime + to_virtual(slice_ns(), tctx->weight);
	count(COUNT_REQUESTS);
	return true;
}

/* ---- Coming to a queue and leaving it ---- */

/* entity_lag(): limited to two slices or one tick, whatever is more. */
static s64 lag_of(struct average *average, struct task_ctx *tctx)
{
	s64 limit = to_virtual(max(2 * slice_ns(), tick_ns), tctx->weight);
	s64 lag = virtual_time(average) - tctx->vruntime;

	return lag > limit ? limit : lag < -limit ? -limit : lag;
}

struct place {
	u64 vruntime;
	u64 key;
};

/* place_entity(): the lag is stretched, because the task itself moves the average. */
static __always_inline struct place place_in(struct average *average, struct task_ctx *tctx,
					     s64 lag)
{
	u64 request = to_virtual(slice_ns(), tctx->weight);
	struct place place = { .vruntime = virtual_time(average) };

	if (average->load)
		place.vruntime -= divide(lag * (s64)(average->load + tctx->weight), average->load);
	if (tctx->keeps_request)
		request = tctx->q.key;
	else if (tctx->starts)
		request /= 2;
	place.key = place.vruntime + request;
	return place;
}

/* Takes the task out of its queue's average, if it is in one. */
static bool forget(struct task_ctx *tctx)
{
	s32 home = __sync_lock_test_and_set(&tctx->q.home, NOWHERE);
	struct cpu_ctx *cctx;

	if (home == NOWHERE)
		return false;
	cctx = cpu_ctx(home);
	if (cctx)
		weigh(cctx, tctx->vruntime, -(s64)tctx->weight);
	return true;
}

/* The task leaves its queue: to sleep, or for a change or another CPU, which cost no request. */
static void leave(struct task_ctx *tctx, bool sleeps)
{
	struct cpu_ctx *cctx = cpu_ctx(tctx->q.home);
	struct average average;

	if (tctx->q.home == NOWHERE || !cctx)
		return;
	measure(cctx, &average);
	tctx->lag = lag_of(&average, tctx);
	tctx->keeps_request = !sleeps;
	tctx->delayed_at = NOWHERE;
	if (sleeps && delay_dequeue && tctx->lag < 0) {
		tctx->delayed_at = tctx->q.home;
		tctx->delayed_in = cctx->emptied;
	}
	if (!sleeps)
		tctx->q.key -= tctx->vruntime;
	forget(tctx);
}

/*
 * Whether a task that fell asleep while it was ahead would still be in the queue
 * of `cpu`: the average has not caught up with it, and somebody was there all the
 * time. Otherwise that queue would have let it go, with no lag (DELAY_ZERO).
 */
static bool is_delayed(struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu,
		       struct average *average)
{
	return tctx->delayed_at == cpu && tctx->delayed_in == cctx->emptied && average->load &&
	       is_before(virtual_time(average), tctx->vruntime);
}

/* The same before a CPU is chosen: such a task wakes where it is (ttwu_runnable()). */
static bool stays_delayed(struct task_ctx *tctx, s32 cpu)
{
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	struct average average;

	if (tctx->delayed_at != cpu || !cctx || cctx->q.offline)
		return false;
	measure(cctx, &average);
	return is_delayed(tctx, cctx, cpu, &average);
}

static void enter(struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu, struct place *place)
{
	tctx->vruntime = place->vruntime;
	tctx->q.key = place->key;
	tctx->keeps_request = false;
	tctx->starts = false;
	tctx->lag = 0;
	weigh(cctx, place->vruntime, tctx->weight);
	tctx->q.home = cpu;
}

/* The task counts in the queue of `cpu` from now on. True if it did not before. */
static bool settle(struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	struct average average;
	struct place place;

	if (tctx->q.home == cpu)
		return false;
	leave(tctx, false);
	measure(cctx, &average);
	if (is_delayed(tctx, cctx, cpu, &average)) {
		/* Less ahead than it was, with what is left of its request. */
		tctx->lag = lag_of(&average, tctx);
		tctx->keeps_request = true;
		tctx->q.key -= tctx->vruntime;
	} else if (tctx->delayed_at != NOWHERE) {
		tctx->lag = 0;
	}
	tctx->delayed_at = NOWHERE;
	place = place_in(&average, tctx, tctx->lag);
	enter(tctx, cctx, cpu, &place);
	return true;
}

/* Where a task of the queue of `source` stands when it moves to that of `target`. */
static struct place place_moved(struct cpu_ctx *source, struct cpu_ctx *target,
				struct task_ctx *tctx)
{
	struct average there, here;
	struct place place;

	measure(source, &there);
	measure(target, &here);
	place = place_in(&here, tctx, lag_of(&there, tctx));
	place.key = place.vruntime + tctx->q.key - tctx->vruntime;
	return place;
}

#endif /* RUNSLICE_VIRTUAL_TIME_BPF_H */
