/* SPDX-License-Identifier: GPL-2.0-only */
/* Calls two functions that no kernel has. */
#include <scx.h>

BPF_LICENSE();

extern void scx_bpf_read_minds(struct task_struct *p) __ksym;
extern u64 scx_bpf_tell_future(u64 span_ns) __ksym;

void OP(needy_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_read_minds(p);
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, scx_bpf_tell_future(1), enq_flags);
}

POLICY(needy_ops,
       .enqueue		= (void *)needy_enqueue,
       .name		= "needy");
