/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a loader looks up in the kernel's types, of 6.18 and of 7.2; see ../6.18.h. Sources:
 * include/linux/bpf.h, kernel/bpf/bpf_struct_ops.c, include/trace/events, kernel/sched/ext.c,
 * kernel/cgroup/cpuset.c, kernel/bpf/task_iter.c.
 */

/* ---- The value of a struct_ops map ---- */

enum bpf_struct_ops_state {
	BPF_STRUCT_OPS_STATE_INIT,
	BPF_STRUCT_OPS_STATE_INUSE,
	BPF_STRUCT_OPS_STATE_TOBEFREE,
	BPF_STRUCT_OPS_STATE_READY,
};

struct bpf_struct_ops_common_value {
	refcount_t refcnt;
	enum bpf_struct_ops_state state;
};

struct bpf_struct_ops_sched_ext_ops {
	struct bpf_struct_ops_common_value common;
	struct sched_ext_ops data __attribute__((aligned(64)));
};

/* ---- Tracepoints: the first argument is what was registered with the program ---- */

typedef void (*btf_trace_sched_switch)(void *, bool preempt, struct task_struct *prev,
				       struct task_struct *next, unsigned int prev_state);
typedef void (*btf_trace_cgroup_attach_task)(void *, struct cgroup *dst_cgrp, const char *path,
					     struct task_struct *task, bool threadgroup);
typedef void (*btf_trace_cgroup_mkdir)(void *, struct cgroup *cgrp, const char *path);
typedef void (*btf_trace_cgroup_rmdir)(void *, struct cgroup *cgrp, const char *path);
typedef void (*btf_trace_task_rename)(void *, struct task_struct *task, const char *comm);

/* ---- What policies keep while they hold the RCU lock (include/linux/cleanup.h) ---- */

typedef struct {
	void *lock;
} class_rcu_t;

#define EMITTED_FOR_LOADERS							\
	class_rcu_t class_rcu;							\
	enum bpf_struct_ops_state bpf_struct_ops_state;				\
	struct bpf_struct_ops_sched_ext_ops bpf_struct_ops_sched_ext_ops;	\
	btf_trace_sched_switch trace_sched_switch;				\
	btf_trace_cgroup_attach_task trace_cgroup_attach_task;			\
	btf_trace_cgroup_mkdir trace_cgroup_mkdir;				\
	btf_trace_cgroup_rmdir trace_cgroup_rmdir;				\
	btf_trace_task_rename trace_task_rename;

/* ---- Functions that programs attach to. None can call them: they carry no tag. ---- */

struct bpf_link;
struct kernfs_open_file;

int bpf_scx_reg(void *kdata, struct bpf_link *link) { return 0; }
void scx_tick(struct rq *rq) {}
long cpuset_write_resmask(struct kernfs_open_file *of, char *buf, size_t nbytes, long off)
{
	return 0;
}
int bpf_iter_task(struct bpf_iter_meta *meta, struct task_struct *task) { return 0; }
