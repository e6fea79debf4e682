/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the faulty policies share. Each of them does one thing wrong, and its head says what, and
 * which property that breaks. The comment "the fault" stands at the line that a reader must be
 * led to; tests/src/faulty.rs looks for it.
 */
#ifndef FAULTY_H
#define FAULTY_H

#include <scx.h>

BPF_LICENSE();
POLICY_RIGHT("weight");

/* The queue of all tasks. */
#define QUEUE 0
#define SLICE_NS 5000000

/* A waking task stays at its CPU and goes through `enqueue`. */
#define SELECT_CPU_PREV(name)								\
	s32 OP(name##_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)	\
	{										\
		return prev_cpu;							\
	}

/* Every CPU takes from the one queue. */
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

#define FAULTY(table, members...)							\
	POLICY(table##_ops,								\
	       .select_cpu	= (void *)table##_select_cpu,				\
	       .enqueue		= (void *)table##_enqueue,				\
	       .dispatch	= (void *)table##_dispatch,				\
	       .init		= (void *)table##_init,					\
	       ##members,								\
	       .name		= "faulty")

#endif /* FAULTY_H */
