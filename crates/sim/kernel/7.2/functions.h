/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Functions that came with 6.19 and, where a condition says so, with 7.1; see ../7.2.h. */

struct scx_bpf_dsq_insert_vtime_args {
	u64 dsq_id;
	u64 slice;
	u64 vtime;
	u64 enq_flags;
};

struct scx_bpf_select_cpu_and_args {
	s32 prev_cpu;
	u64 wake_flags;
	u64 flags;
};

/* Queues. */
GIVES(bool, scx_bpf_dsq_insert___v2, struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags)
GIVES(bool, __scx_bpf_dsq_insert_vtime, struct task_struct *p,
      struct scx_bpf_dsq_insert_vtime_args *args)
GIVES(struct task_struct *, scx_bpf_dsq_peek, u64 dsq_id)
#if SIMULATED_KERNEL >= 7001
GIVES(bool, scx_bpf_dsq_move_to_local___v2, u64 dsq_id, u64 enq_flags)
VOID(scx_bpf_dsq_reenq, u64 dsq_id, u64 reenq_flags)
#endif
VOID(scx_bpf_reenqueue_local___v2, void)

/* CPUs. */
GIVES(s32, __scx_bpf_select_cpu_and, struct task_struct *p, const struct cpumask *cpus_allowed,
      struct scx_bpf_select_cpu_and_args *args)

/* Tasks. */
GIVES(bool, scx_bpf_task_set_slice, struct task_struct *p, u64 slice)
GIVES(bool, scx_bpf_task_set_dsq_vtime, struct task_struct *p, u64 vtime)
