/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Types that policies read, and in which all versions agree but for what stands in conditions; see
 * ../6.18.h.
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
#ifndef NR_CPUS
#define NR_CPUS 1024
#endif
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

#if SIMULATED_KERNEL >= 7002
/* The controller of CPU time, and the one before it. */
enum cgroup_subsys_id {
	cpuset_cgrp_id,
	cpu_cgrp_id,
	CGROUP_SUBSYS_COUNT,
};
#endif

struct cgroup {
	struct cgroup_subsys_state self;
	unsigned long flags;
	int level;
	int max_depth;
	struct kernfs_node *kn;
	struct cgroup *dom_cgrp;
	struct cgroup *ancestors[CGROUP_DEPTH_MAX];
#if SIMULATED_KERNEL >= 7002
	struct cgroup_subsys_state *subsys[CGROUP_SUBSYS_COUNT];
#endif
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

#if SIMULATED_KERNEL >= 7002
struct scx_task_group {
	u32 flags;
	u32 weight;
};
#endif

struct task_group {
	struct cgroup_subsys_state css;
#if SIMULATED_KERNEL >= 7002
	struct scx_task_group scx;
#endif
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
	u64 sum_exec_runtime;
	struct load_weight load;
	u64 exec_start;
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
	unsigned long runnable_at;
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
	u64 ddsp_dsq_id;
	u64 ddsp_enq_flags;
	bool disallow;
	struct cgroup *cgrp_moving_from;
	struct list_head tasks_node;
#if SIMULATED_KERNEL >= 7002
	u64 tid;
#endif
#if SIMULATED_KERNEL >= 7003
	u64 reenq_reason_caps;
	s32 reenq_reason_cid;
	u32 reenq_cnt;
#endif
};

#define TASK_COMM_LEN 16

/* The machine keeps a task's number in the four bytes behind, which no field has. */
struct thread_info {
	unsigned long flags;
	u32 cpu;
};

struct sched_info {
	unsigned long pcount;
	unsigned long long run_delay;
};

struct task_struct {
	/*
	 * What changes with every turn of a task lies in two lines of a cache: up to
	 * scx.runnable_at, and from behind scx to se.sum_exec_runtime.
	 */
	struct thread_info thread_info;
	const cpumask_t *cpus_ptr;
	unsigned int __state;
	int wake_cpu;
	struct sched_ext_entity scx;
	unsigned short migration_disabled;
	u64 utime;
	struct sched_entity se;
	pid_t pid;
	pid_t tgid;
	unsigned int flags;
	int nr_cpus_allowed;
	int recent_used_cpu;
	int on_cpu;
	int on_rq;
	int prio;
	int static_prio;
	int normal_prio;
	unsigned int rt_priority;
	unsigned int policy;
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
	u64 stime;
	unsigned long nvcsw;
	unsigned long nivcsw;
	struct sched_info sched_info;
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

/* ---- Arguments of callbacks that all versions agree on ---- */

struct scx_init_task_args {
	bool fork;
	struct cgroup *cgroup;
};

struct scx_exit_task_args {
	bool cancelled;
};

struct scx_cgroup_init_args {
	u32 weight;
#if SIMULATED_KERNEL >= 6017
	u64 bw_period_us;
	u64 bw_quota_us;
	u64 bw_burst_us;
#endif
#if SIMULATED_KERNEL >= 7003
	bool sched_idle;
#endif
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

#if SIMULATED_KERNEL >= 7002
struct bpf_res_spin_lock {
	u32 val;
};
#endif

struct bpf_rb_root {
	u64 __opaque[2];
};

struct bpf_rb_node {
	u64 __opaque[4];
};

struct bpf_list_head {
	u64 __opaque[2];
};

struct bpf_list_node {
	u64 __opaque[3];
};

struct bpf_refcount {
	u32 __opaque[1];
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

/* ---- Variables ---- */

struct cpufreq_cpuinfo {
	unsigned int max_freq;
	unsigned int min_freq;
	unsigned int transition_latency;
};

struct cpufreq_policy {
	unsigned int cpu;
	struct cpufreq_cpuinfo cpuinfo;
	unsigned int min;
	unsigned int max;
	unsigned int cur;
};

#ifndef PERCPU
#define PERCPU __attribute__((section(".data..percpu"), used))
#endif

PERCPU struct rq runqueues;
/* Null, as on a machine without a frequency driver: no CPU changes its speed. */
PERCPU struct cpufreq_policy *cpufreq_cpu_data;
