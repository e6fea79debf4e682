/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A timer moves tasks from the queue where they come to the one that is dispatched, and
 * is started again only a hundred times.
 *
 * Breaks: every runnable task runs in bounded time.
 */
#include "faulty.h"

#define COMES 1

struct alarm {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct alarm);
} alarms SEC(".maps");

static u32 turns;

static int forward(void *map, u32 *key, struct alarm *alarm)
{
	struct task_struct *p;

	for_each_queued(it, p, COMES, 0) { /* the fault */
		scx_bpf_dsq_move(&it, p, QUEUE, 0);
		scx_bpf_kick_cpu(scx_bpf_task_cpu(p), SCX_KICK_IDLE);
	}
	if (++turns < 100)
		bpf_timer_start(&alarm->timer, NSEC_PER_MSEC, 0);
	return 0;
}

SELECT_CPU_PREV(timer)

void OP(timer_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, COMES, SLICE_NS, enq_flags);
}

DISPATCH_QUEUE(timer)

s32 OP_SLEEPABLE(timer_init)
{
	u32 key = 0;
	struct alarm *alarm = bpf_map_lookup_elem(&alarms, &key);

	if (!alarm)
		return -ENOENT;
	bpf_timer_init(&alarm->timer, &alarms, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&alarm->timer, forward);
	bpf_timer_start(&alarm->timer, NSEC_PER_MSEC, 0);
	return scx_bpf_create_dsq(QUEUE, -1) ?: scx_bpf_create_dsq(COMES, -1);
}

FAULTY(timer);
