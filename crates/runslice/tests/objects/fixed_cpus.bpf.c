/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * First in, first out, without callbacks for CPUs that come or go: the kernel
 * ends it then and asks for a restart. It does not report its end either, so
 * the loader must find out by itself.
 */
#include <scx.h>

BPF_LICENSE();

void OP(fixed_cpus_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}

POLICY(fixed_cpus_ops,
       .enqueue		= (void *)fixed_cpus_enqueue,
       .name		= "fixed_cpus");
