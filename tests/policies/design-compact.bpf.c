/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fills few CPUs, so that the others sleep deeply: CPU n takes work only while more than 2 n tasks
 * wait, or while the first one has waited for 30 ms. A clock of 10 ms tells CPUs that idle.
 *
 * Keeps: a task waits for at most one slice of each, and 40 ms. CPUs idle beside it.
 */
#include "design.h"

#define PATIENCE (30 * NSEC_PER_MSEC)

/* When each task came to the queue is its key. */
static bool is_late(void)
{
	struct task_struct *p;
	bool is = false;

	for_each_queued(it, p, QUEUE, 0) {
		is = bpf_ktime_get_ns() - p->scx.dsq_vtime > PATIENCE;
		break;
	}
	return is;
}

SELECT_CPU_PREV(compact)

void OP(compact_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 cpus = scx_bpf_nr_cpu_ids();

	scx_bpf_dsq_insert_vtime(p, QUEUE, SLICE_NS, bpf_ktime_get_ns(), enq_flags);
	for (u32 cpu = 0; cpu < 64; cpu++) {
		if (cpu >= cpus || scx_bpf_dsq_nr_queued(QUEUE) <= 2 * cpu)
			break;
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		if (scx_bpf_test_and_clear_cpu_idle(cpu)) {
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
			break;
		}
	}
}

void OP(compact_dispatch, s32 cpu, struct task_struct *prev)
{
	if (scx_bpf_dsq_nr_queued(QUEUE) > 2 * cpu || is_late())
		scx_bpf_dsq_move_to_local(QUEUE);
}

static void tell_late(void)
{
	if (is_late())
		tell_all();
}

CLOCK(10 * NSEC_PER_MSEC, tell_late)

s32 OP_SLEEPABLE(compact_init)
{
	return scx_bpf_create_dsq(QUEUE, -1) ?: start_clock();
}

DESIGN(compact);
