/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A FIFO that has its tasks enqueued again when a higher class takes the CPU, and asks for the
 * same from within that enqueue: the kernel allows it to cpu_release alone.
 */
#include <scx.h>

BPF_LICENSE();

#define SLICE_NS (20 * NSEC_PER_MSEC)

void OP(nested_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (enq_flags & SCX_ENQ_REENQ)
		scx_bpf_reenqueue_local();
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SLICE_NS, enq_flags);
}

void OP(nested_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	scx_bpf_reenqueue_local();
}

POLICY(nested_ops,
       .enqueue		= (void *)nested_enqueue,
       .cpu_release	= (void *)nested_cpu_release,
       .name		= "nested");
