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

#if SIMULATED_KERNEL >= 7002

/* Topological numbers. An arena's pointers have an address space of their own in policies. */
#ifndef ARENA
#define ARENA
#endif
GIVES(s32, scx_bpf_cid_to_cpu, s32 cid)
GIVES(s32, scx_bpf_cpu_to_cid, s32 cpu)
VOID(scx_bpf_cid_topo, s32 cid, struct scx_cid_topo *out, size_t out__sz)
VOID(scx_bpf_kick_cid, s32 cid, u64 flags)
GIVES(s32, scx_bpf_task_cid, const struct task_struct *p)
GIVES(s32, scx_bpf_this_cid, void)
GIVES(struct task_struct *, scx_bpf_cid_curr, s32 cid)
GIVES(u32, scx_bpf_nr_cids, void)
GIVES(u32, scx_bpf_nr_online_cids, void)
GIVES(u32, scx_bpf_cidperf_cap, s32 cid)
GIVES(u32, scx_bpf_cidperf_cur, s32 cid)
GIVES(struct task_struct *, scx_bpf_tid_to_task, u64 tid)
GIVES(bool, scx_bpf_sub_dispatch, u64 cgroup_id)
#if SIMULATED_KERNEL >= 7003
GIVES(s32, scx_bpf_cidperf_set, s32 cid, u32 perf)
GIVES(const void ARENA *, scx_bpf_online_cmask, void)
VOID(scx_bpf_cid_override, const s32 ARENA *cpu_to_cid__arena, u32 cpu_to_cid_cnt,
     const s32 ARENA *shard_start__arena, u32 shard_start_cnt)
GIVES(s32, scx_bpf_sub_caps, u64 cgroup_id, u64 caps, struct scx_cmask ARENA *out__arena)
GIVES(s32, scx_bpf_sub_grant, u64 cgroup_id, u64 caps, const struct scx_cmask ARENA *cmask__arena,
      struct scx_cmask ARENA *denied_out__arena__nullable)
VOID(scx_bpf_sub_revoke, u64 cgroup_id, u64 caps, const struct scx_cmask ARENA *cmask__arena)
GIVES(s32, scx_bpf_sub_kill_bstr, u64 cgroup_id, char *fmt, unsigned long long *data,
      u32 data__sz)
#else
VOID(scx_bpf_cidperf_set, s32 cid, u32 perf)
VOID(scx_bpf_cid_override, const s32 *map, u32 map__sz)
#endif
#endif
