/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps the pids of waiting tasks in a map of its own. A CPU takes up to four of them at
 * once, runs those that it may run, and forgets the others.
 *
 * Breaks: every runnable task runs in bounded time, once one is bound.
 */
#include "faulty.h"

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 4096);
	__type(value, s32);
} pids SEC(".maps");

SELECT_CPU_PREV(batch)

void OP(batch_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 pid = p->pid;

	if (bpf_map_push_elem(&pids, &pid, 0))
		scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SLICE_NS, enq_flags);
}

void OP(batch_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_struct *p;
	s32 turn, pid;

	for_each_number(turn, 0, 4) {
		if (bpf_map_pop_elem(&pids, &pid))
			return;
		p = bpf_task_from_pid(pid);
		if (!p)
			continue;
		if (bpf_cpumask_test_cpu(cpu, p->cpus_ptr)) /* the fault */
			scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SLICE_NS, 0);
		bpf_task_release(p);
	}
}

INIT_QUEUE(batch)
FAULTY(batch);
