/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * First come, first served on the CPU where a task woke, at the speed that the
 * knob says: the target of all CPUs is set at the begin, and that of a CPU
 * again whenever a task begins to run there.
 */
#include <scx.h>

BPF_LICENSE();

/* Of 1024, the full speed of the machine's biggest CPU. */
const volatile u64 speed_target = 1024;

__kfunc u32 scx_bpf_cpuperf_cap(s32 cpu);
__kfunc u32 scx_bpf_cpuperf_cur(s32 cpu);

/* What the kernel said last. */
u64 seen_cap, seen_cur;

void OP(speed_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, enq_flags);
}

void OP(speed_running, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);

	seen_cap = scx_bpf_cpuperf_cap(cpu);
	seen_cur = scx_bpf_cpuperf_cur(cpu);
	bpf_printk("cap %llu cur %llu", seen_cap, seen_cur);
	scx_bpf_cpuperf_set(cpu, speed_target);
}

s32 OP_SLEEPABLE(speed_init)
{
	s32 cpu;

	for (cpu = 0; cpu < 1024 && cpu < (s32)scx_bpf_nr_cpu_ids(); cpu++)
		scx_bpf_cpuperf_set(cpu, speed_target);
	return 0;
}

POLICY(speed_ops,
       .enqueue		= (void *)speed_enqueue,
       .running		= (void *)speed_running,
       .init		= (void *)speed_init,
       .name		= "speed");
