/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The table of callbacks of kernels 7.2 and 7.3, and what is theirs alone; see ../7.2.h. */

/* ---- How a policy ends ---- */

enum scx_exit_kind {
	SCX_EXIT_NONE,
	SCX_EXIT_DONE,

	SCX_EXIT_UNREG = 64,
	SCX_EXIT_UNREG_BPF,
	SCX_EXIT_UNREG_KERN,
	SCX_EXIT_SYSRQ,
	SCX_EXIT_PARENT,
#if SIMULATED_KERNEL >= 7003
	SCX_EXIT_PARENT_KILL,
#endif

	SCX_EXIT_ERROR = 1024,
	SCX_EXIT_ERROR_BPF,
	SCX_EXIT_ERROR_STALL,
#if SIMULATED_KERNEL >= 7003
	SCX_EXIT_ERROR_REENQ,
	SCX_EXIT_ERROR_RESCUE,
#endif
};

struct scx_exit_info {
	enum scx_exit_kind kind;
	s32 exit_cpu;
	s64 exit_code;
	u64 flags;
	const char *reason;
	unsigned long *bt;
	u32 bt_len;
	char *msg;
	char *dump;
};

struct scx_dump_ctx {
	enum scx_exit_kind kind;
	s64 exit_code;
	const char *reason;
	u64 at_ns;
	u64 at_jiffies;
};

struct scx_event_stats {
	s64 SCX_EV_SELECT_CPU_FALLBACK;
	s64 SCX_EV_DISPATCH_LOCAL_DSQ_OFFLINE;
	s64 SCX_EV_DISPATCH_KEEP_LAST;
	s64 SCX_EV_ENQ_SKIP_EXITING;
	s64 SCX_EV_ENQ_SKIP_MIGRATION_DISABLED;
	s64 SCX_EV_REENQ_IMMED;
#if SIMULATED_KERNEL >= 7003
	s64 SCX_EV_REENQ_REPEAT;
	s64 SCX_EV_REFILL_SLICE_DFL;
	s64 SCX_EV_SLICE_CLAMPED;
	s64 SCX_EV_SLICE_DENIED;
#else
	s64 SCX_EV_REENQ_LOCAL_REPEAT;
	s64 SCX_EV_REFILL_SLICE_DFL;
#endif
	s64 SCX_EV_BYPASS_DURATION;
	s64 SCX_EV_BYPASS_DISPATCH;
	s64 SCX_EV_BYPASS_ACTIVATE;
	s64 SCX_EV_INSERT_NOT_OWNED;
	s64 SCX_EV_SUB_BYPASS_DISPATCH;
#if SIMULATED_KERNEL >= 7003
	s64 SCX_EV_SUB_FORCED_ADMIT;
	s64 SCX_EV_SUB_PREEMPT_DENIED;
	s64 SCX_EV_SUB_KICK_DENIED;
	s64 SCX_EV_SUB_REENQ_DENIED;
	s64 SCX_EV_SUB_CIDPERF_DENIED;
	s64 SCX_EV_SUB_RESCUE;
#endif
};

/* ---- The table of callbacks: every member, in its order ---- */

struct scx_cmask;
struct scx_sub_attach_args;
struct scx_sub_detach_args;

#define SCX_OPS_NAME_BYTES 128

struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dequeue)(struct task_struct *p, u64 deq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*tick)(struct task_struct *p);
	void (*runnable)(struct task_struct *p, u64 enq_flags);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*quiescent)(struct task_struct *p, u64 deq_flags);
	bool (*yield)(struct task_struct *from, struct task_struct *to);
	bool (*core_sched_before)(struct task_struct *a, struct task_struct *b);
	void (*set_weight)(struct task_struct *p, u32 weight);
	void (*set_cpumask)(struct task_struct *p, const struct cpumask *cpumask);
	void (*update_idle)(s32 cpu, bool idle);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
	void (*enable)(struct task_struct *p);
	void (*disable)(struct task_struct *p);
	void (*dump)(struct scx_dump_ctx *ctx);
	void (*dump_cpu)(struct scx_dump_ctx *ctx, s32 cpu, bool idle);
	void (*dump_task)(struct scx_dump_ctx *ctx, struct task_struct *p);
	s32 (*cgroup_init)(struct cgroup *cgrp, struct scx_cgroup_init_args *args);
	void (*cgroup_exit)(struct cgroup *cgrp);
	s32 (*cgroup_prep_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*cgroup_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*cgroup_cancel_move)(struct task_struct *p, struct cgroup *from,
				   struct cgroup *to);
	void (*cgroup_set_weight)(struct cgroup *cgrp, u32 weight);
	void (*cgroup_set_bandwidth)(struct cgroup *cgrp, u64 period_us, u64 quota_us,
				     u64 burst_us);
	void (*cgroup_set_idle)(struct cgroup *cgrp, bool idle);
	s32 (*sub_attach)(struct scx_sub_attach_args *args);
	void (*sub_detach)(struct scx_sub_detach_args *args);
#if SIMULATED_KERNEL >= 7003
	void (*sub_caps_updated)(const struct scx_cmask *cmask, u64 caps);
	void (*sub_ecaps_updated)(s32 cid, u64 before, u64 after);
#endif
	void (*cpu_online)(s32 cpu);
	void (*cpu_offline)(s32 cpu);
#if SIMULATED_KERNEL >= 7003
	s32 (*init_cids)(void);
#endif
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u32 dispatch_max_batch;
	u64 flags;
	u32 timeout_ms;
	u32 exit_dump_len;
	u64 hotplug_seq;
#if SIMULATED_KERNEL >= 7003
	u32 cid_shard_size;
	u32 rescue_bandwidth_ppt;
	u32 rescue_quantum_us;
#endif
	u64 sub_cgroup_id;
	char name[SCX_OPS_NAME_BYTES];
	void *priv;
	/* Deprecated, and at the end for that reason. */
	void (*cpu_acquire)(s32 cpu, struct scx_cpu_acquire_args *args);
	void (*cpu_release)(s32 cpu, struct scx_cpu_release_args *args);
};
