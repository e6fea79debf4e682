/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where tasks run as Linux 6.18 has it, and 5.10 in the same outline: a CPU for a
 * child and for a woken task, and the balancer between CPUs, over the queues of
 * percpu.bpf.h.
 *
 * A policy includes this file behind the one that has its contexts, virtual_time.bpf.h
 * or least_time.bpf.h: `load`, `weight` and `failed` of a CPU, `weight` of a task, and
 * place_moved(), forget() and enter(), which take a task from one queue to another.
 *
 * Source: kernel/sched/fair.c of Linux 6.18.
 * Differs from the source: one rule for CPUs without work, which take one task
 * from the CPU with the greatest load, and one for busy ones, which take half of
 * what that has more; loads are weights of what is runnable; no domains.
 */
#ifndef RUNSLICE_FAIR_BALANCE_BPF_H
#define RUNSLICE_FAIR_BALANCE_BPF_H

#include <weights.bpf.h>

KNOB(u32, busy_ms, 16, "ms", "how often a busy CPU looks for work elsewhere, times CPUs; 0 never",
     0, 10000);
KNOB(u64, cache_hot_ns, 500000, "ns", "balancing leaves tasks alone that ran so recently", 0,
     1000000000);

/* A busy CPU leaves differences below this alone: 17 % (imbalance_pct of a domain of cores). */
#define IMBALANCE_PERCENT 117

/* ---- A CPU for a task that comes ---- */

/* sched_balance_find_dst_cpu() in outline: where the least weight is. */
static s32 least_loaded(struct task_struct *p, s32 prev_cpu)
{
	u64 least = ~0ULL;
	s32 best = prev_cpu;
	int cpu;

	for_each_number(cpu, 0, nr_cpus) {
		struct cpu_ctx *cctx = cpu_ctx(cpu);

		if (!cctx || cctx->q.offline || cctx->load >= least || !may_run_on(p, cpu))
			continue;
		least = cctx->load;
		best = cpu;
	}
	return best;
}

/* wake_affine(): the waker's CPU, if less waits there than where the task ran. */
static bool is_lighter(s32 this_cpu, s32 prev_cpu, u32 weight, bool sync)
{
	struct cpu_ctx *here = cpu_ctx(this_cpu), *there = cpu_ctx(prev_cpu);
	u64 load;

	if (!here || !there || here->q.offline)
		return false;
	/* The waker is about to leave. */
	if (sync && !scx_bpf_dsq_nr_queued(this_cpu))
		return true;
	load = here->load + weight;
	if (sync && here->q.prio != NO_PRIO)
		load -= min((u64)here->weight, load);
	return load * 100 < there->load * (100 + (IMBALANCE_PERCENT - 100) / 2);
}

/* ---- Balancing ---- */

/* No more tasks are moved in one go (sysctl_sched_nr_migrate). */
#define PULLS_MAX 32

/* A weight is shifted by so much at most. */
#define FAILURES_MAX 16U

/* The CPU with the greatest load of those where a task waits; -1 if there is none. */
static s32 find_busiest(s32 this_cpu, u64 *load)
{
	s32 busiest = -1;
	int cpu;

	*load = 0;
	for_each_number(cpu, 0, nr_cpus) {
		struct cpu_ctx *cctx = cpu_ctx(cpu);

		if (!cctx || cpu == this_cpu || scx_bpf_dsq_nr_queued(cpu) <= 0 ||
		    cctx->load <= *load)
			continue;
		*load = cctx->load;
		busiest = cpu;
	}
	return busiest;
}

/* Busy CPUs that failed so often take what is hot in a cache, too (cache_nice_tries). */
#define HOT_FAILURES 1

/*
 * detach_tasks(): moves a task of the queue of `from` that weighs no more than
 * `most`, or twice of it after one failure, and so on; returns its weight.
 */
static u32 pull_one(s32 from, s32 to, u64 most, u32 failed)
{
	struct cpu_ctx *source = cpu_ctx(from), *target = cpu_ctx(to);
	u64 now = scx_bpf_now();
	struct task_struct *p;
	u32 moved = 0;

	if (!source || !target)
		return 0;
	for_each_queued(it, p, from, 0) {
		struct task_ctx *tctx = task_ctx(p);
		struct place place;

		if (!tctx || tctx->weight >> failed > most || tctx->q.home != from ||
		    !may_run_on(p, to))
			continue;
		if (failed <= HOT_FAILURES && now - tctx->q.left_cpu_ns < cache_hot_ns)
			continue;
		place = place_moved(source, target, tctx);
		scx_bpf_dsq_move_set_vtime(&it, place.key);
		if (!scx_bpf_dsq_move_vtime(&it, p, to, 0))
			continue;
		/* It may have left for another reason in this moment: then it is not ours. */
		if (forget(tctx))
			enter(tctx, target, to, &place);
		moved = tctx->weight;
		break;
	}
	if (moved) {
		count(COUNT_PULLED);
		count_for(from, COUNT_PULLED_FROM);
	}
	return moved;
}

/* sched_balance_newidle(): one task from the busiest CPU. */
static bool balance_idle(s32 cpu)
{
	u64 load;
	s32 busiest = find_busiest(cpu, &load);

	count(COUNT_LB_IDLE);
	if (busiest >= 0 && pull_one(busiest, cpu, ~0ULL, 0))
		return true;
	count(COUNT_LB_NOT_FOUND);
	return false;
}

static __always_inline bool balance_is_due(struct cpu_queue *cq, u64 now)
{
	return busy_ms && nr_cpus > 1 && now >= cq->busy_at_ns;
}

/* In `tick`, at its end. */
static __always_inline void end_tick(struct task_struct *p, struct cpu_queue *cq)
{
	u64 now = scx_bpf_now();

	look_around(p, cq, now, balance_is_due(cq, now));
}

/* In `dispatch`. A busy CPU takes half of what the busiest has more, if that is much. */
static void balance_busy(struct cpu_ctx *cctx, s32 cpu)
{
	u32 failed = cctx->failed;
	bool pulled = false;
	u64 load, more;
	s32 busiest;
	int i;

	if (!balance_is_due(&cctx->q, choice_ns(&cctx->q)))
		return;
	cctx->q.busy_at_ns = choice_ns(&cctx->q) + busy_ms * nr_cpus * NSEC_PER_MSEC;
	count(COUNT_LB_BUSY);
	busiest = find_busiest(cpu, &load);
	if (busiest < 0 || load * 100 <= cctx->load * IMBALANCE_PERCENT) {
		cctx->failed = 0;
		count(COUNT_LB_NOT_FOUND);
		return;
	}
	more = (load - cctx->load) / 2;
	for_each_number(i, 0, PULLS_MAX) {
		u32 moved = more ? pull_one(busiest, cpu, more, failed) : 0;

		if (!moved)
			break;
		failed = 0;
		cctx->failed = 0;
		more -= min(more, (u64)moved);
		pulled = true;
	}
	if (!pulled)
		cctx->failed = min(failed + 1, FAILURES_MAX);
}

#endif /* RUNSLICE_FAIR_BALANCE_BPF_H */
