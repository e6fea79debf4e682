/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Today's default in outline: earliest eligible virtual deadline first.
 *
 * Every task has a virtual run time, which advances the slower the greater its
 * weight is. A task that has received no more than the weighted average of its
 * queue is eligible; of the eligible ones the one runs whose request, one
 * slice long, ends first in virtual time. Who leaves the queue keeps how far
 * it is behind or ahead of the average, its lag, and comes back with it. A
 * task that has the CPU keeps it until its request is served, unless it is
 * ahead of the average when a better one wakes.
 *
 * Source: kernel/sched/fair.c of Linux 6.18 (EEVDF with RUN_TO_PARITY,
 * PLACE_LAG, PLACE_DEADLINE_INITIAL, PLACE_REL_DEADLINE), after Stoica and
 * Abdel-Wahab, "Earliest Eligible Virtual Deadline First", 1995.
 * Differs from the source: an approximation. There are no cgroups, no
 * autogroups and no bandwidth limits; a task that blocks while it is ahead
 * leaves at once and keeps that lag, as in 6.6, or with delay_dequeue=1 burns it
 * first, as from 6.12 on (DELAY_DEQUEUE), but does not count in the average
 * meanwhile; all slices are the base slice (sched_setattr is not seen);
 * a wakeup takes the CPU at once (the source's lazy preemption waits for the
 * next tick when the CPU is a remote one); loads are weights of what is
 * runnable, not averages over time; there are no domains, cores or nodes but
 * those of the kernel's own search for an idle CPU; balancing is one rule for
 * CPUs without work and one for busy ones; utilisation, capacities, frequency,
 * energy and core scheduling play no part; the search for an eligible task
 * ends after `examined_max` (the source's tree finds it without a search).
 *
 * The kernel ends a policy under which a task waits too long (30 s), which
 * takes about 60,000 times the weight of the task in the same queue: many
 * tasks of nice -20 beside one of nice 19. The guard against that, guard_ms, and
 * kthreads_fast, which serves RCU's and per-CPU kernel threads at once, are off
 * in a simulation, as in the source, and on on a kernel.
 */
#include <virtual_time.bpf.h>

#include <fair_balance.bpf.h>

BPF_LICENSE();

/* ---- Tunables ---- */

KNOB(bool, run_to_parity, 1, "bool",
     "a running task is safe until its request is served; 0: for base_slice_ns", 0, 1);
KNOB(u32, examined_max, 64, "count", "tasks looked at in search of an eligible one", 1, 100000);

/* ---- State ---- */

/* The tick ends turns, not the kernel's slice, which is longer than any. */
#define LONG_SLICE_NS (2 * NSEC_PER_SEC)

enum {
	COUNT_EXAMINED = NR_VIRTUAL_TIME_COUNTERS,
	COUNT_PROTECTED,
	COUNT_KICKED,
	COUNT_NONE_ELIGIBLE,
};

COUNTERS(VIRTUAL_TIME_COUNTERS, "examined", "protected", "kicked", "none_eligible");

/* ---- The choice ---- */

/*
 * pick_eevdf(): moves the task with the earliest deadline of the eligible ones
 * to this CPU. False if `prev` is better, or if nobody waits.
 */
static bool take_best(struct cpu_ctx *cctx, s32 cpu, struct task_ctx *prev)
{
	u64 prev_key = prev ? prev->q.key : 0;
	struct average average;
	struct task_struct *p;
	bool prev_counts, taken = false;
	u32 examined = 0;

	measure(cctx, &average);
	prev_counts = prev && is_eligible(&average, prev->vruntime);
	if (prev_counts && is_before(prev->vruntime, cctx->protected_to)) {
		count(COUNT_PROTECTED);
		return false;
	}
	for_each_queued(it, p, cpu, 0) {
		struct task_ctx *tctx = task_ctx(p);

		if (examined >= examined_max)
			break;
		examined++;
		/* All that follow have later deadlines. */
		if (prev_counts && is_before(prev_key, p->scx.dsq_vtime))
			break;
		if (!tctx || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr) ||
		    !is_eligible(&average, tctx->vruntime))
			continue;
		taken = scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL, 0);
		if (taken)
			break;
	}
	count_by(COUNT_EXAMINED, examined);
	return taken;
}

/* Whether an eligible task with a deadline no later than `key` waits in the queue of `cpu`. */
static bool is_behind(struct average *average, s32 cpu, u64 key)
{
	struct task_struct *p;
	bool behind = false;
	u32 examined = 0;

	for_each_queued(it, p, cpu, 0) {
		struct task_ctx *tctx = task_ctx(p);

		if (examined >= examined_max || is_before(key, p->scx.dsq_vtime))
			break;
		examined++;
		if (tctx && is_eligible(average, tctx->vruntime)) {
			behind = true;
			break;
		}
	}
	count_by(COUNT_EXAMINED, examined);
	return behind;
}

/*
 * check_preempt_wakeup_fair(): whether a task that comes into the queue takes
 * the CPU. A running task whose request is served is asked in any case.
 */
static bool takes_cpu(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	u64 vruntime = cctx->vruntime + uncharged(cctx);
	struct average average;

	if (cctx->q.prio == NO_PRIO || cctx->rescued)
		return false;
	if (!is_before(vruntime, cctx->protected_to))
		return true;
	if (cctx->is_idle != tctx->is_idle)
		return cctx->is_idle;
	if (p->policy == SCHED_BATCH || p->policy == SCHED_IDLE)
		return false;
	measure(cctx, &average);
	return !is_eligible(&average, vruntime) && is_eligible(&average, tctx->vruntime) &&
	       !is_behind(&average, cpu, tctx->q.key);
}

/* ---- Callbacks, in the order of a task's life ---- */

static void take_class(struct task_struct *p, struct task_ctx *tctx)
{
	tctx->weight = weight_of(p);
	tctx->is_idle = p->policy == SCHED_IDLE;
}

s32 OP_SLEEPABLE(eevdf_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *tctx = new_task_ctx(p);

	if (!tctx)
		return -ENOMEM;
	take_class(p, tctx);
	tctx->q.home = NOWHERE;
	tctx->delayed_at = NOWHERE;
	tctx->starts = args->fork;
	return 0;
}

void OP(eevdf_enable, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);

	/* It may have run in another class meanwhile. */
	if (tctx)
		tctx->q.charged_ns = p->se.sum_exec_runtime;
}

s32 OP(eevdf_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 this_cpu = bpf_get_smp_processor_id();
	bool sync = wake_flags & SCX_WAKE_SYNC;
	bool is_idle = false;
	s32 cpu;

	if (tctx && stays_delayed(tctx, prev_cpu) && may_run_on(p, prev_cpu))
		return prev_cpu;
	cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags & ~SCX_WAKE_SYNC, &is_idle);
	if (is_idle || !tctx)
		return cpu;
	if (wake_flags & SCX_WAKE_FORK)
		return least_loaded(p, prev_cpu);
	if (this_cpu == prev_cpu || !may_run_on(p, this_cpu))
		return prev_cpu;
	return is_lighter(this_cpu, prev_cpu, tctx->weight, sync) ? this_cpu : prev_cpu;
}

void OP(eevdf_runnable, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = task_ctx(p);

	if (tctx)
		tctx->q.ready_ns = scx_bpf_now();
}

/* reweight_entity(): lag and request are time of service, so they shrink when weight grows. */
void OP(eevdf_set_weight, struct task_struct *p, u32 weight)
{
	struct task_ctx *tctx = task_ctx(p);
	u32 was;

	if (!tctx)
		return;
	was = tctx->weight;
	/* A kernel changes only what is in no queue; the average must not be left wrong. */
	leave(tctx, false);
	take_class(p, tctx);
	tctx->lowered = tctx->weight < was;
	tctx->lag = divide(tctx->lag * (s64)was, tctx->weight);
	if (tctx->keeps_request)
		tctx->q.key = divide((s64)tctx->q.key * (s64)was, tctx->weight);
}

void OP(eevdf_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	bool arrives;

	if (!comes_to_queue(p, tctx, enq_flags) || !cctx)
		return;
	tctx->q.in_local = false;
	tctx->lowered = false;
	if (is_leaving(cpu)) {
		leave(tctx, false);
		insert_leaving(p, LONG_SLICE_NS, enq_flags);
		return;
	}
	arrives = settle(tctx, cctx, cpu);
	scx_bpf_dsq_insert_vtime(p, cpu, LONG_SLICE_NS, tctx->q.key, enq_flags);
	if (!arrives)
		return;
	note_arrival(&cctx->q, true);
	if (takes_cpu(p, tctx, cctx, cpu)) {
		/* A SCHED_IDLE task is not protected from others. */
		if (cctx->is_idle && !tctx->is_idle)
			cctx->protected_to = cctx->vruntime;
		count(COUNT_KICKED);
		kick(cpu, SCX_KICK_PREEMPT);
	}
}

void OP(eevdf_dispatch, s32 cpu, struct task_struct *prev)
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
		charge(prev, tctx);
		renew_request(tctx);
		balance_busy(cctx, cpu);
	}
	if (take_best(cctx, cpu, tctx))
		return;
	if (tctx) {
		/* A slice that dispatch sets lets it go on. */
		set_slice(prev, LONG_SLICE_NS);
		return;
	}
	/* Nobody is eligible who may run here: the next best is better than nobody. */
	if (scx_bpf_dsq_move_to_local(cpu)) {
		count(COUNT_NONE_ELIGIBLE);
		return;
	}
	if (nr_cpus > 1 && balance_idle(cpu))
		scx_bpf_dsq_move_to_local(cpu);
}

/* set_next_entity() */
void OP(eevdf_running, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	u64 least;

	if (!tctx || !cctx)
		return;
	settle(tctx, cctx, cpu);
	cctx->protected_to = tctx->q.key;
	least = tctx->vruntime + to_virtual(base_slice_ns, tctx->weight);
	if (!run_to_parity && is_before(least, tctx->q.key))
		cctx->protected_to = least;
	note_cpu(&tctx->q, cpu);
	cctx->vruntime = tctx->vruntime;
	cctx->stamp_ns = scx_bpf_now();
	cctx->weight = tctx->weight;
	cctx->is_idle = tctx->is_idle;
	cctx->rescued = tctx->q.rescued;
	cctx->q.prio = p->static_prio;
	/* Here without our say, or worth less than before: the source would choose now. */
	tctx->q.in_local |= is_overtaken(&cctx->q, &tctx->q);
	if (!may_ask_again(p))
		tctx->q.in_local = false;
	if (tctx->q.in_local || tctx->lowered) {
		if (tctx->q.in_local)
			cctx->protected_to = tctx->vruntime;
		kick(cpu, SCX_KICK_PREEMPT);
	}
	tctx->q.in_local = false;
	tctx->lowered = false;
	report_task(p, p->static_prio, tctx->weight, 0);
}

void OP(eevdf_tick, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	bool served;

	if (!tctx || !cctx)
		return;
	charge(p, tctx);
	served = renew_request(tctx);
	if (tctx->q.rescued)
		return;
	/* A kernel thread whose turn was over waits in the CPU's own queue. */
	if ((scx_bpf_dsq_nr_queued(cpu) > 0 || scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL) > 0) &&
	    (served || !is_before(tctx->vruntime, cctx->protected_to)))
		set_slice(p, 0);
	end_tick(p, &cctx->q);
}

/* yield_task_fair(): an eligible task gives the rest of its request away. */
static void forfeit(struct task_ctx *tctx, struct cpu_ctx *cctx)
{
	u64 now = scx_bpf_now(), slice = to_virtual(slice_ns(), tctx->weight);
	u64 vruntime = tctx->vruntime + uncharged(cctx);
	struct average average;

	measure(cctx, &average);
	if (!is_eligible(&average, vruntime))
		return;
	if (!is_before(vruntime, tctx->q.key))
		tctx->q.key = vruntime + slice;
	advance(cctx, tctx->q.key - tctx->vruntime, tctx->weight);
	tctx->vruntime = tctx->q.key;
	tctx->q.key += slice;
	tctx->q.charged_ns += now - cctx->stamp_ns;
	cctx->vruntime = tctx->vruntime;
	cctx->stamp_ns = now;
}

bool OP(eevdf_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *tctx = task_ctx(from);
	s32 cpu = scx_bpf_task_cpu(from);
	struct cpu_ctx *cctx = cpu_ctx(cpu);

	if (to || !tctx || !cctx || tctx->q.home != cpu || scx_bpf_dsq_nr_queued(cpu) <= 0)
		return false;
	forfeit(tctx, cctx);
	set_slice(from, 0);
	return true;
}

void OP(eevdf_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tctx = task_ctx(p);

	if (tctx)
		charge(p, tctx);
	free_cpu(scx_bpf_task_cpu(p));
	if (!tctx)
		return;
	tctx->q.rescued = false;
	tctx->q.left_cpu_ns = scx_bpf_now();
	if (runnable) {
		tctx->q.ready_ns = tctx->q.left_cpu_ns;
		/* Stays true if the kernel keeps it in the local queue: enqueue clears it. */
		tctx->q.in_local = true;
	}
}

void OP(eevdf_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tctx = task_ctx(p);

	if (!tctx)
		return;
	leave(tctx, deq_flags & SCX_DEQ_SLEEP);
	tctx->q.in_local = false;
}

/* ---- Load ---- */

s32 OP_SLEEPABLE(eevdf_init)
{
	return create_queues();
}

POLICY_RIGHT("weight");
POLICY(eevdf_ops,
       .init_task	= (void *)eevdf_init_task,
       .enable		= (void *)eevdf_enable,
       .select_cpu	= (void *)eevdf_select_cpu,
       .runnable	= (void *)eevdf_runnable,
       .set_weight	= (void *)eevdf_set_weight,
       .enqueue		= (void *)eevdf_enqueue,
       .dispatch	= (void *)eevdf_dispatch,
       .running		= (void *)eevdf_running,
       .tick		= (void *)eevdf_tick,
       .yield		= (void *)eevdf_yield,
       .stopping	= (void *)eevdf_stopping,
       .quiescent	= (void *)eevdf_quiescent,
       .init		= (void *)eevdf_init,
       PERCPU_OPS,
       .name		= "eevdf");
