/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shortest remaining time first: who comes and needs less takes the CPU.
 *
 * It takes it from the task that needs most from now on.
 *
 * A job is what a task runs between two sleeps. Its length stands behind the last
 * `_` of the task's name, in milliseconds (`edit_20`); otherwise it is guessed: the
 * average of the last job and the last guess.
 *
 * What it shows: the shortest mean turnaround of all; what a wrong guess costs; a
 * stream of short jobs starves a long one.
 *
 * Source: Arpaci-Dusseau, "Operating Systems: Three Easy Pieces", chapter 7,
 * section "Shortest Time-to-Completion First (STCF)"; the guess: Silberschatz,
 * Galvin and Gagne, "Operating System Concepts", chapter 5.
 * Differs from the source: several CPUs share the queue; a woken task takes an
 * idle CPU first; a job that has run longer than its guess is taken to need as much
 * again.
 */
#include <lesson.bpf.h>

/* When the task of a CPU is expected to sleep; 0: nobody can be displaced there. */
static volatile u64 ends_ns[CPUS_MAX];

s32 OP(srtf_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return take_idle(p, prev_cpu, wake_flags, SCX_SLICE_INF);
}

/* Takes the CPU whose task needs longest, if that is longer than `left`. */
static __always_inline void displace(struct task_struct *p, u64 left)
{
	u64 latest = bpf_ktime_get_ns() + left;
	s32 cpu, victim = -1;

	for_each_number(cpu, 0, min(scx_bpf_nr_cpu_ids(), CPUS_MAX)) {
		if ((u32)cpu >= CPUS_MAX || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		if (ends_ns[cpu] > latest) {
			latest = ends_ns[cpu];
			victim = cpu;
		}
	}
	if (victim >= 0)
		kick(victim, SCX_KICK_PREEMPT);
}

void OP(srtf_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct job *job = job_of(p);
	u64 left = job ? job_left(job) : 0;

	put(p, SCX_SLICE_INF, left, enq_flags);
	if (enq_flags & SCX_ENQ_WAKEUP)
		displace(p, left);
}

void OP(srtf_dispatch, s32 cpu, struct task_struct *prev)
{
	struct job *job = prev ? job_of(prev) : NULL;

	if (job) {
		job_charge(job);
		if (goes_on(prev, cpu, job_left(job), SCX_SLICE_INF))
			return;
	}
	scx_bpf_dsq_move_to_local(QUEUE);
}

void OP(srtf_running, struct task_struct *p)
{
	struct job *job = job_of(p);
	u32 cpu = scx_bpf_task_cpu(p);

	if (!job || cpu >= CPUS_MAX)
		return;
	job->since_ns = bpf_ktime_get_ns();
	ends_ns[cpu] = job->since_ns + job_left(job);
}

/* A guess may have been too short. */
void OP(srtf_tick, struct task_struct *p)
{
	struct job *job = job_of(p);
	u32 cpu = scx_bpf_task_cpu(p);

	if (!job || cpu >= CPUS_MAX)
		return;
	job_charge(job);
	ends_ns[cpu] = job->since_ns + job_left(job);
}

void OP(srtf_stopping, struct task_struct *p, bool runnable)
{
	struct job *job = job_of(p);
	u32 cpu = scx_bpf_task_cpu(p);

	if (!job || cpu >= CPUS_MAX)
		return;
	ends_ns[cpu] = 0;
	job_charge(job);
	job_stops(job, runnable);
}

POLICY_RIGHT("rank");
LESSON(srtf,
       .select_cpu	= (void *)srtf_select_cpu,
       .enqueue		= (void *)srtf_enqueue,
       .dispatch	= (void *)srtf_dispatch,
       .tick		= (void *)srtf_tick,
       .running		= (void *)srtf_running,
       .stopping	= (void *)srtf_stopping);
