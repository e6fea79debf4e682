/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every task comes to CPU 0. One that may run everywhere is handed over to CPU 1, and
 * nobody is kicked for it: the kernel lets an idle CPU look again that another one gives
 * a task. With `kicks`, CPU 1 is also kicked twice, and twice if it idles.
 */
#include <scx.h>

BPF_LICENSE();

const volatile bool kicks = false;

__kfunc bool bpf_cpumask_full(const struct cpumask *mask);

#define QUEUE 0
#define SLICE_NS (20 * NSEC_PER_MSEC)

s32 OP(hands_over_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return 0;
}

void OP(hands_over_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (!bpf_cpumask_full(p->cpus_ptr)) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SLICE_NS, enq_flags);
		return;
	}
	scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
	if (!kicks)
		return;
	scx_bpf_kick_cpu(1, 0);
	scx_bpf_kick_cpu(1, 0);
	scx_bpf_kick_cpu(1, SCX_KICK_IDLE);
	scx_bpf_kick_cpu(1, SCX_KICK_IDLE);
}

void OP(hands_over_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_struct *p;

	if (cpu)
		return;
	for_each_queued(it, p, QUEUE, 0)
		scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL_ON | 1, 0);
}

s32 OP_SLEEPABLE(hands_over_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

POLICY(hands_over_ops,
       .select_cpu	= (void *)hands_over_select_cpu,
       .enqueue		= (void *)hands_over_enqueue,
       .dispatch	= (void *)hands_over_dispatch,
       .init		= (void *)hands_over_init,
       .name		= "hands_over");
