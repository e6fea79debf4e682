/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One queue, and no callback that is not needed: the kernel chooses CPUs. Its class of a
 * wait must be that of a policy with more callbacks.
 */
#include <scx.h>

BPF_LICENSE();
POLICY_RIGHT("weight");

#define QUEUE 0

void OP(no_select_cpu_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, QUEUE, 5000000, enq_flags);
}

void OP(no_select_cpu_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(QUEUE);
}

s32 OP_SLEEPABLE(no_select_cpu_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

POLICY(no_select_cpu_ops,
       .enqueue		= (void *)no_select_cpu_enqueue,
       .dispatch	= (void *)no_select_cpu_dispatch,
       .init		= (void *)no_select_cpu_init,
       .name		= "no_select_cpu");
