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

#if SIMULATED_KERNEL >= 7002
struct bpf_struct_ops_sched_ext_ops_cid {
	struct bpf_struct_ops_common_value common;
	struct sched_ext_ops_cid data __attribute__((aligned(64)));
};
#define EMITTED_FOR_LOADERS_OF_CIDS						\
	struct bpf_struct_ops_sched_ext_ops_cid bpf_struct_ops_sched_ext_ops_cid;
#else
#define EMITTED_FOR_LOADERS_OF_CIDS
#endif

/* ---- Tracepoints: the first argument is what was registered with the program ---- */

typedef void (*btf_trace_sched_switch)(void *, bool preempt, struct task_struct *prev,
				       struct task_struct *next, unsigned int prev_state);
typedef void (*btf_trace_cgroup_attach_task)(void *, struct cgroup *dst_cgrp, const char *path,
					     struct task_struct *task, bool threadgroup);
typedef void (*btf_trace_cgroup_mkdir)(void *, struct cgroup *cgrp, const char *path);
typedef void (*btf_trace_cgroup_rmdir)(void *, struct cgroup *cgrp, const char *path);
typedef void (*btf_trace_task_rename)(void *, struct task_struct *task, const char *comm);
typedef void (*btf_trace_task_newtask)(void *, struct task_struct *task, u64 clone_flags);
typedef void (*btf_trace_sched_waking)(void *, struct task_struct *p);
typedef void (*btf_trace_sched_wakeup)(void *, struct task_struct *p);
typedef void (*btf_trace_sched_wakeup_new)(void *, struct task_struct *p);
typedef void (*btf_trace_sched_process_fork)(void *, struct task_struct *parent,
					     struct task_struct *child);
typedef void (*btf_trace_sched_process_exit)(void *, struct task_struct *p, bool group_dead);
typedef void (*btf_trace_sched_process_free)(void *, struct task_struct *p);

/* Of these the simulated machine has none: programs load, and are never called. */
struct linux_binprm;
struct pt_regs;
typedef void (*btf_trace_sched_process_exec)(void *, struct task_struct *p, int old_pid,
					     struct linux_binprm *bprm);
typedef void (*btf_trace_sched_migrate_task)(void *, struct task_struct *p, int dest_cpu);
typedef void (*btf_trace_cpu_frequency)(void *, unsigned int frequency, unsigned int cpu_id);
typedef void (*btf_trace_cpu_idle)(void *, unsigned int state, unsigned int cpu_id);
struct irqaction;
typedef void (*btf_trace_irq_handler_entry)(void *, int irq, struct irqaction *action);
typedef void (*btf_trace_irq_handler_exit)(void *, int irq, struct irqaction *action, int ret);
typedef void (*btf_trace_softirq_entry)(void *, unsigned int vec_nr);
typedef void (*btf_trace_softirq_exit)(void *, unsigned int vec_nr);
typedef void (*btf_trace_hw_pressure_update)(void *, int cpu, unsigned long hw_pressure);
typedef void (*btf_trace_sys_enter)(void *, struct pt_regs *regs, long id);
typedef void (*btf_trace_sys_exit)(void *, struct pt_regs *regs, long ret);

/* ---- What policies keep while they hold the RCU lock (include/linux/cleanup.h) ---- */

typedef struct {
	void *lock;
} class_rcu_t;

#define EMITTED_FOR_LOADERS							\
	class_rcu_t class_rcu;							\
	enum bpf_struct_ops_state bpf_struct_ops_state;				\
	struct bpf_struct_ops_sched_ext_ops bpf_struct_ops_sched_ext_ops;	\
	EMITTED_FOR_LOADERS_OF_CIDS						\
	btf_trace_sched_switch trace_sched_switch;				\
	btf_trace_cgroup_attach_task trace_cgroup_attach_task;			\
	btf_trace_cgroup_mkdir trace_cgroup_mkdir;				\
	btf_trace_cgroup_rmdir trace_cgroup_rmdir;				\
	btf_trace_task_rename trace_task_rename;				\
	btf_trace_task_newtask trace_task_newtask;				\
	btf_trace_sched_waking trace_sched_waking;				\
	btf_trace_sched_wakeup trace_sched_wakeup;				\
	btf_trace_sched_wakeup_new trace_sched_wakeup_new;			\
	btf_trace_sched_process_fork trace_sched_process_fork;			\
	btf_trace_sched_process_exit trace_sched_process_exit;			\
	btf_trace_sched_process_free trace_sched_process_free;			\
	btf_trace_sched_process_exec trace_sched_process_exec;			\
	btf_trace_sched_migrate_task trace_sched_migrate_task;			\
	btf_trace_cpu_frequency trace_cpu_frequency;				\
	btf_trace_cpu_idle trace_cpu_idle;					\
	btf_trace_irq_handler_entry trace_irq_handler_entry;			\
	btf_trace_irq_handler_exit trace_irq_handler_exit;			\
	btf_trace_softirq_entry trace_softirq_entry;				\
	btf_trace_softirq_exit trace_softirq_exit;				\
	btf_trace_hw_pressure_update trace_hw_pressure_update;			\
	btf_trace_sys_enter trace_sys_enter;					\
	btf_trace_sys_exit trace_sys_exit;

/* ---- Functions that programs attach to. None can call them: they carry no tag. ---- */

struct bpf_link;
struct kernfs_open_file;

int bpf_scx_reg(void *kdata, struct bpf_link *link) { return 0; }
#if SIMULATED_KERNEL >= 7002
int bpf_scx_reg_cid(void *kdata, struct bpf_link *link) { return 0; }
#endif
void scx_tick(struct rq *rq) {}
long cpuset_write_resmask(struct kernfs_open_file *of, char *buf, size_t nbytes, long off)
{
	return 0;
}
int bpf_iter_task(struct bpf_iter_meta *meta, struct task_struct *task) { return 0; }
