/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the policies share that are sound by design although somebody waits under them: each does
 * what its head says, tells an idle CPU after each insert that it may take, and loses nobody. The
 * head states what a task may expect; tests/src/truth.rs has the same as numbers.
 */
#ifndef DESIGN_H
#define DESIGN_H

#include <scx.h>

BPF_LICENSE();

#define QUEUE 0
#define SLICE_NS (5 * NSEC_PER_MSEC)

/* Tells an idle CPU that `p` may use. */
static __always_inline void tell_idle(struct task_struct *p)
{
	s32 cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);

	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/* A waking task goes through `enqueue`, and takes no idle CPU before. */
#define SELECT_CPU_PREV(name)								\
	s32 OP(name##_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)	\
	{										\
		return prev_cpu;							\
	}

#define DISPATCH_QUEUE(name)								\
	void OP(name##_dispatch, s32 cpu, struct task_struct *prev)			\
	{										\
		scx_bpf_dsq_move_to_local(QUEUE);					\
	}

#define INIT_QUEUE(name)								\
	s32 OP_SLEEPABLE(name##_init)							\
	{										\
		return scx_bpf_create_dsq(QUEUE, -1);					\
	}

/* A function that is called every `period` once `start_clock()` has been called in `init`. */
#define CLOCK(period, body)								\
	struct clock_value {								\
		struct bpf_timer timer;							\
	};										\
	struct {									\
		__uint(type, BPF_MAP_TYPE_ARRAY);					\
		__uint(max_entries, 1);							\
		__type(key, u32);							\
		__type(value, struct clock_value);					\
	} clocks SEC(".maps");								\
	static int on_clock(void *map, u32 *key, struct clock_value *value)		\
	{										\
		body();									\
		bpf_timer_start(&value->timer, period, 0);				\
		return 0;								\
	}										\
	static __always_inline s32 start_clock(void)					\
	{										\
		u32 key = 0;								\
		struct clock_value *value = bpf_map_lookup_elem(&clocks, &key);		\
											\
		if (!value)								\
			return -ENOENT;							\
		bpf_timer_init(&value->timer, &clocks, CLOCK_MONOTONIC);		\
		bpf_timer_set_callback(&value->timer, on_clock);			\
		bpf_timer_start(&value->timer, period, 0);				\
		return 0;								\
	}

/* Tells every idle CPU to look for work. */
static __always_inline void tell_all(void)
{
	u32 cpus = scx_bpf_nr_cpu_ids();

	for (u32 cpu = 0; cpu < 64; cpu++)
		if (cpu < cpus)
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

#define DESIGN(table, members...)							\
	POLICY(table##_ops,								\
	       .select_cpu	= (void *)table##_select_cpu,				\
	       .enqueue		= (void *)table##_enqueue,				\
	       .dispatch	= (void *)table##_dispatch,				\
	       .init		= (void *)table##_init,					\
	       ##members,								\
	       .name		= "design")

#endif /* DESIGN_H */
