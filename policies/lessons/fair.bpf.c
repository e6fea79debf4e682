/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A fair queue: whoever has had least, for its weight, gets the CPU.
 *
 * A task's virtual time goes by as it runs, slowly for one of much weight. Whoever
 * is furthest behind gets the CPU.
 *
 * What it shows: shares by weight, and short waits for tasks that sleep, which are
 * behind when they wake; why that must have a bound.
 *
 * Source: Linux 2.6.23, the Completely Fair Scheduler, in outline: Molnar,
 * Documentation/sched-design-CFS.txt, 2007.
 * Differs from the source: one queue and one slice for all; a woken task displaces
 * nobody; time on an idle CPU is forgotten; no groups.
 */
#include <lesson.bpf.h>

KNOB(u64, slice_ns, 4000000, "ns", "time on the CPU before others are looked at", 1000000,
     1000000000);
KNOB(u64, credit_ns, 12000000, "ns", "how far a task that slept may be behind", 0, 1000000000);

/* The virtual time of the task that was chosen last. */
static volatile u64 now_v;

/* Lets its time go by: a nanosecond counts 1 at weight 100. */
static __always_inline void advance(struct task_struct *p, struct job *job)
{
	job->key += job_charge(job) * 100 / max(p->scx.weight, 1U);
}

s32 OP(fair_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return take_idle(p, prev_cpu, wake_flags, slice_ns);
}

void OP(fair_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct job *job = job_of(p);

	if (!job) {
		put(p, slice_ns, now_v, enq_flags);
		return;
	}
	/*
	 * Who slept for long would otherwise run alone for as long. Whoever only lost the
	 * CPU keeps its key: others may wait with it for the one CPU that they may use.
	 */
	if (enq_flags & SCX_ENQ_WAKEUP && (s64)(now_v - credit_ns - job->key) > 0)
		job->key = now_v - credit_ns;
	put(p, slice_ns, job->key, enq_flags);
}

void OP(fair_dispatch, s32 cpu, struct task_struct *prev)
{
	struct job *job = prev ? job_of(prev) : NULL;

	if (job) {
		advance(prev, job);
		if (goes_on(prev, cpu, job->key, slice_ns))
			return;
	}
	scx_bpf_dsq_move_to_local(QUEUE);
}

void OP(fair_running, struct task_struct *p)
{
	struct job *job = job_of(p);

	if (!job)
		return;
	job->since_ns = bpf_ktime_get_ns();
	if ((s64)(job->key - now_v) <= 0)
		return;
	/*
	 * Time on an idle CPU costs nobody anything, so it is forgotten: it would take the
	 * virtual time of all others along, who would then wait for whoever is left behind.
	 */
	if (job->took_idle)
		job->key = now_v;
	else
		now_v = job->key;
}

void OP(fair_stopping, struct task_struct *p, bool runnable)
{
	struct job *job = job_of(p);

	if (!job)
		return;
	advance(p, job);
	job_stops(job, runnable);
}

/*
 * A new task begins one slice behind the others, as START_DEBIT of 2.6.23 has it: else
 * a stream of children, each of which ends before its slice does, would always go first
 * and the virtual time would stand still for whoever waits.
 */
void OP(fair_enable, struct task_struct *p)
{
	struct job *job = job_of(p);

	if (job)
		job->key = now_v + slice_ns * 100 / max(p->scx.weight, 1U);
}

POLICY_RIGHT("weight");
LESSON(fair,
       .select_cpu	= (void *)fair_select_cpu,
       .enqueue		= (void *)fair_enqueue,
       .dispatch	= (void *)fair_dispatch,
       .running		= (void *)fair_running,
       .stopping	= (void *)fair_stopping,
       .enable		= (void *)fair_enable);
