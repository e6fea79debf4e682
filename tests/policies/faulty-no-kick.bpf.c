/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Leaves a woken task at its old CPU, in the shared queue, and wakes none of the CPUs
 * that idle. Slices have no end, and a tick ends one only if the first task that waits
 * finds no idle CPU: nobody would starve if those were told.
 *
 * Breaks: a runnable task runs at once while a CPU idles that it may use.
 */
#include "faulty.h"

__kfunc bool bpf_cpumask_intersects(const struct cpumask *one, const struct cpumask *other);

SELECT_CPU_PREV(no_kick)

void OP(no_kick_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, QUEUE, SCX_SLICE_INF, enq_flags); /* the fault */
}

DISPATCH_QUEUE(no_kick)

void OP(no_kick_tick, struct task_struct *p)
{
	const struct cpumask *idle = scx_bpf_get_idle_cpumask();
	struct task_struct *first;

	for_each_queued(it, first, QUEUE, 0) {
		if (!bpf_cpumask_intersects(idle, first->cpus_ptr))
			set_slice(p, 0);
		break;
	}
	scx_bpf_put_idle_cpumask(idle);
}

INIT_QUEUE(no_kick)
FAULTY(no_kick, .tick = (void *)no_kick_tick);
