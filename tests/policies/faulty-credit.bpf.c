/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Orders tasks by the time that they have used, and does not bring the clock of a task
 * that slept forward: it comes back with credit for all its sleep, and nobody else runs
 * until that is used up.
 *
 * Breaks: a task waits no longer than all others run once.
 */
#include "faulty.h"

#define CPUS 64

/* By CPU: when its task began to run. */
static u64 began[CPUS];

SELECT_CPU_PREV(credit)

void OP(credit_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert_vtime(p, QUEUE, SLICE_NS, p->scx.dsq_vtime, enq_flags); /* the fault */
}

DISPATCH_QUEUE(credit)

void OP(credit_running, struct task_struct *p)
{
	began[bpf_get_smp_processor_id() % CPUS] = bpf_ktime_get_ns();
}

void OP(credit_stopping, struct task_struct *p, bool runnable)
{
	p->scx.dsq_vtime += bpf_ktime_get_ns() - began[bpf_get_smp_processor_id() % CPUS];
}

INIT_QUEUE(credit)
FAULTY(credit, .running = (void *)credit_running, .stopping = (void *)credit_stopping);
