/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shortest job first: whoever needs least gets the CPU, and keeps it until it sleeps.
 *
 * A job is what a task runs between two sleeps. Its length stands behind the last
 * `_` of the task's name, in milliseconds (`edit_20`); otherwise it is guessed: the
 * average of the last job and the last guess.
 *
 * What it shows: the shortest mean turnaround of all that do not take a CPU away;
 * a short job that comes late still waits for a long one; a stream of short jobs
 * starves a long one.
 *
 * Source: Arpaci-Dusseau, "Operating Systems: Three Easy Pieces", chapter 7,
 * section "Shortest Job First (SJF)"; the guess: Silberschatz, Galvin and Gagne,
 * "Operating System Concepts", chapter 5, exponential average with a half.
 * Differs from the source: several CPUs share the queue; a woken task takes an
 * idle CPU first.
 */
#include "lesson.bpf.h"

s32 OP(sjf_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return take_idle(p, prev_cpu, wake_flags, SCX_SLICE_INF);
}

void OP(sjf_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct job *job = job_of(p);

	put(p, SCX_SLICE_INF, job ? job->expected_ns : 0, enq_flags);
}

void OP(sjf_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(QUEUE);
}

void OP(sjf_running, struct task_struct *p)
{
	struct job *job = job_of(p);

	if (job)
		job->since_ns = bpf_ktime_get_ns();
}

void OP(sjf_stopping, struct task_struct *p, bool runnable)
{
	struct job *job = job_of(p);

	if (!job)
		return;
	job_charge(job);
	job_stops(job, runnable);
}

LESSON(sjf,
       .select_cpu	= (void *)sjf_select_cpu,
       .enqueue		= (void *)sjf_enqueue,
       .dispatch	= (void *)sjf_dispatch,
       .running		= (void *)sjf_running,
       .stopping	= (void *)sjf_stopping);
