/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Policies in cid form: CPUs have topological numbers (cids), and masks of them lie in the policy's
 * arena. Kernels 7.2 and 7.3; see ../7.2.h. Source: BTF of Debian's 7.3.4, and of its 7.2.12 what
 * conditions exclude.
 */

/* The bits follow; the first of them stands for the cid `base` rounded down to 64. */
struct scx_cmask {
	u32 base;
	u32 nr_cids;
	u32 alloc_words;
	u64 bits[];
};

/* The first cid of a unit, and the unit's index; -1 where nothing is known. */
struct scx_cid_topo {
	s32 core_cid;
	s32 core_idx;
	s32 llc_cid;
	s32 llc_idx;
	s32 node_cid;
	s32 node_idx;
#if SIMULATED_KERNEL >= 7003
	s32 shard_cid;
	s32 shard_idx;
#endif
};

#if SIMULATED_KERNEL >= 7003
struct scx_enable_args {
	u64 cmask_arena_addr;
};

enum scx_cap_flags {
	SCX_CAP_ENQ_IMMED = 1,
	SCX_CAP_ENQ = 2,
	SCX_CAP_PREEMPT = 4,
	SCX_CAP_PERF = 8,
	SCX_CAP_BASE = SCX_CAP_ENQ_IMMED,
};
#endif

struct scx_sub_attach_args {
	struct sched_ext_ops *ops;
	char *cgroup_path;
};

struct scx_sub_detach_args {
	struct sched_ext_ops *ops;
	char *cgroup_path;
};

/* Its members lie where those of struct sched_ext_ops lie. */
struct sched_ext_ops_cid {
	s32 (*select_cid)(struct task_struct *p, s32 prev_cid, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dequeue)(struct task_struct *p, u64 deq_flags);
	void (*dispatch)(s32 cid, struct task_struct *prev);
	void (*tick)(struct task_struct *p);
	void (*runnable)(struct task_struct *p, u64 enq_flags);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*quiescent)(struct task_struct *p, u64 deq_flags);
	bool (*yield)(struct task_struct *from, struct task_struct *to);
	bool (*core_sched_before)(struct task_struct *a, struct task_struct *b);
	void (*set_weight)(struct task_struct *p, u32 weight);
	void (*set_cmask)(struct task_struct *p, const struct scx_cmask *cmask);
	void (*update_idle)(s32 cid, bool idle);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
#if SIMULATED_KERNEL >= 7003
	void (*enable)(struct task_struct *p, struct scx_enable_args *args);
#else
	void (*enable)(struct task_struct *p);
#endif
	void (*disable)(struct task_struct *p);
	void (*dump)(struct scx_dump_ctx *ctx);
	void (*dump_cid)(struct scx_dump_ctx *ctx, s32 cid, bool idle);
	void (*dump_task)(struct scx_dump_ctx *ctx, struct task_struct *p);
#if SIMULATED_KERNEL >= 7003
	s32 (*cpuctl_init)(struct cgroup *cgrp, struct scx_cgroup_init_args *args);
	void (*cpuctl_exit)(struct cgroup *cgrp);
	s32 (*cpuctl_prep_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*cpuctl_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*cpuctl_cancel_move)(struct task_struct *p, struct cgroup *from,
				   struct cgroup *to);
	void (*cpuctl_set_weight)(struct cgroup *cgrp, u32 weight);
	void (*cpuctl_set_bandwidth)(struct cgroup *cgrp, u64 period_us, u64 quota_us,
				     u64 burst_us);
	void (*cpuctl_set_idle)(struct cgroup *cgrp, bool idle);
#else
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
#endif
	s32 (*sub_attach)(struct scx_sub_attach_args *args);
	void (*sub_detach)(struct scx_sub_detach_args *args);
#if SIMULATED_KERNEL >= 7003
	void (*sub_caps_updated)(const struct scx_cmask *cmask, u64 caps);
	void (*sub_ecaps_updated)(s32 cid, u64 before, u64 after);
#endif
	void (*cid_online)(s32 cid);
	void (*cid_offline)(s32 cid);
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
};
