/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Prints in each callback what it sees of a task: each field that is to be right from birth on,
 * before the task has run a callback itself. The file that includes this one says which function
 * inserts.
 */
#include <scx.h>

BPF_LICENSE();

__kfunc void INSERT(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags);

#define CPUS 4

struct task_struct___births {
	struct cpumask cpus_mask;
} __core;

struct sched_ext_entity___births {
	unsigned long runnable_at;
} __core;

static u32 word(const struct cpumask *mask)
{
	u32 set = 0;

	for (u32 cpu = 0; cpu < CPUS; cpu++)
		set |= bpf_cpumask_test_cpu(cpu, mask) ? 1 << cpu : 0;
	return set;
}

static void show(const char *what, struct task_struct *p)
{
	const struct cpumask *own = &((struct task_struct___births *)p)->cpus_mask;
	struct sched_ext_entity___births *more = (void *)&p->scx;

	bpf_printk("%s: pid %d, mm %u", what, p->pid, p->mm != 0);
	bpf_printk("%s: state %x, scx %u", what, p->__state, p->scx.flags >> 8);
	bpf_printk("%s: weight %u, prio %u", what, p->scx.weight, p->static_prio);
	bpf_printk("%s: pinned %u, allowed %u", what, p->migration_disabled, p->nr_cpus_allowed);
	bpf_printk("%s: cpus %x, of %x", what, word(p->cpus_ptr), word(own));
	bpf_printk("%s: own %u, waits %u", what, p->cpus_ptr == own, more->runnable_at != 0);
}

s32 OP_SLEEPABLE(births_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	show("init_task", p);
	return 0;
}

void OP(births_enable, struct task_struct *p)
{
	show("enable", p);
}

void OP(births_set_weight, struct task_struct *p, u32 weight)
{
	show("set_weight", p);
}

void OP(births_set_cpumask, struct task_struct *p, const struct cpumask *cpumask)
{
	show("set_cpumask", p);
	bpf_printk("set_cpumask: told %x, shown %u", word(cpumask), cpumask == p->cpus_ptr);
}

s32 OP(births_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	show("select_cpu", p);
	return prev_cpu;
}

void OP(births_runnable, struct task_struct *p, u64 enq_flags)
{
	show("runnable", p);
}

void OP(births_enqueue, struct task_struct *p, u64 enq_flags)
{
	show("enqueue", p);
	INSERT(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, enq_flags);
}

void OP(births_running, struct task_struct *p)
{
	show("running", p);
}

void OP(births_stopping, struct task_struct *p, bool runnable)
{
	show("stopping", p);
}

void OP(births_quiescent, struct task_struct *p, u64 deq_flags)
{
	show("quiescent", p);
}

void OP(births_disable, struct task_struct *p)
{
	show("disable", p);
}

void OP(births_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	show("exit_task", p);
}

POLICY(births_ops,
       .init_task	= (void *)births_init_task,
       .enable		= (void *)births_enable,
       .set_weight	= (void *)births_set_weight,
       .set_cpumask	= (void *)births_set_cpumask,
       .select_cpu	= (void *)births_select_cpu,
       .runnable	= (void *)births_runnable,
       .enqueue		= (void *)births_enqueue,
       .running		= (void *)births_running,
       .stopping	= (void *)births_stopping,
       .quiescent	= (void *)births_quiescent,
       .disable		= (void *)births_disable,
       .exit_task	= (void *)births_exit_task,
       .flags		= FLAGS,
       .name		= "births");
