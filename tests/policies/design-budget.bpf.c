/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A budget for each task: 20 ms of CPU time in each window of 100 ms. Whoever has used it up is
 * set aside until the next window, also if CPUs idle.
 *
 * Keeps: a task waits for at most 100 ms and one slice of each.
 */
#include "design.h"

#define ASIDE 1
#define BUDGET (20 * NSEC_PER_MSEC)

struct purse {
	u64 window;
	u64 used;
	u64 since;
};

TASK_STORAGE(purses, struct purse);

static u64 window;

SELECT_CPU_PREV(budget)

void OP(budget_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct purse *purse = bpf_task_storage_get(&purses, p, NULL, 0);

	if (purse && purse->window == window && purse->used >= BUDGET) {
		scx_bpf_dsq_insert(p, ASIDE, SLICE_NS, enq_flags);
		return;
	}
	scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
	tell_idle(p);
}

DISPATCH_QUEUE(budget)

void OP(budget_running, struct task_struct *p)
{
	struct purse *purse = bpf_task_storage_get(&purses, p, NULL, 0);

	if (purse)
		purse->since = bpf_ktime_get_ns();
}

void OP(budget_stopping, struct task_struct *p, bool runnable)
{
	struct purse *purse = bpf_task_storage_get(&purses, p, NULL, 0);

	if (!purse)
		return;
	if (purse->window != window) {
		purse->window = window;
		purse->used = 0;
	}
	purse->used += bpf_ktime_get_ns() - purse->since;
}

s32 OP_SLEEPABLE(budget_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	if (!bpf_task_storage_get(&purses, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE))
		return -ENOMEM;
	return 0;
}

static void next_window(void)
{
	struct task_struct *p;

	window++;
	for_each_queued(it, p, ASIDE, 0)
		scx_bpf_dsq_move(&it, p, QUEUE, 0);
	tell_all();
}

CLOCK(100 * NSEC_PER_MSEC, next_window)

s32 OP_SLEEPABLE(budget_init)
{
	window = 1;
	return scx_bpf_create_dsq(QUEUE, -1) ?: scx_bpf_create_dsq(ASIDE, -1) ?: start_clock();
}

DESIGN(budget,
       .running		= (void *)budget_running,
       .stopping		= (void *)budget_stopping,
       .init_task	= (void *)budget_init_task);
