/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A policy that asks the machine for too much: what `greedy_case` says. A
 * verifier would have refused most of it. Otherwise a FIFO: one queue, slice
 * 20 ms, a woken task stays on its CPU, and who inserts kicks an idle CPU.
 */
#include <scx.h>

BPF_LICENSE();

const volatile u32 greedy_case = 0;

enum {
	NOTHING = 0,
	/* Prints the clocks, from init. */
	CLOCKS = 1,
	/* Opens iterators and destroys none, from dispatch. */
	ITERATORS = 2,
	/* Timers that arm more timers at once, from init on. */
	TIMERS = 3,
	/* Walks over tasks that may not run here again and again, from dispatch. */
	PASSES_OVER = 4,
	/* No time passes: a kick for each dispatch, each of which works hard. */
	LIVELOCK = 5,
	/* Never ends, or stores where it may not, when the policy is taken off. */
	ENDLESS_EXIT_TASK = 6,
	WILD_EXIT_TASK = 7,
	ENDLESS_EXIT = 8,
	/* Kicks nobody. */
	NO_KICK = 9,
	/* Forgets the task whose name ends with Z. */
	FORGETS = 10,
	/* A timer at an absolute time, one millisecond from now. */
	ABSOLUTE = 11,
};

#define QUEUE 0
#define SLICE_NS (20 * NSEC_PER_MSEC)
#define NR_TIMERS 1024

static u64 (*const bpf_jiffies64)(void) = (void *)118;

struct alarm {
	struct bpf_timer timer;
};

ARRAY(alarms, struct alarm, NR_TIMERS);

static u64 exits, sum;

static __always_inline void spin(void)
{
	for (;;)
		asm volatile("" ::: "memory");
}

static __always_inline void work(u32 turns)
{
	u32 i;

	for (i = 0; i < turns; i++)
		sum = sum * 6364136223846793005ULL + i;
}

static int rearm_all(void *map, u32 *key, struct alarm *alarm)
{
	u32 i;

	for (i = 0; i < NR_TIMERS; i++) {
		struct alarm *other = bpf_map_lookup_elem(&alarms, &i);

		if (other)
			bpf_timer_start(&other->timer, 0, 0);
	}
	return 0;
}

static int say_when(void *map, u32 *key, struct alarm *alarm)
{
	bpf_printk("fired at %llu", scx_bpf_now());
	return 0;
}

static __always_inline void arm(u32 count)
{
	u32 i;

	for (i = 0; i < count; i++) {
		struct alarm *alarm = bpf_map_lookup_elem(&alarms, &i);

		if (!alarm)
			return;
		bpf_timer_init(&alarm->timer, &alarms, CLOCK_MONOTONIC);
		if (greedy_case == ABSOLUTE) {
			bpf_timer_set_callback(&alarm->timer, say_when);
			bpf_timer_start(&alarm->timer, bpf_ktime_get_ns() + NSEC_PER_MSEC, 1);
		} else {
			bpf_timer_set_callback(&alarm->timer, rearm_all);
			bpf_timer_start(&alarm->timer, 0, 0);
		}
	}
}

/* ---- Callbacks, in the order of a task's life ---- */

s32 OP(greedy_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu;
}

/* Whether the name ends with Z. */
static __always_inline bool is_forgotten(struct task_struct *p)
{
	u32 i;

	for (i = 0; i < 15; i++) {
		if (p->comm[i] == 'Z' && p->comm[i + 1] == 0)
			return true;
	}
	return false;
}

void OP(greedy_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 cpu;

	if (greedy_case == FORGETS && is_forgotten(p))
		return;
	scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
	if (greedy_case == NO_KICK)
		return;
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, 0);
}

void OP(greedy_dispatch, s32 cpu, struct task_struct *prev)
{
	struct bpf_iter_scx_dsq its[4];
	u32 i;

	switch (greedy_case) {
	case ITERATORS:
		for (i = 0; i < 1000; i++) {
			bpf_iter_scx_dsq_new(&its[i % 4], QUEUE, 0);
			bpf_iter_scx_dsq_next(&its[i % 4]);
		}
		break;
	case PASSES_OVER:
		if (cpu) {
			for (;;)
				scx_bpf_dsq_move_to_local(QUEUE);
		}
		break;
	case LIVELOCK:
		work(20000);
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		break;
	}
	scx_bpf_dsq_move_to_local(QUEUE);
}

void OP(greedy_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	exits++;
	if (greedy_case == ENDLESS_EXIT_TASK)
		spin();
	if (greedy_case == WILD_EXIT_TASK)
		*(volatile u64 *)8 = 1;
}

/* ---- Load and unload ---- */

s32 OP_SLEEPABLE(greedy_init)
{
	if (greedy_case == CLOCKS)
		bpf_printk("%llu %llu %llu", bpf_ktime_get_ns(), scx_bpf_now(), bpf_jiffies64());
	if (greedy_case == ABSOLUTE)
		arm(1);
	if (greedy_case == TIMERS)
		arm(NR_TIMERS);
	return scx_bpf_create_dsq(QUEUE, -1);
}

void OP(greedy_exit, struct scx_exit_info *info)
{
	bpf_printk("%llu exits", exits);
	if (greedy_case == ENDLESS_EXIT)
		spin();
}

POLICY(greedy_ops,
       .select_cpu	= (void *)greedy_select_cpu,
       .enqueue		= (void *)greedy_enqueue,
       .dispatch	= (void *)greedy_dispatch,
       .exit_task	= (void *)greedy_exit_task,
       .init		= (void *)greedy_init,
       .exit		= (void *)greedy_exit,
       .name		= "greedy");
