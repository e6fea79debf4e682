/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A FIFO that prints the class and the priorities of each task when it hears of it.
 */
#include <scx.h>

BPF_LICENSE();

s32 OP_SLEEPABLE(prios_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	bpf_printk("class %d, prio %d, static %d", p->policy, p->prio, p->static_prio);
	return 0;
}

void OP(prios_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, enq_flags);
}

POLICY(prios_ops,
       .init_task	= (void *)prios_init_task,
       .enqueue		= (void *)prios_enqueue,
       .name		= "prios");
