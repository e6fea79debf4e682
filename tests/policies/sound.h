/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the sound policies share. Each of them lets tasks wait for long by design,
 * within the bound that its head states. None of them is to be accused.
 */
#ifndef SOUND_H
#define SOUND_H

#include <scx.h>

BPF_LICENSE();

#define SLICE_NS 5000000
#define CPUS_MAX 1024

/* Wakes an idle CPU that `p` may use. */
static __always_inline void call_idle(struct task_struct *p)
{
	s32 cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);

	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/* A waking task stays at its CPU and goes through `enqueue`. */
#define SELECT_CPU_PREV(name)								\
	s32 OP(name##_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)	\
	{										\
		return prev_cpu;							\
	}

/* A timer that calls `turn` every so often. */
#define TIMER(turn, every_ns)								\
	struct turn##_alarm {								\
		struct bpf_timer timer;							\
	};										\
	ARRAY(turn##_alarms, struct turn##_alarm, 1);					\
	static int turn##_rings(void *map, u32 *key, struct turn##_alarm *alarm)	\
	{										\
		turn();									\
		bpf_timer_start(&alarm->timer, every_ns, 0);				\
		return 0;								\
	}										\
	static __always_inline s32 turn##_begins(void)					\
	{										\
		u32 key = 0;								\
		struct turn##_alarm *alarm = bpf_map_lookup_elem(&turn##_alarms, &key);	\
											\
		if (!alarm)								\
			return -ENOENT;							\
		bpf_timer_init(&alarm->timer, &turn##_alarms, CLOCK_MONOTONIC);		\
		bpf_timer_set_callback(&alarm->timer, turn##_rings);			\
		bpf_timer_start(&alarm->timer, every_ns, 0);				\
		return 0;								\
	}

#define SOUND(table, right, members...)							\
	POLICY_RIGHT(right);								\
	POLICY(table##_ops,								\
	       .select_cpu	= (void *)table##_select_cpu,				\
	       .enqueue		= (void *)table##_enqueue,				\
	       .dispatch	= (void *)table##_dispatch,				\
	       .init		= (void *)table##_init,					\
	       ##members,								\
	       .name		= "sound")

#endif /* SOUND_H */
