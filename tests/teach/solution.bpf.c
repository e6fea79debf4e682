/* SPDX-License-Identifier: GPL-2.0-only */
/* One queue for all; each has it for a quantum. A solution of teach/exercise.md. */
#include <bpf.h>
#include <scx.h>

BPF_LICENSE();

#define QUEUE 0

/* The quantum, in nanoseconds. */
#define QUANTUM_NS 10000000ULL

/* A task wants the CPU: it has come, or its time is over. */
void OP(student_enqueue, struct task_struct *p, u64 enq_flags)
{
	/* At the end. */
	scx_bpf_dsq_insert(p, QUEUE, QUANTUM_NS, enq_flags);
}

/* A CPU has nothing to do: it takes the first of the queue. */
void OP(student_dispatch, s32 cpu, struct task_struct *prev)
{
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
