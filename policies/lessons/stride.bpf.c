/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stride: the task with the lowest pass gets the CPU.
 *
 * A pass grows with what its task runs, slowly for one with many tickets. The
 * lowest pass gets the CPU. Tickets are the task's weight.
 *
 * What it shows: the shares of a lottery without its luck: over any time they are
 * right within about a slice.
 *
 * Source: Waldspurger and Weihl, "Stride Scheduling: Deterministic
 * Proportional-Share Resource Management", MIT/LCS/TM-528, 1995.
 * Differs from the source: the pass of the whole machine is that of the task which
 * was chosen last; a task that sleeps keeps its distance to it, at most a stride; a
 * woken task takes an idle CPU first.
 */
#include <lesson.bpf.h>

KNOB(u64, slice_ns, 10000000, "ns", "time on the CPU before the passes are compared", 1000000,
     1000000000);

/* The pass of the machine. */
static volatile u64 global_pass;

/* By how much its pass grows in a whole slice. */
static __always_inline s64 stride(struct task_struct *p)
{
	return slice_ns * 100 / max(p->scx.weight, 1U);
}

/* Adds what it has run to its pass: a nanosecond counts 1 at weight 100. */
static __always_inline void advance(struct task_struct *p, struct job *job)
{
	job->key += job_charge(job) * 100 / max(p->scx.weight, 1U);
}

s32 OP(stride_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return take_idle(p, prev_cpu, wake_flags, slice_ns);
}

void OP(stride_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct job *job = job_of(p);

	put(p, slice_ns, job ? job->key : global_pass, enq_flags);
}

/*
 * A new task begins a stride behind, as in the source: the pass of the machine stands
 * still while others come, so that a stream of them would hold off whoever has run.
 */
void OP(stride_enable, struct task_struct *p)
{
	struct job *job = job_of(p);

	if (job)
		job->distance = stride(p);
}

/* It comes back: at its old distance to the machine's pass. */
void OP(stride_runnable, struct task_struct *p, u64 enq_flags)
{
	struct job *job = job_of(p);
	s64 distance;

	if (!job)
		return;
	distance = min(max(job->distance, -stride(p)), stride(p));
	job->key = global_pass + distance;
}

/* It goes to sleep: how far it is behind or ahead. */
void OP(stride_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct job *job = job_of(p);

	if (job)
		job->distance = job->key - global_pass;
}

void OP(stride_dispatch, s32 cpu, struct task_struct *prev)
{
	struct job *job = prev ? job_of(prev) : NULL;

	if (job) {
		advance(prev, job);
		if (goes_on(prev, cpu, job->key, slice_ns))
			return;
	}
	scx_bpf_dsq_move_to_local(QUEUE);
}

void OP(stride_running, struct task_struct *p)
{
	struct job *job = job_of(p);

	if (!job)
		return;
	job->since_ns = bpf_ktime_get_ns();
	if ((s64)(job->key - global_pass) > 0)
		global_pass = job->key;
}

void OP(stride_stopping, struct task_struct *p, bool runnable)
{
	struct job *job = job_of(p);

	if (!job)
		return;
	advance(p, job);
	job_stops(job, runnable);
}

POLICY_RIGHT("weight");
LESSON(stride,
       .select_cpu	= (void *)stride_select_cpu,
       .enqueue		= (void *)stride_enqueue,
       .enable		= (void *)stride_enable,
       .runnable	= (void *)stride_runnable,
       .quiescent	= (void *)stride_quiescent,
       .dispatch	= (void *)stride_dispatch,
       .running		= (void *)stride_running,
       .stopping	= (void *)stride_stopping);
