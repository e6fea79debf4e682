/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * First come, first served on the CPU where a task woke. Prints what the clocks
 * of that CPU's run queue have gone on by while a task ran there, and how far
 * that of work is behind when the CPU stops to idle. Looks for limits of
 * frequencies, as others do.
 */
#include <scx.h>

BPF_LICENSE();

struct rq___clocks {
	u64 clock;
	u64 clock_task;
	u64 clock_pelt;
	unsigned long lost_idle_time;
} __core;

struct cpufreq_policy {
	unsigned int max;
};

extern struct cpufreq_policy *cpufreq_cpu_data __ksym;

static void *(*const bpf_per_cpu_ptr)(const void *variable, u32 cpu) = (void *)153;

/* When the task began to run: one CPU at a time is enough. */
u64 wall, task, pelt;

void OP(clocks_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct cpufreq_policy **limits = bpf_per_cpu_ptr(&cpufreq_cpu_data, 0);

	if (limits && *limits)
		bpf_printk("limits");
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags);
}

void OP(clocks_running, struct task_struct *p)
{
	struct rq___clocks *rq = (void *)scx_bpf_locked_rq();

	if (!rq)
		return;
	wall = rq->clock;
	task = rq->clock_task;
	pelt = rq->clock_pelt - rq->lost_idle_time;
	bpf_printk("in: behind %llu, now %d", task - pelt, wall == scx_bpf_now());
}

void OP(clocks_stopping, struct task_struct *p, bool runnable)
{
	struct rq___clocks *rq = (void *)scx_bpf_locked_rq();

	if (!rq)
		return;
	bpf_printk("out: time %llu", rq->clock - wall);
	bpf_printk("out: tasks %llu", rq->clock_task - task);
	bpf_printk("out: work %llu", rq->clock_pelt - rq->lost_idle_time - pelt);
}

POLICY(clocks_ops,
       .enqueue		= (void *)clocks_enqueue,
       .running		= (void *)clocks_running,
       .stopping	= (void *)clocks_stopping,
       .name		= "clocks");
