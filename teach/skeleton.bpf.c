/* SPDX-License-Identifier: GPL-2.0-only */
/* One queue for all; whoever gets the CPU keeps it. Make it round robin: see exercise.md. */
#include <bpf.h>
#include <scx.h>

BPF_LICENSE();

#define QUEUE 0

/* TODO 1: the quantum, in nanoseconds. */
#define QUANTUM_NS SCX_SLICE_INF

/* A task wants the CPU: it has come, or its time is over. */
void OP(student_enqueue, struct task_struct *p, u64 enq_flags)
{
	/* TODO 2: who stands where in the queue? With SCX_ENQ_HEAD it is the first place. */
	scx_bpf_dsq_insert(p, QUEUE, QUANTUM_NS, enq_flags | SCX_ENQ_HEAD);
}

/* A CPU has nothing to do: it takes the first of the queue. */
void OP(student_dispatch, s32 cpu, struct task_struct *prev)
{
	/* TODO 3: is there anything to do about `prev`? */
	scx_bpf_dsq_move_to_local(QUEUE);
}

s32 OP_SLEEPABLE(student_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

POLICY_RIGHT("weight");
POLICY(student_ops,
       .enqueue		= (void *)student_enqueue,
       .dispatch	= (void *)student_dispatch,
       .init		= (void *)student_init,
       .name		= "student");
