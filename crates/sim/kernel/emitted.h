/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ---- Emit everything ----
 *
 * The compiler drops types that nothing uses, and records a struct behind a
 * pointer in a struct as a name only. A member by value keeps the whole type.
 */
struct emitted {
	struct task_struct task_struct;
	struct rq rq;
	struct cgroup cgroup;
	struct css_set css_set;
	struct kernfs_node kernfs_node;
	struct task_group task_group;
	struct bpf_cpumask bpf_cpumask;
	struct signal_struct signal_struct;
	struct pid pid;
	struct pid_namespace pid_namespace;
	struct cred cred;
	struct mm_struct mm_struct;
	struct mempolicy mempolicy;
	struct sched_class sched_class;
	struct sched_ext_ops sched_ext_ops;
	struct scx_exit_info scx_exit_info;
	struct scx_init_task_args scx_init_task_args;
	struct scx_exit_task_args scx_exit_task_args;
	struct scx_cgroup_init_args scx_cgroup_init_args;
	struct scx_cpu_acquire_args scx_cpu_acquire_args;
	struct scx_cpu_release_args scx_cpu_release_args;
	struct scx_dump_ctx scx_dump_ctx;
#if SIMULATED_KERNEL >= 6014
	struct scx_event_stats scx_event_stats;
#endif
#if SIMULATED_KERNEL >= 7002
	struct sched_ext_ops_cid sched_ext_ops_cid;
	struct scx_cid_topo scx_cid_topo;
	enum cgroup_subsys_id cgroup_subsys_id;
	struct scx_sub_attach_args scx_sub_attach_args;
	struct scx_sub_detach_args scx_sub_detach_args;
#endif
#if SIMULATED_KERNEL >= 7003
	struct scx_enable_args scx_enable_args;
	enum scx_cap_flags scx_cap_flags;
#endif
	struct bpf_timer bpf_timer;
	struct bpf_spin_lock bpf_spin_lock;
	struct bpf_perf_event_value bpf_perf_event_value;
	struct bpf_iter__task bpf_iter__task;
	struct bpf_iter_meta bpf_iter_meta;
	struct seq_file seq_file;
	atomic64_t atomic64;
	enum scx_public_consts scx_public_consts;
	enum scx_consts scx_consts;
	enum scx_ops_flags scx_ops_flags;
	enum scx_dsq_id_flags scx_dsq_id_flags;
	enum scx_wake_flags scx_wake_flags;
	enum scx_enq_flags scx_enq_flags;
	enum scx_deq_flags scx_deq_flags;
	enum scx_kick_flags scx_kick_flags;
	enum scx_pick_idle_cpu_flags scx_pick_idle_cpu_flags;
	enum scx_dsq_iter_flags scx_dsq_iter_flags;
	enum scx_dsq_lnode_flags scx_dsq_lnode_flags;
	enum scx_ent_flags scx_ent_flags;
	enum scx_ent_dsq_flags scx_ent_dsq_flags;
	enum scx_ops_state scx_ops_state;
	enum scx_enable_state scx_enable_state;
	enum scx_rq_flags scx_rq_flags;
	enum scx_exit_code scx_exit_code;
#if SIMULATED_KERNEL >= 6018
	enum scx_exit_flags scx_exit_flags;
#endif
	enum pid_type pid_type;
	enum scx_exit_kind scx_exit_kind;
	EMITTED_FOR_LOADERS
	EMITTED_BY_THIS_VERSION
#if SIMULATED_KERNEL >= 7002
	/* Nothing may stand behind its bits. */
	struct scx_cmask scx_cmask;
#endif
};

struct emitted emitted;
