/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a policy with queues of its own owes to a CPU that leaves. The kernel
 * waits until no runnable task belongs to that CPU. Tasks that may run
 * elsewhere are taken by others; one that is bound to the CPU is taken by
 * nobody, because the kernel no longer asks the policy what to run there, and
 * the wait ends with the watchdog. From the kernel's own global queue the
 * leaving CPU still takes tasks, and then forces them elsewhere.
 *
 * Source: balance_one() in kernel/sched/ext.c and balance_push() in
 * kernel/sched/core.c, 6.18; seen on 6.18, where a bound task waited 39 s.
 */
#ifndef RUNSLICE_HOTPLUG_BPF_H
#define RUNSLICE_HOTPLUG_BPF_H

#include <scx.h>

#define HOTPLUG_CPUS_MAX 1024

static volatile bool leaving_cpus[HOTPLUG_CPUS_MAX];

static __always_inline void set_leaving(s32 cpu, bool leaving)
{
	if ((u32)cpu < HOTPLUG_CPUS_MAX)
		leaving_cpus[cpu] = leaving;
}

static __always_inline bool is_leaving(s32 cpu)
{
	return (u32)cpu < HOTPLUG_CPUS_MAX && leaving_cpus[cpu];
}

/*
 * Sends `cpu` to `dispatch`. The kernel bounces that through work that the calling
 * CPU does in an interrupt of its own; one that comes when the CPU's interrupts
 * are off for good is lost, and with it, when the CPU is back, every later one:
 * kicks, and the wakeups of RCU's threads, up to the next time that it leaves. So
 * whoever is woken last on a CPU that leaves has to do without a kick.
 *
 * Source: irq_work_queue() in kernel/irq_work.c and native_cpu_disable() in
 * arch/x86/kernel/smpboot.c, 6.18; seen on 6.18, where RCU's threads slept on.
 */
static __always_inline void kick(s32 cpu, u64 flags)
{
	s32 own = bpf_get_smp_processor_id();

	if (is_leaving(own)) {
		const struct cpumask *online = scx_bpf_get_online_cpumask();
		bool is_online = bpf_cpumask_test_cpu(own, online);

		scx_bpf_put_cpumask(online);
		if (!is_online)
			return;
	}
	scx_bpf_kick_cpu(cpu, flags);
}

/*
 * Gives a task of a leaving CPU to the kernel; in `enqueue`. The kick makes
 * the CPU look: it may be idle already, and nothing else would wake it.
 */
static __always_inline void insert_leaving(struct task_struct *p, u64 slice, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, slice, enq_flags);
	kick(scx_bpf_task_cpu(p), 0);
}

/* Hands the tasks of `cpu` in the queue `dsq_id` over to the kernel; in `cpu_offline`. */
static __always_inline void hand_over(u64 dsq_id, s32 cpu)
{
	struct task_struct *p;

	for_each_queued(it, p, dsq_id, 0) {
		if (scx_bpf_task_cpu(p) == cpu)
			scx_bpf_dsq_move(&it, p, SCX_DSQ_GLOBAL, 0);
	}
	kick(cpu, 0);
}

/* Hands all tasks in the queue `dsq_id` over, for which no CPU looks there; in `cpu_offline`. */
static __always_inline void hand_over_all(u64 dsq_id)
{
	struct task_struct *p;

	for_each_queued(it, p, dsq_id, 0)
		scx_bpf_dsq_move(&it, p, SCX_DSQ_GLOBAL, 0);
}

#endif /* RUNSLICE_HOTPLUG_BPF_H */
