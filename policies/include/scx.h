/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sched_ext as a policy sees it: the kernel's types with the fields that
 * policies use, its constants, its functions and its table of callbacks.
 *
 * One object runs on every kernel from 6.18 on: fields are found by name,
 * constants take the running kernel's values when the object is loaded (the
 * numbers below are those of 6.18), and functions are weak, so a loader says
 * which one is missing instead of failing on a name.
 *
 * Source: the kernel's BTF and Documentation/scheduler/sched-ext.rst.
 */
#ifndef RUNSLICE_SCX_H
#define RUNSLICE_SCX_H

#include <bpf.h>

/* ---- Types, with the fields in use ---- */

struct cpumask {
	unsigned long bits[1];
} __core;

struct kernfs_node {
	u64 id;
} __core;

struct cgroup {
	int level;
	struct kernfs_node *kn;
} __core;

struct sched_entity {
	u64 sum_exec_runtime;	/* ns on a CPU, as the kernel charges them */
} __core;

struct sched_ext_entity {
	u32 flags;		/* enum scx_ent_flags */
	u32 weight;		/* 1..10000, 100 is nice 0 */
	u64 slice;		/* ns that are left */
	u64 dsq_vtime;		/* key in a queue with priorities */
	bool disallow;
} __core;

/* An address space; policies compare pointers to it. */
struct mm_struct;

struct task_struct {
	unsigned int __state;	/* TASK_*, of a task that blocks */
	unsigned int flags;	/* PF_* */
	int prio;
	int static_prio;
	int nr_cpus_allowed;
	const struct cpumask *cpus_ptr;
	unsigned short migration_disabled;
	int pid;
	int tgid;
	struct task_struct *real_parent;
	char comm[16];
	unsigned int policy;	/* SCHED_* */
	struct mm_struct *mm;	/* none for a kernel thread */
	struct sched_entity se;
	struct sched_ext_entity scx;
} __core;

/* task_struct.policy (uapi/linux/sched.h). */
#define SCHED_BATCH 3
#define SCHED_IDLE 5

/* task_struct.flags (linux/sched.h, 6.18 and 7.2). */
#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000

/* task_struct.__state (linux/sched.h, 6.18 and 7.2). */
#define TASK_UNINTERRUPTIBLE 0x00000002

enum scx_exit_kind {
	SCX_EXIT_NONE = 0,
};

struct scx_exit_info {
	enum scx_exit_kind kind;
	s64 exit_code;
	const char *reason;
	char *msg;
} __core;

struct scx_init_task_args {
	bool fork;
	struct cgroup *cgroup;
} __core;

struct rq {
	int cpu;
} __core;

struct scx_exit_task_args {
	bool cancelled;
} __core;

struct scx_cgroup_init_args {
	u32 weight;
} __core;

enum scx_cpu_preempt_reason {
	SCX_CPU_PREEMPT_RT = 0,
};

struct scx_cpu_acquire_args {
} __core;

struct scx_cpu_release_args {
	enum scx_cpu_preempt_reason reason;
	struct task_struct *task;
} __core;

struct scx_dump_ctx {
	enum scx_exit_kind kind;
} __core;

/* ---- Constants ---- */

enum scx_public_consts {
	SCX_SLICE_DFL = 20000000ULL,
	SCX_SLICE_INF = ~0ULL,
};

/* These stand in the table of callbacks, where only true constants may; all kernels agree. */
enum scx_ops_flags {
	SCX_OPS_KEEP_BUILTIN_IDLE = 1 << 0,
	SCX_OPS_ENQ_LAST = 1 << 1,
	SCX_OPS_ENQ_EXITING = 1 << 2,
	SCX_OPS_SWITCH_PARTIAL = 1 << 3,
	SCX_OPS_ENQ_MIGRATION_DISABLED = 1 << 4,
	SCX_OPS_ALLOW_QUEUED_WAKEUP = 1 << 5,
	SCX_OPS_BUILTIN_IDLE_PER_NODE = 1 << 6,
};

enum scx_dsq_id_flags {
	SCX_DSQ_INVALID = 1ULL << 63,
	SCX_DSQ_GLOBAL = (1ULL << 63) | 1,
	SCX_DSQ_LOCAL = (1ULL << 63) | 2,
	SCX_DSQ_LOCAL_ON = 3ULL << 62,
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
	SCX_ENQ_PREEMPT = 1ULL << 32,
	SCX_ENQ_REENQ = 1ULL << 40,
	SCX_ENQ_LAST = 1ULL << 41,
};

enum scx_deq_flags {
	SCX_DEQ_SLEEP = 0x1,
};

enum scx_kick_flags {
	SCX_KICK_IDLE = 1,
	SCX_KICK_PREEMPT = 2,
	SCX_KICK_WAIT = 4,
};

enum scx_dsq_iter_flags {
	SCX_DSQ_ITER_REV = 1 << 16,
};

enum scx_ent_flags {
	SCX_TASK_QUEUED = 1,
};

/* From here on a constant's name means the running kernel's value. */
#define SCX_SLICE_DFL core_enum(scx_public_consts, SCX_SLICE_DFL)
#define SCX_SLICE_INF core_enum(scx_public_consts, SCX_SLICE_INF)
#define SCX_DSQ_INVALID core_enum(scx_dsq_id_flags, SCX_DSQ_INVALID)
#define SCX_DSQ_GLOBAL core_enum(scx_dsq_id_flags, SCX_DSQ_GLOBAL)
#define SCX_DSQ_LOCAL core_enum(scx_dsq_id_flags, SCX_DSQ_LOCAL)
#define SCX_DSQ_LOCAL_ON core_enum(scx_dsq_id_flags, SCX_DSQ_LOCAL_ON)
#define SCX_WAKE_FORK core_enum(scx_wake_flags, SCX_WAKE_FORK)
#define SCX_WAKE_TTWU core_enum(scx_wake_flags, SCX_WAKE_TTWU)
#define SCX_WAKE_SYNC core_enum(scx_wake_flags, SCX_WAKE_SYNC)
#define SCX_ENQ_WAKEUP core_enum(scx_enq_flags, SCX_ENQ_WAKEUP)
#define SCX_ENQ_HEAD core_enum(scx_enq_flags, SCX_ENQ_HEAD)
#define SCX_ENQ_CPU_SELECTED core_enum(scx_enq_flags, SCX_ENQ_CPU_SELECTED)
#define SCX_ENQ_PREEMPT core_enum(scx_enq_flags, SCX_ENQ_PREEMPT)
#define SCX_ENQ_REENQ core_enum(scx_enq_flags, SCX_ENQ_REENQ)
#define SCX_ENQ_LAST core_enum(scx_enq_flags, SCX_ENQ_LAST)
#define SCX_DEQ_SLEEP core_enum(scx_deq_flags, SCX_DEQ_SLEEP)
#define SCX_KICK_IDLE core_enum(scx_kick_flags, SCX_KICK_IDLE)
#define SCX_KICK_PREEMPT core_enum(scx_kick_flags, SCX_KICK_PREEMPT)
#define SCX_KICK_WAIT core_enum(scx_kick_flags, SCX_KICK_WAIT)
#define SCX_DSQ_ITER_REV core_enum(scx_dsq_iter_flags, SCX_DSQ_ITER_REV)
#define SCX_TASK_QUEUED core_enum(scx_ent_flags, SCX_TASK_QUEUED)

/* ---- Functions ---- */

struct bpf_iter_scx_dsq {
	u64 opaque[6];
} __attribute__((aligned(8)));

#define __kfunc extern __weak __ksym

__kfunc void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags);
__kfunc void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
				      u64 enq_flags);
__kfunc u32 scx_bpf_dispatch_nr_slots(void);
__kfunc void scx_bpf_dispatch_cancel(void);
__kfunc bool scx_bpf_dsq_move_to_local(u64 dsq_id);
__kfunc void scx_bpf_dsq_move_set_slice(struct bpf_iter_scx_dsq *it, u64 slice);
__kfunc void scx_bpf_dsq_move_set_vtime(struct bpf_iter_scx_dsq *it, u64 vtime);
__kfunc bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id,
			      u64 enq_flags);
__kfunc bool scx_bpf_dsq_move_vtime(struct bpf_iter_scx_dsq *it, struct task_struct *p,
				    u64 dsq_id, u64 enq_flags);
__kfunc u32 scx_bpf_reenqueue_local(void);
__kfunc s32 scx_bpf_create_dsq(u64 dsq_id, s32 node);
__kfunc void scx_bpf_destroy_dsq(u64 dsq_id);
__kfunc s32 scx_bpf_dsq_nr_queued(u64 dsq_id);
__kfunc int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 dsq_id, u64 flags);
__kfunc struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it);
__kfunc void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it);
__kfunc void scx_bpf_kick_cpu(s32 cpu, u64 flags);
__kfunc s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
				   bool *is_idle);
__kfunc bool scx_bpf_test_and_clear_cpu_idle(s32 cpu);
__kfunc s32 scx_bpf_pick_idle_cpu(const struct cpumask *cpus_allowed, u64 flags);
__kfunc const struct cpumask *scx_bpf_get_idle_cpumask(void);
__kfunc void scx_bpf_put_idle_cpumask(const struct cpumask *idle_mask);
__kfunc s32 scx_bpf_pick_any_cpu(const struct cpumask *cpus_allowed, u64 flags);
__kfunc s32 scx_bpf_pick_idle_cpu_node(const struct cpumask *cpus_allowed, int node, u64 flags);
__kfunc u32 scx_bpf_nr_cpu_ids(void);
__kfunc int scx_bpf_cpu_node(s32 cpu);
__kfunc const struct cpumask *scx_bpf_get_possible_cpumask(void);
__kfunc const struct cpumask *scx_bpf_get_online_cpumask(void);
__kfunc void scx_bpf_put_cpumask(const struct cpumask *cpumask);
__kfunc void scx_bpf_cpuperf_set(s32 cpu, u32 perf);
__kfunc struct rq *scx_bpf_locked_rq(void);
__kfunc struct task_struct *scx_bpf_cpu_curr(s32 cpu);
__kfunc bool scx_bpf_task_running(const struct task_struct *p);
__kfunc s32 scx_bpf_task_cpu(const struct task_struct *p);
__kfunc struct cgroup *scx_bpf_task_cgroup(struct task_struct *p);
__kfunc bool scx_bpf_task_set_slice(struct task_struct *p, u64 slice);
__kfunc u64 scx_bpf_now(void);
__kfunc void scx_bpf_exit_bstr(s64 exit_code, char *fmt, u64 *data, u32 data__sz);
__kfunc void scx_bpf_error_bstr(char *fmt, u64 *data, u32 data__sz);
__kfunc void scx_bpf_dump_bstr(char *fmt, u64 *data, u32 data__sz);
__kfunc bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *cpumask);
__kfunc u32 bpf_cpumask_weight(const struct cpumask *cpumask);
__kfunc u32 bpf_cpumask_first(const struct cpumask *cpumask);
__kfunc struct task_struct *bpf_task_from_pid(s32 pid);
__kfunc void bpf_task_release(struct task_struct *p);
__kfunc void bpf_cgroup_release(struct cgroup *cgrp);

/*
 * The arguments of a format as the functions above take them. The caller casts
 * each one to u64; the last word is never read and keeps the array from being
 * empty.
 */
#define WORDS_OF(...) { __VA_OPT__(__VA_ARGS__,) 0 }

/*
 * Sets what is left of a task's slice. Kernels after 6.18 have a function for
 * it and warn of a policy that writes the field.
 */
static __always_inline void set_slice(struct task_struct *p, u64 slice)
{
	if (exists(scx_bpf_task_set_slice))
		scx_bpf_task_set_slice(p, slice);
	else
		p->scx.slice = slice;
}

/* Ends the policy with an error. */
#define scx_bpf_error(fmt, ...) ({					\
	static char text_[] = fmt;					\
	u64 words_[] = WORDS_OF(__VA_ARGS__);				\
	scx_bpf_error_bstr(text_, words_, sizeof(words_));		\
})

/* Ends the policy in good order, with a code for user space. */
#define scx_bpf_exit(code, fmt, ...) ({					\
	static char text_[] = fmt;					\
	u64 words_[] = WORDS_OF(__VA_ARGS__);				\
	scx_bpf_exit_bstr(code, text_, words_, sizeof(words_));		\
})

/* Adds to the dump; only in the callbacks for dumps. */
#define scx_bpf_dump(fmt, ...) ({					\
	static char text_[] = fmt;					\
	u64 words_[] = WORDS_OF(__VA_ARGS__);				\
	scx_bpf_dump_bstr(text_, words_, sizeof(words_));		\
})

/*
 * Walks a queue from its head (from its tail with SCX_DSQ_ITER_REV). `it` is
 * the iterator that scx_bpf_dsq_move() wants; leaving the loop in any way
 * closes it. The second variable opens it, and names the closing function
 * once in plain code: clang records no type for a function that is named in
 * the attribute alone.
 */
#define for_each_queued(it, p, dsq_id, flags)					\
	for (struct bpf_iter_scx_dsq it						\
		__attribute__((cleanup(bpf_iter_scx_dsq_destroy))),		\
	     *opened_##it __attribute__((unused)) =				\
		(bpf_iter_scx_dsq_new(&it, dsq_id, flags),			\
		 (void)bpf_iter_scx_dsq_destroy, NULL);				\
	     (p = bpf_iter_scx_dsq_next(&it));)

/* ---- The table of callbacks ---- */

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
	void (*cgroup_set_idle)(struct cgroup *cgrp, bool idle);	/* since 6.19 */
	void (*cpu_online)(s32 cpu);
	void (*cpu_offline)(s32 cpu);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u32 dispatch_max_batch;
	u64 flags;
	u32 timeout_ms;
	u32 exit_dump_len;
	u64 hotplug_seq;
	char name[128];
};

/* The table that a loader attaches. Callbacks are given as (void *)function. */
#define POLICY(table, members...) \
	SEC(".struct_ops.link") struct sched_ext_ops table = { members }

#endif /* RUNSLICE_SCX_H */
