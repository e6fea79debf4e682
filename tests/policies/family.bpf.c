/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Says whose child a task is, and of whose process: in words whenever it leaves
 * its CPU, and as its level, which is 1 for the child of a task called "maker".
 */
#include <report.bpf.h>

BPF_LICENSE();

struct task_struct___family {
	struct task_struct *group_leader;
} __core;

s32 OP_SLEEPABLE(family_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	return report_init(p) ? 0 : -ENOMEM;
}

void OP(family_running, struct task_struct *p)
{
	const char *comm = p->real_parent->comm;
	bool of_maker = comm[0] == 'm' && comm[1] == 'a' && comm[2] == 'k';

	report_task(p, p->static_prio, of_maker, 0);
}

void OP(family_stopping, struct task_struct *p, bool runnable)
{
	struct task_struct___family *more = (void *)p;

	bpf_printk("%d: parent %d, leader %d", p->pid, p->real_parent->pid,
		   more->group_leader->pid);
}

POLICY(family_ops,
       .init_task	= (void *)family_init_task,
       .running		= (void *)family_running,
       .stopping	= (void *)family_stopping,
       .name		= "family");
