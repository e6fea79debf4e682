/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * First in, first out: one queue for the whole machine.
 *
 * A task that becomes runnable takes an idle CPU if it may, else it waits at
 * the tail of the queue. A CPU takes the head of the queue and lets it run for
 * one slice; whoever used the slice up goes to the tail. The smallest policy
 * that is complete: copy this file to begin your own.
 *
 * Source: round robin as in any textbook, for example Arpaci-Dusseau,
 * "Operating Systems: Three Easy Pieces", chapter 7, section "Round Robin".
 * Differs from the source: a task that blocks gives up the rest of its slice
 * and gets a new one when it wakes; a woken task may pass the queue by taking
 * an idle CPU; nice levels are ignored.
 *
 * On a kernel: there is no guard against starvation, as nobody starves before
 * 30 s are full of others' slices, and no fast lane for kernel threads. When a
 * CPU goes exactly while a task that is bound to it waits here inside a section
 * that RCU waits for, the kernel ends the policy: see percpu.bpf.h for what it
 * takes to avoid that.
 */
#include <hotplug.bpf.h>
#include <knobs.bpf.h>
#include <report.bpf.h>

BPF_LICENSE();

/* ---- Tunables ---- */

KNOB(u64, slice_ns, 20000000, "ns", "time on the CPU before a task goes to the tail of the queue",
     1000, 10000000000);

/* ---- State ---- */

/* The queue. Ids below 2^63 are free for policies. */
#define QUEUE 0

enum {
	COUNT_DIRECT,
	COUNT_QUEUED,
};

COUNTERS("direct", "queued");

/* ---- Callbacks, in the order of a task's life ---- */

s32 OP_SLEEPABLE(fifo_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	return report_init(p) ? 0 : -ENOMEM;
}

s32 OP(fifo_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);

	if (is_idle) {
		count(COUNT_DIRECT);
		/* To the local queue of the CPU that is returned; enqueue is not called. */
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, 0);
	}
	return cpu;
}

void OP(fifo_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 cpu;

	if (is_leaving(scx_bpf_task_cpu(p))) {
		insert_leaving(p, slice_ns, enq_flags);
		return;
	}
	count(COUNT_QUEUED);
	scx_bpf_dsq_insert(p, QUEUE, slice_ns, enq_flags);

	/*
	 * The kernel wakes the CPU that a woken task is queued on, and no
	 * other. A task that comes here for another reason may have to wait
	 * for that CPU while others idle, so one of them is told.
	 */
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu >= 0)
		kick(cpu, SCX_KICK_IDLE);
}

void OP(fifo_dispatch, s32 cpu, struct task_struct *prev)
{
	/* Passes over tasks that may not run here. */
	scx_bpf_dsq_move_to_local(QUEUE);
}

void OP(fifo_running, struct task_struct *p)
{
	report_task(p, p->static_prio, QUEUE, 0);
}

/* ---- Machine, load and unload ---- */

/* A policy without these two is ejected whenever a CPU comes or goes. */
void OP_SLEEPABLE(fifo_cpu_online, s32 cpu)
{
	set_leaving(cpu, false);
}

void OP(fifo_cpu_offline, s32 cpu)
{
	set_leaving(cpu, true);
	hand_over(QUEUE, cpu);
}

s32 OP_SLEEPABLE(fifo_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

void OP(fifo_exit, struct scx_exit_info *info)
{
	report_exit(info);
}

POLICY_RIGHT("weight");
POLICY(fifo_ops,
       .init_task	= (void *)fifo_init_task,
       .select_cpu	= (void *)fifo_select_cpu,
       .enqueue		= (void *)fifo_enqueue,
       .dispatch	= (void *)fifo_dispatch,
       .running		= (void *)fifo_running,
       .cpu_online	= (void *)fifo_cpu_online,
       .cpu_offline	= (void *)fifo_cpu_offline,
       .init		= (void *)fifo_init,
       .exit		= (void *)fifo_exit,
       .name		= "fifo");
