/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The simulated kernel 6.18 as a policy sees it: types, constants, functions.
 *
 * Compiled to BTF by the build; the loader relocates policies against it, as
 * a kernel's loader does against /sys/kernel/btf/vmlinux. Names, the order of
 * struct sched_ext_ops, values of enums and prototypes are those of Linux
 * 6.18 (Debian 6.18.15, its configuration). Layouts are ours: objects are
 * relocated by field name, so a task is as small as the fields that policies
 * use. What a field means and when it changes is the simulator's business;
 * a field that it never writes reads as zero.
 *
 * Three parts: types that policies read, constants, functions. The last
 * lines make the compiler emit every type, used or not.
 */

/* ---- Base types ---- */

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef int __s32;
typedef long long __s64;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef _Bool bool;
typedef int pid_t;
typedef unsigned long size_t;

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	s64 counter;
} atomic64_t;

typedef atomic64_t atomic_long_t;

typedef struct {
	atomic_t refs;
} refcount_t;

struct list_head {
	struct list_head *next;
	struct list_head *prev;
};

struct rb_node {
	unsigned long __rb_parent_color;
	struct rb_node *rb_right;
	struct rb_node *rb_left;
};

typedef struct {
	u32 val;
} kuid_t;

typedef struct {
	u32 val;
} kgid_t;

/* ---- Masks of CPUs and nodes ---- */

/* The simulator's limit of CPUs; a kernel's is a matter of configuration. */
#define NR_CPUS 1024
#define MAX_NUMNODES 64

struct cpumask {
	unsigned long bits[NR_CPUS / 64];
};

typedef struct cpumask cpumask_t;

struct bpf_cpumask {
	cpumask_t cpumask;
	refcount_t usage;
};

typedef struct {
	unsigned long bits[MAX_NUMNODES / 64];
} nodemask_t;

/* ---- Groups ---- */

struct kernfs_node {
	u64 id;
	const char *name;
	struct kernfs_node *__parent;
};

struct percpu_ref {
	unsigned long percpu_count_ptr;
};

struct cgroup;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct percpu_ref refcnt;
	struct cgroup_subsys_state *parent;
	int id;
	u32 flags;
};

/* Deepest nesting whose ancestors a policy can index; the root is level 0. */
#define CGROUP_DEPTH_MAX 16

struct cgroup {
	struct cgroup_subsys_state self;
	unsigned long flags;
	int level;
	int max_depth;
	struct kernfs_node *kn;
	struct cgroup *dom_cgrp;
	struct cgroup *ancestors[CGROUP_DEPTH_MAX];
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct task_group {
	struct cgroup_subsys_state css;
};

/* ---- Processes ---- */

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	unsigned int level;
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

enum pid_type {
	PIDTYPE_PID,
	PIDTYPE_TGID,
	PIDTYPE_PGID,
	PIDTYPE_SID,
	PIDTYPE_MAX,
};

struct signal_struct {
	int nr_threads;
	struct list_head thread_head;
	struct pid *pids[PIDTYPE_MAX];
};

struct cred {
	kuid_t uid;
	kgid_t gid;
	kuid_t euid;
	kgid_t egid;
};

struct mm_struct {
	u64 mm_id;
};

struct mempolicy {
	unsigned short mode;
	int home_node;
	nodemask_t nodes;
};

struct sched_class {
	int number;
};

/* ---- The task ---- */

struct load_weight {
	unsigned long weight;
	u32 inv_weight;
};

struct sched_avg {
	unsigned long load_avg;
	unsigned long runnable_avg;
	unsigned long util_avg;
};

struct sched_entity {
	struct load_weight load;
	u64 exec_start;
	u64 sum_exec_runtime;
	u64 prev_sum_exec_runtime;
	u64 vruntime;
	u64 nr_migrations;
	struct sched_avg avg;
};

struct scx_dispatch_q {
	u64 id;
	u32 nr;
	u32 seq;
};

struct scx_dsq_list_node {
	struct list_head node;
	u32 flags;
	u32 priv;
};

struct task_struct;

struct sched_ext_entity {
	u64 slice;
	u64 dsq_vtime;
	u32 weight;
	u32 flags;
	struct scx_dispatch_q *dsq;
	struct scx_dsq_list_node dsq_list;
	struct rb_node dsq_priq;
	u32 dsq_seq;
	u32 dsq_flags;
	s32 sticky_cpu;
	s32 holding_cpu;
	s32 selected_cpu;
	u32 kf_mask;
	struct task_struct *kf_tasks[2];
	atomic_long_t ops_state;
	struct list_head runnable_node;
	unsigned long runnable_at;
	u64 ddsp_dsq_id;
	u64 ddsp_enq_flags;
	bool disallow;
	struct cgroup *cgrp_moving_from;
	struct list_head tasks_node;
};

#define TASK_COMM_LEN 16

struct task_struct {
	/* What callbacks read most stands first, in one or two cache lines. */
	const cpumask_t *cpus_ptr;
	struct sched_ext_entity scx;
	pid_t pid;
	pid_t tgid;
	unsigned int flags;
	int nr_cpus_allowed;
	unsigned short migration_disabled;
	int recent_used_cpu;
	int wake_cpu;
	int on_cpu;
	int on_rq;
	unsigned int __state;
	int prio;
	int static_prio;
	int normal_prio;
	unsigned int rt_priority;
	unsigned int policy;
	struct sched_entity se;
	char comm[TASK_COMM_LEN];
	const struct sched_class *sched_class;
	struct task_struct *real_parent;
	struct task_struct *parent;
	struct task_struct *group_leader;
	struct signal_struct *signal;
	struct pid *thread_pid;
	struct list_head thread_node;
	const struct cred *real_cred;
	const struct cred *cred;
	struct css_set *cgroups;
	struct task_group *sched_task_group;
	struct mm_struct *mm;
	struct mempolicy *mempolicy;
	int numa_preferred_nid;
	int exit_code;
	u64 start_time;
	u64 start_boottime;
	u64 utime;
	u64 stime;
	unsigned long nvcsw;
	unsigned long nivcsw;
	cpumask_t *user_cpus_ptr;
	cpumask_t cpus_mask;
};

/* ---- The run queue ---- */

struct scx_rq {
	struct scx_dispatch_q local_dsq;
	u64 ops_qseq;
	u32 nr_running;
	u32 cpuperf_target;
	bool cpu_released;
	u32 flags;
	u64 clock;
};

struct rq {
	unsigned int nr_running;
	int cpu;
	struct task_struct *curr;
	struct task_struct *idle;
	struct task_struct *stop;
	u64 nr_switches;
	u64 clock;
	u64 clock_task;
	u64 clock_pelt;
	unsigned long lost_idle_time;
	struct scx_rq scx;
};

/* ---- Arguments of callbacks ---- */

enum scx_exit_kind {
	SCX_EXIT_NONE,
	SCX_EXIT_DONE,

	SCX_EXIT_UNREG = 64,
	SCX_EXIT_UNREG_BPF,
	SCX_EXIT_UNREG_KERN,
	SCX_EXIT_SYSRQ,

	SCX_EXIT_ERROR = 1024,
	SCX_EXIT_ERROR_BPF,
	SCX_EXIT_ERROR_STALL,
};

struct scx_exit_info {
	enum scx_exit_kind kind;
	s64 exit_code;
	u64 flags;
	const char *reason;
	unsigned long *bt;
	u32 bt_len;
	char *msg;
	char *dump;
};

struct scx_init_task_args {
	bool fork;
	struct cgroup *cgroup;
};

struct scx_exit_task_args {
	bool cancelled;
};

struct scx_cgroup_init_args {
	u32 weight;
	u64 bw_period_us;
	u64 bw_quota_us;
	u64 bw_burst_us;
};

enum scx_cpu_preempt_reason {
	SCX_CPU_PREEMPT_RT,
	SCX_CPU_PREEMPT_DL,
	SCX_CPU_PREEMPT_STOP,
	SCX_CPU_PREEMPT_UNKNOWN,
};

struct scx_cpu_acquire_args {
};

struct scx_cpu_release_args {
	enum scx_cpu_preempt_reason reason;
	struct task_struct *task;
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
	s64 SCX_EV_REFILL_SLICE_DFL;
	s64 SCX_EV_BYPASS_DURATION;
	s64 SCX_EV_BYPASS_DISPATCH;
	s64 SCX_EV_BYPASS_ACTIVATE;
};

/* ---- The table of callbacks: every member of 6.18, in its order ---- */

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
	void (*cpu_acquire)(s32 cpu, struct scx_cpu_acquire_args *args);
	void (*cpu_release)(s32 cpu, struct scx_cpu_release_args *args);
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
	void (*cpu_online)(s32 cpu);
	void (*cpu_offline)(s32 cpu);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u32 dispatch_max_batch;
	u64 flags;
	u32 timeout_ms;
	u32 exit_dump_len;
	u64 hotplug_seq;
	char name[SCX_OPS_NAME_BYTES];
	void *priv;
};

/* ---- Constants ---- */

enum scx_public_consts {
	SCX_OPS_NAME_LEN = SCX_OPS_NAME_BYTES,
	SCX_SLICE_DFL = 20 * 1000000,
	SCX_SLICE_INF = ~0ULL,
};

enum scx_consts {
	SCX_DSP_DFL_MAX_BATCH = 32,
	SCX_DSP_MAX_LOOPS = 32,
	SCX_EXIT_BT_LEN = 64,
	SCX_EXIT_MSG_LEN = 1024,
	SCX_EXIT_DUMP_DFL_LEN = 32768,
	SCX_CPUPERF_ONE = 1024,
	SCX_TASK_ITER_BATCH = 32,
};

enum scx_ops_flags {
	SCX_OPS_KEEP_BUILTIN_IDLE = 1LLU << 0,
	SCX_OPS_ENQ_LAST = 1LLU << 1,
	SCX_OPS_ENQ_EXITING = 1LLU << 2,
	SCX_OPS_SWITCH_PARTIAL = 1LLU << 3,
	SCX_OPS_ENQ_MIGRATION_DISABLED = 1LLU << 4,
	SCX_OPS_ALLOW_QUEUED_WAKEUP = 1LLU << 5,
	SCX_OPS_BUILTIN_IDLE_PER_NODE = 1LLU << 6,
	SCX_OPS_HAS_CGROUP_WEIGHT = 1LLU << 16,
	SCX_OPS_ALL_FLAGS = 0x1007fLLU,
	__SCX_OPS_INTERNAL_MASK = 0xffLLU << 56,
	SCX_OPS_HAS_CPU_PREEMPT = 1LLU << 56,
};

enum scx_dsq_id_flags {
	SCX_DSQ_FLAG_BUILTIN = 1LLU << 63,
	SCX_DSQ_FLAG_LOCAL_ON = 1LLU << 62,
	SCX_DSQ_INVALID = SCX_DSQ_FLAG_BUILTIN | 0,
	SCX_DSQ_GLOBAL = SCX_DSQ_FLAG_BUILTIN | 1,
	SCX_DSQ_LOCAL = SCX_DSQ_FLAG_BUILTIN | 2,
	SCX_DSQ_LOCAL_ON = SCX_DSQ_FLAG_BUILTIN | SCX_DSQ_FLAG_LOCAL_ON,
	SCX_DSQ_LOCAL_CPU_MASK = 0xffffffffLLU,
};

enum scx_wake_flags {
	SCX_WAKE_FORK = 4,
	SCX_WAKE_TTWU = 8,
	SCX_WAKE_SYNC = 16,
};

enum scx_enq_flags {
	SCX_ENQ_WAKEUP = 0x1,
	SCX_ENQ_HEAD = 0x10,
	SCX_ENQ_CPU_SELECTED = 0x400,
	SCX_ENQ_PREEMPT = 1LLU << 32,
	SCX_ENQ_REENQ = 1LLU << 40,
	SCX_ENQ_LAST = 1LLU << 41,
	__SCX_ENQ_INTERNAL_MASK = 0xffLLU << 56,
	SCX_ENQ_CLEAR_OPSS = 1LLU << 56,
	SCX_ENQ_DSQ_PRIQ = 1LLU << 57,
};

enum scx_deq_flags {
	SCX_DEQ_SLEEP = 0x1,
	SCX_DEQ_CORE_SCHED_EXEC = 1LLU << 32,
};

enum scx_kick_flags {
	SCX_KICK_IDLE = 1LLU << 0,
	SCX_KICK_PREEMPT = 1LLU << 1,
	SCX_KICK_WAIT = 1LLU << 2,
};

enum scx_pick_idle_cpu_flags {
	SCX_PICK_IDLE_CORE = 1LLU << 0,
	SCX_PICK_IDLE_IN_NODE = 1LLU << 1,
};

enum scx_dsq_iter_flags {
	SCX_DSQ_ITER_REV = 1U << 16,
	__SCX_DSQ_ITER_HAS_SLICE = 1U << 30,
	__SCX_DSQ_ITER_HAS_VTIME = 1U << 31,
	__SCX_DSQ_ITER_USER_FLAGS = SCX_DSQ_ITER_REV,
	__SCX_DSQ_ITER_ALL_FLAGS = 0xc0010000U,
};

enum scx_dsq_lnode_flags {
	SCX_DSQ_LNODE_ITER_CURSOR = 1 << 0,
	__SCX_DSQ_LNODE_PRIV_SHIFT = 16,
};

enum scx_ent_flags {
	SCX_TASK_QUEUED = 1 << 0,
	SCX_TASK_RESET_RUNNABLE_AT = 1 << 2,
	SCX_TASK_DEQD_FOR_SLEEP = 1 << 3,
	SCX_TASK_STATE_SHIFT = 8,
	SCX_TASK_STATE_BITS = 2,
	SCX_TASK_STATE_MASK = 3 << SCX_TASK_STATE_SHIFT,
	SCX_TASK_CURSOR = 1 << 31,
};

enum scx_ent_dsq_flags {
	SCX_TASK_DSQ_ON_PRIQ = 1 << 0,
};

enum scx_task_state {
	SCX_TASK_NONE,
	SCX_TASK_INIT,
	SCX_TASK_READY,
	SCX_TASK_ENABLED,
	SCX_TASK_NR_STATES,
};

enum scx_ops_state {
	SCX_OPSS_NONE,
	SCX_OPSS_QUEUEING,
	SCX_OPSS_QUEUED,
	SCX_OPSS_DISPATCHING,
	SCX_OPSS_QSEQ_SHIFT = 2,
};

enum scx_enable_state {
	SCX_ENABLING,
	SCX_ENABLED,
	SCX_DISABLING,
	SCX_DISABLED,
};

enum scx_rq_flags {
	SCX_RQ_ONLINE = 1 << 0,
	SCX_RQ_CAN_STOP_TICK = 1 << 1,
	SCX_RQ_BAL_PENDING = 1 << 2,
	SCX_RQ_BAL_KEEP = 1 << 3,
	SCX_RQ_BYPASSING = 1 << 4,
	SCX_RQ_CLK_VALID = 1 << 5,
	SCX_RQ_BAL_CB_PENDING = 1 << 6,
	SCX_RQ_IN_WAKEUP = 1 << 16,
	SCX_RQ_IN_BALANCE = 1 << 17,
};

enum scx_kf_mask {
	SCX_KF_UNLOCKED = 0,
	SCX_KF_CPU_RELEASE = 1 << 0,
	SCX_KF_DISPATCH = 1 << 1,
	SCX_KF_ENQUEUE = 1 << 2,
	SCX_KF_SELECT_CPU = 1 << 3,
	SCX_KF_REST = 1 << 4,
};

enum scx_exit_code {
	SCX_ECODE_RSN_HOTPLUG = 1LLU << 32,
	SCX_ECODE_ACT_RESTART = 1LLU << 48,
};

/* On 6.18 the flag's value is 0: a slip in the kernel, which 6.19 mends. */
enum scx_exit_flags {
	SCX_EFLAG_INITIALIZED = 0,
};

/* ---- State of functions, opaque to policies ---- */

struct bpf_iter_num {
	u64 __opaque[1];
};

struct bpf_iter_scx_dsq {
	u64 __opaque[6];
};

struct bpf_iter_css {
	u64 __opaque[3];
};

struct bpf_timer {
	u64 __opaque[2];
};

struct bpf_spin_lock {
	u32 val;
};

struct bpf_rb_root {
	u64 __opaque[2];
};

struct bpf_rb_node {
	u64 __opaque[4];
};

struct bpf_perf_event_value {
	u64 counter;
	u64 enabled;
	u64 running;
};

struct seq_file {
	u64 index;
};

struct bpf_iter_meta {
	struct seq_file *seq;
	u64 session_id;
	u64 seq_num;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

/*
 * ---- Functions ----
 *
 * What counts is the prototype; bodies are the simulator's. They are defined,
 * since the compiler records only functions that are.
 */

#define KFUNC __attribute__((btf_decl_tag("bpf_kfunc")))
#define VOID(name, args...) KFUNC void name(args) {}
#define GIVES(type, name, args...) KFUNC type name(args) { return (type)0; }

/* Queues. */
VOID(scx_bpf_dsq_insert, struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags)
VOID(scx_bpf_dsq_insert_vtime, struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
     u64 enq_flags)
GIVES(u32, scx_bpf_dispatch_nr_slots, void)
VOID(scx_bpf_dispatch_cancel, void)
GIVES(bool, scx_bpf_dsq_move_to_local, u64 dsq_id)
VOID(scx_bpf_dsq_move_set_slice, struct bpf_iter_scx_dsq *it__iter, u64 slice)
VOID(scx_bpf_dsq_move_set_vtime, struct bpf_iter_scx_dsq *it__iter, u64 vtime)
GIVES(bool, scx_bpf_dsq_move, struct bpf_iter_scx_dsq *it__iter, struct task_struct *p,
      u64 dsq_id, u64 enq_flags)
GIVES(bool, scx_bpf_dsq_move_vtime, struct bpf_iter_scx_dsq *it__iter, struct task_struct *p,
      u64 dsq_id, u64 enq_flags)
GIVES(u32, scx_bpf_reenqueue_local, void)
GIVES(s32, scx_bpf_create_dsq, u64 dsq_id, s32 node)
VOID(scx_bpf_destroy_dsq, u64 dsq_id)
GIVES(s32, scx_bpf_dsq_nr_queued, u64 dsq_id)
GIVES(int, bpf_iter_scx_dsq_new, struct bpf_iter_scx_dsq *it, u64 dsq_id, u64 flags)
GIVES(struct task_struct *, bpf_iter_scx_dsq_next, struct bpf_iter_scx_dsq *it)
VOID(bpf_iter_scx_dsq_destroy, struct bpf_iter_scx_dsq *it)

/* CPUs. */
VOID(scx_bpf_kick_cpu, s32 cpu, u64 flags)
GIVES(s32, scx_bpf_select_cpu_dfl, struct task_struct *p, s32 prev_cpu, u64 wake_flags,
      bool *is_idle)
GIVES(s32, scx_bpf_select_cpu_and, struct task_struct *p, s32 prev_cpu, u64 wake_flags,
      const struct cpumask *cpus_allowed, u64 flags)
GIVES(bool, scx_bpf_test_and_clear_cpu_idle, s32 cpu)
GIVES(s32, scx_bpf_pick_idle_cpu, const struct cpumask *cpus_allowed, u64 flags)
GIVES(s32, scx_bpf_pick_idle_cpu_node, const struct cpumask *cpus_allowed, int node, u64 flags)
GIVES(s32, scx_bpf_pick_any_cpu, const struct cpumask *cpus_allowed, u64 flags)
GIVES(s32, scx_bpf_pick_any_cpu_node, const struct cpumask *cpus_allowed, int node, u64 flags)
GIVES(const struct cpumask *, scx_bpf_get_idle_cpumask, void)
GIVES(const struct cpumask *, scx_bpf_get_idle_cpumask_node, int node)
GIVES(const struct cpumask *, scx_bpf_get_idle_smtmask, void)
GIVES(const struct cpumask *, scx_bpf_get_idle_smtmask_node, int node)
VOID(scx_bpf_put_idle_cpumask, const struct cpumask *idle_mask)
GIVES(const struct cpumask *, scx_bpf_get_possible_cpumask, void)
GIVES(const struct cpumask *, scx_bpf_get_online_cpumask, void)
VOID(scx_bpf_put_cpumask, const struct cpumask *cpumask)
GIVES(int, scx_bpf_cpu_node, s32 cpu)
GIVES(u32, scx_bpf_nr_node_ids, void)
GIVES(u32, scx_bpf_nr_cpu_ids, void)
GIVES(u32, scx_bpf_cpuperf_cap, s32 cpu)
GIVES(u32, scx_bpf_cpuperf_cur, s32 cpu)
VOID(scx_bpf_cpuperf_set, s32 cpu, u32 perf)
GIVES(struct rq *, scx_bpf_cpu_rq, s32 cpu)
GIVES(struct rq *, scx_bpf_locked_rq, void)
GIVES(struct task_struct *, scx_bpf_cpu_curr, s32 cpu)

/* Tasks, time, reports. */
GIVES(bool, scx_bpf_task_running, const struct task_struct *p)
GIVES(s32, scx_bpf_task_cpu, const struct task_struct *p)
GIVES(struct cgroup *, scx_bpf_task_cgroup, struct task_struct *p)
GIVES(u64, scx_bpf_now, void)
VOID(scx_bpf_events, struct scx_event_stats *events, size_t events__sz)
VOID(scx_bpf_exit_bstr, s64 exit_code, char *fmt, unsigned long long *data, u32 data__sz)
VOID(scx_bpf_error_bstr, char *fmt, unsigned long long *data, u32 data__sz)
VOID(scx_bpf_dump_bstr, char *fmt, unsigned long long *data, u32 data__sz)

/* Masks. */
GIVES(struct bpf_cpumask *, bpf_cpumask_create, void)
GIVES(struct bpf_cpumask *, bpf_cpumask_acquire, struct bpf_cpumask *cpumask)
VOID(bpf_cpumask_release, struct bpf_cpumask *cpumask)
GIVES(u32, bpf_cpumask_first, const struct cpumask *cpumask)
GIVES(u32, bpf_cpumask_first_zero, const struct cpumask *cpumask)
GIVES(u32, bpf_cpumask_first_and, const struct cpumask *src1, const struct cpumask *src2)
VOID(bpf_cpumask_set_cpu, u32 cpu, struct bpf_cpumask *cpumask)
VOID(bpf_cpumask_clear_cpu, u32 cpu, struct bpf_cpumask *cpumask)
GIVES(bool, bpf_cpumask_test_cpu, u32 cpu, const struct cpumask *cpumask)
GIVES(bool, bpf_cpumask_test_and_set_cpu, u32 cpu, struct bpf_cpumask *cpumask)
GIVES(bool, bpf_cpumask_test_and_clear_cpu, u32 cpu, struct bpf_cpumask *cpumask)
VOID(bpf_cpumask_setall, struct bpf_cpumask *cpumask)
VOID(bpf_cpumask_clear, struct bpf_cpumask *cpumask)
GIVES(bool, bpf_cpumask_and, struct bpf_cpumask *dst, const struct cpumask *src1,
      const struct cpumask *src2)
VOID(bpf_cpumask_or, struct bpf_cpumask *dst, const struct cpumask *src1,
     const struct cpumask *src2)
VOID(bpf_cpumask_xor, struct bpf_cpumask *dst, const struct cpumask *src1,
     const struct cpumask *src2)
GIVES(bool, bpf_cpumask_equal, const struct cpumask *src1, const struct cpumask *src2)
GIVES(bool, bpf_cpumask_intersects, const struct cpumask *src1, const struct cpumask *src2)
GIVES(bool, bpf_cpumask_subset, const struct cpumask *src1, const struct cpumask *src2)
GIVES(bool, bpf_cpumask_empty, const struct cpumask *cpumask)
GIVES(bool, bpf_cpumask_full, const struct cpumask *cpumask)
VOID(bpf_cpumask_copy, struct bpf_cpumask *dst, const struct cpumask *src)
GIVES(u32, bpf_cpumask_any_distribute, const struct cpumask *cpumask)
GIVES(u32, bpf_cpumask_any_and_distribute, const struct cpumask *src1,
      const struct cpumask *src2)
GIVES(u32, bpf_cpumask_weight, const struct cpumask *cpumask)

/* Objects and groups. */
GIVES(struct task_struct *, bpf_task_acquire, struct task_struct *p)
VOID(bpf_task_release, struct task_struct *p)
GIVES(struct task_struct *, bpf_task_from_pid, s32 pid)
GIVES(struct task_struct *, bpf_task_from_vpid, s32 vpid)
GIVES(struct cgroup *, bpf_cgroup_acquire, struct cgroup *cgrp)
VOID(bpf_cgroup_release, struct cgroup *cgrp)
GIVES(struct cgroup *, bpf_cgroup_ancestor, struct cgroup *cgrp, int level)
GIVES(struct cgroup *, bpf_cgroup_from_id, u64 cgid)
GIVES(int, bpf_iter_css_new, struct bpf_iter_css *it, struct cgroup_subsys_state *start,
      unsigned int flags)
GIVES(struct cgroup_subsys_state *, bpf_iter_css_next, struct bpf_iter_css *it)
VOID(bpf_iter_css_destroy, struct bpf_iter_css *it)

/* The language's own. */
GIVES(int, bpf_iter_num_new, struct bpf_iter_num *it, int start, int end)
GIVES(int *, bpf_iter_num_next, struct bpf_iter_num *it)
VOID(bpf_iter_num_destroy, struct bpf_iter_num *it)
VOID(bpf_rcu_read_lock, void)
VOID(bpf_rcu_read_unlock, void)
VOID(bpf_preempt_disable, void)
VOID(bpf_preempt_enable, void)
GIVES(void *, bpf_obj_new_impl, u64 local_type_id__k, void *meta__ign)
VOID(bpf_obj_drop_impl, void *p__alloc, void *meta__ign)
GIVES(int, bpf_rbtree_add_impl, struct bpf_rb_root *root, struct bpf_rb_node *node,
      bool (*less)(struct bpf_rb_node *a, const struct bpf_rb_node *b), void *meta__ign, u64 off)
GIVES(struct bpf_rb_node *, bpf_rbtree_first, struct bpf_rb_root *root)
GIVES(struct bpf_rb_node *, bpf_rbtree_remove, struct bpf_rb_root *root,
      struct bpf_rb_node *node)
GIVES(void *, bpf_arena_alloc_pages, void *p__map, void *addr__ign, u32 page_cnt, int node_id,
      u64 flags)
VOID(bpf_arena_free_pages, void *p__map, void *ptr__ign, u32 page_cnt)
GIVES(int, bpf_stream_vprintk_impl, int stream_id, const char *fmt__str, const void *args,
      u32 len__sz, void *aux__prog)

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
	struct scx_event_stats scx_event_stats;
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
	enum scx_task_state scx_task_state;
	enum scx_ops_state scx_ops_state;
	enum scx_enable_state scx_enable_state;
	enum scx_rq_flags scx_rq_flags;
	enum scx_kf_mask scx_kf_mask;
	enum scx_exit_code scx_exit_code;
	enum scx_exit_flags scx_exit_flags;
	enum pid_type pid_type;
};

struct emitted emitted;
