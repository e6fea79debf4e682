/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Functions of kernel 6.18 that policies call, all of which later versions have too; see
 * ../6.18.h. Older versions have those that no condition excludes.
 */

/*
 * ---- Functions ----
 *
 * What counts is the prototype; bodies are the simulator's. They are defined,
 * since the compiler records only functions that are. policies/include/vmlinux.h declares them.
 */

#ifndef KFUNC
#define KFUNC __attribute__((btf_decl_tag("bpf_kfunc")))
#define VOID(name, args...) KFUNC void name(args) {}
#define GIVES(type, name, args...) KFUNC type name(args) { return (type)0; }
#endif

/* Queues. */
#if SIMULATED_KERNEL <= 6016
/* Their names until 6.12; 6.13 to 6.16 have both. */
VOID(scx_bpf_dispatch, struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags)
VOID(scx_bpf_dispatch_vtime, struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
     u64 enq_flags)
GIVES(bool, scx_bpf_consume, u64 dsq_id)
VOID(scx_bpf_dispatch_from_dsq_set_slice, struct bpf_iter_scx_dsq *it__iter, u64 slice)
VOID(scx_bpf_dispatch_from_dsq_set_vtime, struct bpf_iter_scx_dsq *it__iter, u64 vtime)
GIVES(bool, scx_bpf_dispatch_from_dsq, struct bpf_iter_scx_dsq *it__iter, struct task_struct *p,
      u64 dsq_id, u64 enq_flags)
GIVES(bool, scx_bpf_dispatch_vtime_from_dsq, struct bpf_iter_scx_dsq *it__iter,
      struct task_struct *p, u64 dsq_id, u64 enq_flags)
#endif
#if SIMULATED_KERNEL >= 6013
VOID(scx_bpf_dsq_insert, struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags)
VOID(scx_bpf_dsq_insert_vtime, struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
     u64 enq_flags)
GIVES(bool, scx_bpf_dsq_move_to_local, u64 dsq_id)
VOID(scx_bpf_dsq_move_set_slice, struct bpf_iter_scx_dsq *it__iter, u64 slice)
VOID(scx_bpf_dsq_move_set_vtime, struct bpf_iter_scx_dsq *it__iter, u64 vtime)
GIVES(bool, scx_bpf_dsq_move, struct bpf_iter_scx_dsq *it__iter, struct task_struct *p,
      u64 dsq_id, u64 enq_flags)
GIVES(bool, scx_bpf_dsq_move_vtime, struct bpf_iter_scx_dsq *it__iter, struct task_struct *p,
      u64 dsq_id, u64 enq_flags)
#endif
GIVES(u32, scx_bpf_dispatch_nr_slots, void)
VOID(scx_bpf_dispatch_cancel, void)
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
GIVES(bool, scx_bpf_test_and_clear_cpu_idle, s32 cpu)
GIVES(s32, scx_bpf_pick_idle_cpu, const struct cpumask *cpus_allowed, u64 flags)
GIVES(s32, scx_bpf_pick_any_cpu, const struct cpumask *cpus_allowed, u64 flags)
GIVES(const struct cpumask *, scx_bpf_get_idle_cpumask, void)
GIVES(const struct cpumask *, scx_bpf_get_idle_smtmask, void)
VOID(scx_bpf_put_idle_cpumask, const struct cpumask *idle_mask)
GIVES(const struct cpumask *, scx_bpf_get_possible_cpumask, void)
GIVES(const struct cpumask *, scx_bpf_get_online_cpumask, void)
VOID(scx_bpf_put_cpumask, const struct cpumask *cpumask)
GIVES(u32, scx_bpf_nr_cpu_ids, void)
GIVES(u32, scx_bpf_cpuperf_cap, s32 cpu)
GIVES(u32, scx_bpf_cpuperf_cur, s32 cpu)
VOID(scx_bpf_cpuperf_set, s32 cpu, u32 perf)
#if SIMULATED_KERNEL < 7003
GIVES(struct rq *, scx_bpf_cpu_rq, s32 cpu)
#endif
#if SIMULATED_KERNEL >= 6016
GIVES(s32, scx_bpf_select_cpu_and, struct task_struct *p, s32 prev_cpu, u64 wake_flags,
      const struct cpumask *cpus_allowed, u64 flags)
GIVES(s32, scx_bpf_pick_idle_cpu_node, const struct cpumask *cpus_allowed, int node, u64 flags)
GIVES(s32, scx_bpf_pick_any_cpu_node, const struct cpumask *cpus_allowed, int node, u64 flags)
GIVES(const struct cpumask *, scx_bpf_get_idle_cpumask_node, int node)
GIVES(const struct cpumask *, scx_bpf_get_idle_smtmask_node, int node)
GIVES(int, scx_bpf_cpu_node, s32 cpu)
GIVES(u32, scx_bpf_nr_node_ids, void)
#endif
#if SIMULATED_KERNEL >= 6018
GIVES(struct rq *, scx_bpf_locked_rq, void)
GIVES(struct task_struct *, scx_bpf_cpu_curr, s32 cpu)
#endif

/* Tasks, time, reports. */
GIVES(bool, scx_bpf_task_running, const struct task_struct *p)
GIVES(s32, scx_bpf_task_cpu, const struct task_struct *p)
GIVES(struct cgroup *, scx_bpf_task_cgroup, struct task_struct *p)
#if SIMULATED_KERNEL >= 6014
GIVES(u64, scx_bpf_now, void)
VOID(scx_bpf_events, struct scx_event_stats *events, size_t events__sz)
#endif
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

GIVES(int, bpf_cpumask_populate, struct cpumask *dst, void *src, size_t src__sz)

/* Objects and groups. */
GIVES(long, bpf_task_under_cgroup, struct task_struct *task, struct cgroup *ancestor)
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
/* Since 6.15. Older machines lack it here: new functions give all types behind them other numbers,
 * and recordings of programs hold these. */
#if SIMULATED_KERNEL >= 7002
GIVES(int, bpf_res_spin_lock, struct bpf_res_spin_lock *lock)
VOID(bpf_res_spin_unlock, struct bpf_res_spin_lock *lock)
#endif
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
GIVES(void *, bpf_refcount_acquire_impl, void *p__refcounted_kptr, void *meta__ign)
GIVES(int, bpf_list_push_front_impl, struct bpf_list_head *head, struct bpf_list_node *node,
      void *meta__ign, u64 off)
GIVES(int, bpf_list_push_back_impl, struct bpf_list_head *head, struct bpf_list_node *node,
      void *meta__ign, u64 off)
GIVES(struct bpf_list_node *, bpf_list_pop_front, struct bpf_list_head *head)
GIVES(struct bpf_list_node *, bpf_list_pop_back, struct bpf_list_head *head)
GIVES(struct bpf_list_node *, bpf_list_front, struct bpf_list_head *head)
GIVES(struct bpf_list_node *, bpf_list_back, struct bpf_list_head *head)
VOID(bpf_local_irq_save, unsigned long *flags__irq_flag)
VOID(bpf_local_irq_restore, unsigned long *flags__irq_flag)
#ifndef WITHOUT_ARENAS
GIVES(int, bpf_arena_reserve_pages, void *p__map, void *ptr__ign, u32 page_cnt)
GIVES(void *, bpf_arena_alloc_pages, void *p__map, void *addr__ign, u32 page_cnt, int node_id,
      u64 flags)
VOID(bpf_arena_free_pages, void *p__map, void *ptr__ign, u32 page_cnt)
#endif
GIVES(int, bpf_stream_vprintk_impl, int stream_id, const char *fmt__str, const void *args,
      u32 len__sz, void *aux__prog)
