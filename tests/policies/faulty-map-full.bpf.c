/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps the pids of waiting tasks in a map of its own, which has room for 64, and does
 * not ask whether one had room.
 *
 * Breaks: every runnable task runs in bounded time.
 */
#include "faulty.h"

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 64);
	__type(value, s32);
} pids SEC(".maps");

SELECT_CPU_PREV(map_full)

void OP(map_full_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 pid = p->pid;

	bpf_map_push_elem(&pids, &pid, 0); /* the fault */
}

void OP(map_full_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_struct *p;
	s32 pid;

	if (bpf_map_pop_elem(&pids, &pid))
		return;
	p = bpf_task_from_pid(pid);
	if (!p)
		return;
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SLICE_NS, 0);
	bpf_task_release(p);
}

INIT_QUEUE(map_full)
FAULTY(map_full);
