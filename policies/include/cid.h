/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The cid form of sched_ext, which kernels have from 7.2 on, as this file has
 * it from 7.3 on: CPUs have topological numbers (cids), and masks of them lie
 * in an arena of the policy's.
 *
 * The threads of a core have neighbouring cids, and so have the cores of a
 * cache and the caches of a node. A policy in this form has a table of type
 * struct sched_ext_ops_cid and an arena, which each of its programs names.
 *
 * Source: kernel/sched/ext/cid.h and types.h, kernel 7.3.
 */
#ifndef RUNSLICE_CID_H
#define RUNSLICE_CID_H

#include <scx.h>

/* ---- Types ---- */

/* The first bit stands for the cid `base` rounded down to 64. */
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
	s32 shard_cid;
	s32 shard_idx;
};

struct scx_enable_args {
	u64 cmask_arena_addr;
} __core;

/* What a scheduler is told of one that attaches below it. */
struct sched_ext_ops___below {
	u64 sub_cgroup_id;
} __core;

struct scx_sub_attach_args {
	struct sched_ext_ops___below *ops;
	char *cgroup_path;
} __core;

struct scx_sub_detach_args {
	struct sched_ext_ops___below *ops;
	char *cgroup_path;
} __core;

/* Rights on a cid. */
#define SCX_CAP_ENQ_IMMED 1
#define SCX_CAP_ENQ 2
#define SCX_CAP_PREEMPT 4
#define SCX_CAP_PERF 8

struct sched_ext_entity___numbered {
	u64 tid;
} __core;

struct task_struct___numbered {
	struct sched_ext_entity___numbered scx;
} __core;

/* A task's number, by which scx_bpf_tid_to_task() finds it. */
#define tid_of(p) (((struct task_struct___numbered *)(p))->scx.tid)

/* Words that a mask of so many cids has. */
#define CMASK_WORDS(cids) (((cids) + 63) / 64 + 1)

/* ---- Functions ---- */

__kfunc s32 scx_bpf_cid_to_cpu(s32 cid);
__kfunc s32 scx_bpf_cpu_to_cid(s32 cpu);
__kfunc void scx_bpf_cid_topo(s32 cid, struct scx_cid_topo *out, unsigned long out__sz);
__kfunc void scx_bpf_cid_override(const s32 *cpu_to_cid, u32 cpu_to_cid_cnt,
				  const s32 *shard_start, u32 shard_start_cnt);
__kfunc void scx_bpf_kick_cid(s32 cid, u64 flags);
__kfunc s32 scx_bpf_task_cid(const struct task_struct *p);
__kfunc s32 scx_bpf_this_cid(void);
__kfunc struct task_struct *scx_bpf_cid_curr(s32 cid);
__kfunc u32 scx_bpf_nr_cids(void);
__kfunc u32 scx_bpf_nr_online_cids(void);
__kfunc const void *scx_bpf_online_cmask(void);
__kfunc s32 scx_bpf_cidperf_set(s32 cid, u32 perf);
__kfunc struct task_struct *scx_bpf_tid_to_task(u64 tid);
__kfunc s32 scx_bpf_sub_caps(u64 cgroup_id, u64 caps, struct scx_cmask *out);
__kfunc s32 scx_bpf_sub_grant(u64 cgroup_id, u64 caps, const struct scx_cmask *cmask,
			      struct scx_cmask *denied);
__kfunc void scx_bpf_sub_revoke(u64 cgroup_id, u64 caps, const struct scx_cmask *cmask);
__kfunc bool scx_bpf_sub_dispatch(u64 cgroup_id);
__kfunc s32 scx_bpf_sub_kill_bstr(u64 cgroup_id, char *fmt, unsigned long long *data,
				  u32 data__sz);

/* ---- The arena ---- */

/* An arena of so many pages. */
#define ARENA(name, pages)				\
	struct {					\
		__uint(type, 33);			\
		__uint(map_flags, 1 << 10);		\
		__uint(max_entries, pages);		\
	} name SEC(".maps")

/* A kernel knows a program's arena by the instruction that loads its address. */
#define use_arena(name) asm volatile("" : : "r"(&(name)))

/*
 * Where a program finds what lies at `pointer` in its arena: the instruction
 * addr_space_cast, which compilers before clang 19 cannot name. Everything that
 * is read or written through the result must be computed from the result.
 */
#define in_arena(pointer) ({							\
	u64 at_ = (u64)(pointer);						\
	asm volatile(".byte 0xbf\n"						\
		     ".ifc %0, r0\n .byte 0x00\n .endif\n"			\
		     ".ifc %0, r1\n .byte 0x11\n .endif\n"			\
		     ".ifc %0, r2\n .byte 0x22\n .endif\n"			\
		     ".ifc %0, r3\n .byte 0x33\n .endif\n"			\
		     ".ifc %0, r4\n .byte 0x44\n .endif\n"			\
		     ".ifc %0, r5\n .byte 0x55\n .endif\n"			\
		     ".ifc %0, r6\n .byte 0x66\n .endif\n"			\
		     ".ifc %0, r7\n .byte 0x77\n .endif\n"			\
		     ".ifc %0, r8\n .byte 0x88\n .endif\n"			\
		     ".ifc %0, r9\n .byte 0x99\n .endif\n"			\
		     ".short 1\n .long 1\n"					\
		     : "+r"(at_));						\
	(typeof(pointer))at_;							\
})

/* Whether `cid` is in a mask of the arena's. */
static __always_inline bool cmask_has(const struct scx_cmask *cmask, u32 cid)
{
	const struct scx_cmask *mask = in_arena(cmask);
	u32 base = mask->base;

	if (cid < base || cid - base >= mask->nr_cids)
		return false;
	return mask->bits[cid / 64 - base / 64] >> (cid % 64) & 1;
}

/* ---- The table of callbacks ---- */

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
	void (*set_weight)(struct task_struct *p, u32 weight);
	void (*set_cmask)(struct task_struct *p, const struct scx_cmask *cmask);
	void (*update_idle)(s32 cid, bool idle);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
	void (*enable)(struct task_struct *p, struct scx_enable_args *args);
	void (*disable)(struct task_struct *p);
	s32 (*cpuctl_init)(struct cgroup *cgrp, struct scx_cgroup_init_args *args);
	void (*cpuctl_exit)(struct cgroup *cgrp);
	s32 (*cpuctl_prep_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*cpuctl_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*cpuctl_set_weight)(struct cgroup *cgrp, u32 weight);
	s32 (*sub_attach)(struct scx_sub_attach_args *args);
	void (*sub_detach)(struct scx_sub_detach_args *args);
	void (*sub_caps_updated)(const struct scx_cmask *cmask, u64 caps);
	void (*sub_ecaps_updated)(s32 cid, u64 before, u64 after);
	void (*cid_online)(s32 cid);
	void (*cid_offline)(s32 cid);
	s32 (*init_cids)(void);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u32 dispatch_max_batch;
	u64 flags;
	u32 timeout_ms;
	u32 cid_shard_size;
	u64 sub_cgroup_id;
	char name[128];
};

/* The table that a loader attaches. Callbacks are given as (void *)function. */
#define CID_POLICY(table, members...) \
	SEC(".struct_ops.link") struct sched_ext_ops_cid table = { members }

#endif /* RUNSLICE_CID_H */
