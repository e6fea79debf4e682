/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The default before EEVDF: the task that has had the least virtual run time.
 *
 * Every task has a virtual run time, which advances the slower the greater its
 * weight is. The one that has had the least runs, for its part of a period in
 * which everybody has a turn. Who has slept comes back at most half a period
 * behind the others, and takes the CPU if it is behind by more than the wakeup
 * granularity. A child begins one turn behind.
 *
 * Source: kernel/sched/fair.c of Linux 5.10 (6.1 has the same rules): sched_slice,
 * check_preempt_tick, wakeup_preempt_entity, place_entity, update_min_vruntime,
 * with the default features START_DEBIT, GENTLE_FAIR_SLEEPERS, WAKEUP_PREEMPTION.
 * Differs from the source: an approximation. There are no cgroups, no
 * autogroups and no bandwidth limits; LAST_BUDDY, which prefers who was
 * preempted where eight or more wait, is left out; a turn that is shorter than
 * a tick ends at the tick (HRTICK is off in the source, too); loads are weights
 * of what is runnable, not averages over time; there are no domains, cores or
 * nodes but those of the search for an idle CPU, which is that of the kernel
 * that runs the policy; balancing is one rule for CPUs without work and one for
 * busy ones; utilisation, capacities, frequency and energy play no part.
 *
 * The guard against starvation, guard_ms, and kthreads_fast, which serves RCU's
 * and per-CPU kernel threads at once, are off in a simulation, as in the source,
 * and on on a kernel.
 */
#include <least_time.bpf.h>

#include <fair_balance.bpf.h>

BPF_LICENSE();

/* ---- Tunables: the defaults of fair.c, 5.10, on one CPU ---- */

KNOB(u64, wakeup_granularity_ns, 1000000, "ns",
     "a woken task takes the CPU if it is behind by more; grows as the period", 0, 1000000000);
KNOB(bool, wakeup_preemption, 1, "bool",
     "a woken task may take the CPU (WAKEUP_PREEMPTION)", 0, 1);

/* ---- State ---- */

/* The tick ends turns, not the kernel's slice, which is longer than any. */
#define LONG_SLICE_NS (2 * NSEC_PER_SEC)

enum {
	COUNT_TURNS_OVER = NR_LEAST_TIME_COUNTERS,	/* that a tick ended */
	COUNT_KICKED,
};

COUNTERS(LEAST_TIME_COUNTERS, "turns_over", "kicked");

/* ---- The choice ---- */

/* wakeup_preempt_entity(): `key` is behind `other` by more than the granularity of `weight`. */
static __always_inline bool is_far_behind(u64 key, u64 other, u32 weight)
{
	s64 behind = other - key;

	return behind > (s64)to_virtual(wakeup_granularity_ns * scale_of_cpus(), weight);
}

/* check_preempt_wakeup(): whether a task that comes into the queue takes the CPU. */
static bool takes_cpu(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx)
{
	if (cctx->q.prio == NO_PRIO || cctx->rescued)
		return false;
	if (cctx->is_idle && !tctx->is_idle)
		return true;
	if (p->policy == SCHED_BATCH || p->policy == SCHED_IDLE || !wakeup_preemption)
		return false;
	return is_far_behind(tctx->q.key, cctx->vruntime + uncharged(cctx), tctx->weight);
}

/* pick_next_entity(): whether the task that had the CPU goes on. */
static bool goes_on(struct task_ctx *prev, s32 cpu)
{
	bool skipped = prev->skipped;
	u64 first = 0;

	prev->skipped = false;
	if (!first_key(cpu, &first))
		return true;
	if (!is_before(prev->q.key, first))
		return false;
	/* Who yields lets the next one go first, if that is not too far ahead. */
	return !skipped || is_far_behind(prev->q.key, first, prev->weight);
}

/* check_preempt_tick(): whether the turn of the running task is over. */
static bool is_over(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	u64 ran = p->se.sum_exec_runtime - tctx->turn_ns;
	u64 slice = slice_of(cctx->runnable, cctx->load, tctx->weight);
	u64 first = 0;

	if (ran > slice)
		return true;
	if (ran < min_granularity_ns * scale_of_cpus() || !first_key(cpu, &first))
		return false;
	return (s64)(tctx->q.key - first) > (s64)slice;
}

/* ---- Callbacks, in the order of a task's life ---- */

static void take_class(struct task_struct *p, struct task_ctx *tctx)
{
	tctx->weight = weight_of(p);
	tctx->is_idle = p->policy == SCHED_IDLE;
}

s32 OP_SLEEPABLE(cfs_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *tctx = new_task_ctx(p);

	if (!tctx)
		return -ENOMEM;
	take_class(p, tctx);
	tctx->q.home = NOWHERE;
	tctx->at = NOWHERE;
	if (args->fork)
		begin(tctx);
	return 0;
}

void OP(cfs_enable, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);

	/* It may have run in another class meanwhile. */
	if (tctx)
		tctx->q.charged_ns = p->se.sum_exec_runtime;
}

s32 OP(cfs_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 this_cpu = bpf_get_smp_processor_id();
	bool sync = wake_flags & SCX_WAKE_SYNC;
	bool is_idle = false;
	s32 cpu;

	cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags & ~SCX_WAKE_SYNC, &is_idle);
	if (is_idle || !tctx)
		return cpu;
	if (wake_flags & SCX_WAKE_FORK)
		return least_loaded(p, prev_cpu);
	if (this_cpu == prev_cpu || !may_run_on(p, this_cpu))
		return prev_cpu;
	return is_lighter(this_cpu, prev_cpu, tctx->weight, sync) ? this_cpu : prev_cpu;
}

void OP(cfs_runnable, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = task_ctx(p);

	if (tctx)
		tctx->q.ready_ns = scx_bpf_now();
}

/* reweight_entity(): its virtual run time stays. */
void OP(cfs_set_weight, struct task_struct *p, u32 weight)
{
	struct task_ctx *tctx = task_ctx(p);
	u32 was;

	if (!tctx)
		return;
	was = tctx->weight;
	/* A kernel changes only what is in no queue; the sums must not be left wrong. */
	leave(tctx, false);
	take_class(p, tctx);
	tctx->lowered = tctx->weight < was;
}

void OP(cfs_enqueue, struct task_struct *p, u64 enq_flags)
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
	if (takes_cpu(p, tctx, cctx)) {
		count(COUNT_KICKED);
		kick(cpu, SCX_KICK_PREEMPT);
	}
}

void OP(cfs_dispatch, s32 cpu, struct task_struct *prev)
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
		balance_busy(cctx, cpu);
		if (goes_on(tctx, cpu)) {
			/* A slice that dispatch sets lets it go on. */
			set_slice(prev, LONG_SLICE_NS);
			return;
		}
	}
	if (scx_bpf_dsq_move_to_local(cpu))
		return;
	if (tctx) {
		set_slice(prev, LONG_SLICE_NS);
		return;
	}
	if (nr_cpus > 1 && balance_idle(cpu))
		scx_bpf_dsq_move_to_local(cpu);
}

/* set_next_entity() */
void OP(cfs_running, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx(cpu);

	if (!tctx || !cctx)
		return;
	settle(tctx, cctx, cpu);
	note_cpu(&tctx->q, cpu);
	tctx->turn_ns = p->se.sum_exec_runtime;
	tctx->skipped = false;
	cctx->vruntime = tctx->q.key;
	cctx->stamp_ns = scx_bpf_now();
	cctx->weight = tctx->weight;
	cctx->is_idle = tctx->is_idle;
	cctx->rescued = tctx->q.rescued;
	cctx->q.prio = p->static_prio;
	/* Here without our say, or worth less than before: the source would choose now. */
	tctx->q.in_local |= is_overtaken(&cctx->q, &tctx->q);
	if (!may_ask_again(p))
		tctx->q.in_local = false;
	if (tctx->q.in_local || tctx->lowered)
		kick(cpu, SCX_KICK_PREEMPT);
	tctx->q.in_local = false;
	tctx->lowered = false;
	report_task(p, p->static_prio, tctx->weight, 0);
}

void OP(cfs_tick, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx(cpu);

	if (!tctx || !cctx)
		return;
	charge(p, tctx);
	if (tctx->q.rescued)
		return;
	/* A kernel thread whose turn was over waits in the CPU's own queue. */
	if (scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL) > 0 ||
	    (cctx->runnable > 1 && is_over(p, tctx, cctx, cpu))) {
		count(COUNT_TURNS_OVER);
		set_slice(p, 0);
	}
	end_tick(p, &cctx->q);
}

bool OP(cfs_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *tctx = task_ctx(from);
	s32 cpu = scx_bpf_task_cpu(from);

	if (to || !tctx || scx_bpf_dsq_nr_queued(cpu) <= 0)
		return false;
	tctx->skipped = true;
	set_slice(from, 0);
	return true;
}

void OP(cfs_stopping, struct task_struct *p, bool runnable)
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

void OP(cfs_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tctx = task_ctx(p);

	if (!tctx)
		return;
	leave(tctx, deq_flags & SCX_DEQ_SLEEP);
	tctx->q.in_local = false;
}

/* ---- Load ---- */

s32 OP_SLEEPABLE(cfs_init)
{
	return create_queues();
}

POLICY_RIGHT("weight");
POLICY(cfs_ops,
       .init_task	= (void *)cfs_init_task,
       .enable		= (void *)cfs_enable,
       .select_cpu	= (void *)cfs_select_cpu,
       .runnable	= (void *)cfs_runnable,
       .set_weight	= (void *)cfs_set_weight,
       .enqueue		= (void *)cfs_enqueue,
       .dispatch	= (void *)cfs_dispatch,
       .running		= (void *)cfs_running,
       .tick		= (void *)cfs_tick,
       .yield		= (void *)cfs_yield,
       .stopping	= (void *)cfs_stopping,
       .quiescent	= (void *)cfs_quiescent,
       .init		= (void *)cfs_init,
       PERCPU_OPS,
       .name		= "cfs");
