/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Does what kernels answer differently, and prints the answers: is a CPU in
 * the mask of idle ones while update_idle tells of it; which CPU is chosen for
 * a task that may run on one alone; does a task go on that is put into the
 * local queue when it is the last one. Runs on 6.12, too.
 */
#include <scx.h>

BPF_LICENSE();

/* The name until 6.16. */
__kfunc void scx_bpf_dispatch(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags);

static void insert_local(struct task_struct *p, u64 enq_flags)
{
	if (exists(scx_bpf_dsq_insert))
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, 4 * NSEC_PER_MSEC, enq_flags);
	else
		scx_bpf_dispatch(p, SCX_DSQ_LOCAL, 4 * NSEC_PER_MSEC, enq_flags);
}

void OP(differs_enqueue, struct task_struct *p, u64 enq_flags)
{
	bool is_idle = false;

	if (exists(scx_bpf_dsq_insert) && p->nr_cpus_allowed == 1) {
		s32 cpu = scx_bpf_select_cpu_dfl(p, 0, 0, &is_idle);

		bpf_printk("chosen %d %d", cpu, is_idle);
	}
	insert_local(p, enq_flags);
}

void OP(differs_update_idle, s32 cpu, bool idle)
{
	const struct cpumask *mask = scx_bpf_get_idle_cpumask();

	bpf_printk("idle %d %d", idle, bpf_cpumask_test_cpu(cpu, mask));
	scx_bpf_put_idle_cpumask(mask);
}

POLICY(differs_ops,
       .enqueue		= (void *)differs_enqueue,
       .update_idle	= (void *)differs_update_idle,
       .flags		= SCX_OPS_KEEP_BUILTIN_IDLE | SCX_OPS_ENQ_LAST,
       .name		= "differs");
