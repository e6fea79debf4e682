/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What all lessons share: one queue for the whole machine, idle CPUs that are
 * told, CPUs that leave, and what a task is known to need.
 *
 * Each lesson is in its own file: where a task goes in the queue, how long it may
 * run, and whom it may displace.
 */
#ifndef RUNSLICE_LESSON_BPF_H
#define RUNSLICE_LESSON_BPF_H

#include <hotplug.bpf.h>
#include <knobs.bpf.h>
#include <report.bpf.h>

BPF_LICENSE();

/* The queue. */
#define QUEUE 0
#define CPUS_MAX 1024

COUNTERS("direct", "queued");
enum { COUNT_DIRECT, COUNT_QUEUED };

/* A task as a lesson sees it. */
struct job {
	u64 since_ns;		/* it runs since then; 0: it does not run */
	u64 burst_ns;		/* it has run so long since it slept */
	u64 expected_ns;	/* so long it is expected to run between two sleeps */
	bool took_idle;		/* it found an idle CPU and passed the queue */
	bool is_told;		/* expected_ns is not a guess: its name says it */
	u64 key;		/* what the lesson sorts by */
	s64 distance;		/* how far its key was from the others' when it slept */
};

TASK_STORAGE(jobs, struct job);

static __always_inline struct job *job_of(struct task_struct *p)
{
	return bpf_task_storage_get(&jobs, p, NULL, 0);
}

/*
 * The number behind the last `_` of a task's name, as milliseconds: `edit_20` and
 * `edit_20.3` need 20 ms between two sleeps. 0 if there is none.
 */
static __always_inline u64 told_ns(struct task_struct *p)
{
	char name[16] = {};
	u64 ms = 0;
	bool counts = false;

	bpf_probe_read_kernel_str(name, sizeof(name), p->comm);
#pragma unroll
	for (int i = 0; i < 16; i++) {
		if (name[i] == '_') {
			counts = true;
			ms = 0;
		} else if (name[i] >= '0' && name[i] <= '9') {
			if (counts)
				ms = ms * 10 + (name[i] - '0');
		} else {
			counts = false;
		}
	}
	return ms * NSEC_PER_MSEC;
}

/* A new task; in `init_task`. */
static __always_inline s32 job_init(struct task_struct *p)
{
	struct job *job;

	job = bpf_task_storage_get(&jobs, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!job || !report_init(p))
		return -ENOMEM;
	job->expected_ns = told_ns(p);
	job->is_told = job->expected_ns;
	return 0;
}

/* Counts what `p` has run; in `stopping`, and in `dispatch`. Returns how much is new. */
static __always_inline u64 job_charge(struct job *job)
{
	u64 now = bpf_ktime_get_ns(), used;

	if (!job->since_ns)
		return 0;
	used = now - job->since_ns;
	job->since_ns = now;
	job->burst_ns += used;
	return used;
}

/* It leaves the CPU; if it sleeps, what it has run says what it will. */
static __always_inline void job_stops(struct job *job, bool runnable)
{
	job->since_ns = 0;
	if (runnable)
		return;
	if (!job->is_told)
		job->expected_ns = (job->expected_ns + job->burst_ns) / 2;
	job->burst_ns = 0;
}

/* What it still needs. Whoever has run longer than was guessed needs as much again. */
static __always_inline u64 job_left(struct job *job)
{
	if (job->expected_ns > job->burst_ns)
		return job->expected_ns - job->burst_ns;
	return job->is_told ? 0 : job->burst_ns;
}

/* An idle CPU takes a task at once; in `select_cpu`. */
static __always_inline s32 take_idle(struct task_struct *p, s32 prev_cpu, u64 wake_flags, u64 slice)
{
	bool is_idle = false;
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);
	struct job *job = job_of(p);

	if (job)
		job->took_idle = is_idle;
	if (is_idle) {
		count(COUNT_DIRECT);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice, 0);
	}
	return cpu;
}

/* Into the queue, ordered by `key`; in `enqueue`. */
static __always_inline void put(struct task_struct *p, u64 slice, u64 key, u64 enq_flags)
{
	s32 cpu;

	if (is_leaving(scx_bpf_task_cpu(p))) {
		insert_leaving(p, slice, enq_flags);
		return;
	}
	count(COUNT_QUEUED);
	scx_bpf_dsq_insert_vtime(p, QUEUE, slice, key, enq_flags);
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu >= 0)
		kick(cpu, SCX_KICK_IDLE);
}

/*
 * Whether the task that `cpu` runs should go on: it can, and nobody in the queue who
 * may run there has a lower key. Without this it would not be compared: it comes into
 * the queue only after the next one has been chosen.
 */
static __always_inline bool goes_on(struct task_struct *prev, s32 cpu, u64 key, u64 slice)
{
	struct task_struct *p;

	if (!(prev->scx.flags & SCX_TASK_QUEUED))
		return false;
	for_each_queued(it, p, QUEUE, 0) {
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		if ((s64)(p->scx.dsq_vtime - key) < 0)
			return false;
		break;
	}
	set_slice(prev, slice);
	return true;
}

/* The callbacks that all lessons have, and the table. */
#define LESSON(title, members...)						\
	s32 OP_SLEEPABLE(title##_init_task, struct task_struct *p,		\
			 struct scx_init_task_args *args)			\
	{									\
		return job_init(p);						\
	}									\
	void OP_SLEEPABLE(title##_cpu_online, s32 cpu)				\
	{									\
		set_leaving(cpu, false);					\
	}									\
	void OP(title##_cpu_offline, s32 cpu)					\
	{									\
		set_leaving(cpu, true);						\
		hand_over(QUEUE, cpu);						\
	}									\
	s32 OP_SLEEPABLE(title##_init)						\
	{									\
		return scx_bpf_create_dsq(QUEUE, -1);				\
	}									\
	void OP(title##_exit, struct scx_exit_info *info)			\
	{									\
		report_exit(info);						\
	}									\
	POLICY(title##_ops,							\
	       .init_task	= (void *)title##_init_task,			\
	       .cpu_online	= (void *)title##_cpu_online,			\
	       .cpu_offline	= (void *)title##_cpu_offline,			\
	       .init		= (void *)title##_init,				\
	       .exit		= (void *)title##_exit,				\
	       .name		= #title, ##members)

#endif /* RUNSLICE_LESSON_BPF_H */
