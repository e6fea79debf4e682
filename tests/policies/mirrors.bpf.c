/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Prints what a program sees of a task when it is enqueued and when it stops:
 * each field that the machine brings up to date only for whoever names it.
 * Slices never end, so that nothing else makes the machine look at a task.
 */
#include <scx.h>

BPF_LICENSE();

struct thread_info___mirrors {
	u32 cpu;
} __core;

struct task_struct___mirrors {
	struct thread_info___mirrors thread_info;
	int wake_cpu;
	u64 utime;
} __core;

static void show(const char *what, struct task_struct *p)
{
	struct task_struct___mirrors *more = (void *)p;

	bpf_printk("%s: ran %llu, user %llu", what, p->se.sum_exec_runtime, more->utime);
	bpf_printk("%s: state %u, pinned %u", what, p->__state, p->migration_disabled);
	bpf_printk("%s: on %u, woken for %d", what, more->thread_info.cpu, more->wake_cpu);
}

void OP(mirrors_enqueue, struct task_struct *p, u64 enq_flags)
{
	show("in", p);
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags);
}

void OP(mirrors_stopping, struct task_struct *p, bool runnable)
{
	show("out", p);
}

POLICY(mirrors_ops,
       .enqueue		= (void *)mirrors_enqueue,
       .stopping	= (void *)mirrors_stopping,
       .name		= "mirrors");
