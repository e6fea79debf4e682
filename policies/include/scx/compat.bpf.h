/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Names under which sources ask for what kernels have in several forms. From 6.18 on, the oldest
 * kernel here, most have one form; the functions that gave way keep their old names here.
 */
#ifndef __SCX_COMPAT_BPF_H
#define __SCX_COMPAT_BPF_H

#define __COMPAT_ENUM_OR_ZERO(type, value) ({				\
	type ___unused = 0;						\
	(void)___unused;						\
	bpf_core_enum_value_exists(type, value) ? bpf_core_enum_value(type, value) : 0;	\
})

#define __COMPAT_scx_bpf_task_cgroup(p) scx_bpf_task_cgroup(p)
#define __COMPAT_scx_bpf_dsq_move_set_slice(it, slice) scx_bpf_dsq_move_set_slice(it, slice)
#define __COMPAT_scx_bpf_dsq_move_set_vtime(it, vtime) scx_bpf_dsq_move_set_vtime(it, vtime)
#define __COMPAT_scx_bpf_dsq_move(it, p, dsq_id, flags) scx_bpf_dsq_move(it, p, dsq_id, flags)
#define __COMPAT_scx_bpf_dsq_move_vtime(it, p, dsq_id, flags)		\
	scx_bpf_dsq_move_vtime(it, p, dsq_id, flags)
#define __COMPAT_bpf_cpumask_populate(mask, src, size)			\
	(bpf_cpumask_populate ? bpf_cpumask_populate(mask, src, size) : -EOPNOTSUPP)
#define __COMPAT_scx_bpf_events(events, size) scx_bpf_events(events, size)
#define __COMPAT_scx_bpf_nr_node_ids() scx_bpf_nr_node_ids()
#define __COMPAT_scx_bpf_cpu_node(cpu) scx_bpf_cpu_node(cpu)
#define __COMPAT_scx_bpf_get_idle_cpumask_node(node) scx_bpf_get_idle_cpumask_node(node)
#define __COMPAT_scx_bpf_get_idle_smtmask_node(node) scx_bpf_get_idle_smtmask_node(node)
#define __COMPAT_scx_bpf_pick_idle_cpu_node(mask, node, flags)		\
	scx_bpf_pick_idle_cpu_node(mask, node, flags)
#define __COMPAT_scx_bpf_pick_any_cpu_node(mask, node, flags)		\
	scx_bpf_pick_any_cpu_node(mask, node, flags)
#define __COMPAT_scx_bpf_cpu_curr(cpu) scx_bpf_cpu_curr(cpu)

/* Whether a queue's CPU was chosen by select_cpu, which every kernel here says. */
static inline bool __COMPAT_is_enq_cpu_selected(u64 enq_flags)
{
	return enq_flags & SCX_ENQ_CPU_SELECTED;
}

static inline struct task_struct *__COMPAT_scx_bpf_dsq_peek(u64 dsq_id)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p = NULL;

	if (scx_bpf_dsq_peek)
		return scx_bpf_dsq_peek(dsq_id);
	if (!bpf_iter_scx_dsq_new(&it, dsq_id, 0))
		p = bpf_iter_scx_dsq_next(&it);
	bpf_iter_scx_dsq_destroy(&it);
	return p;
}

/* Kernels after 6.18 have functions for these fields, and warn of a policy that writes them. */
static inline void __COMPAT_scx_bpf_task_set_slice(struct task_struct *p, u64 slice)
{
	if (scx_bpf_task_set_slice)
		scx_bpf_task_set_slice(p, slice);
	else
		p->scx.slice = slice;
}

static inline void __COMPAT_scx_bpf_task_set_dsq_vtime(struct task_struct *p, u64 vtime)
{
	if (scx_bpf_task_set_dsq_vtime)
		scx_bpf_task_set_dsq_vtime(p, vtime);
	else
		p->scx.dsq_vtime = vtime;
}
#define scx_bpf_task_set_slice(p, slice) __COMPAT_scx_bpf_task_set_slice(p, slice)
#define scx_bpf_task_set_dsq_vtime(p, vtime) __COMPAT_scx_bpf_task_set_dsq_vtime(p, vtime)

static inline bool __COMPAT_has_generic_reenq(void)
{
	return scx_bpf_dsq_reenq;
}

/*
 * Functions that got a result or another argument after 6.18: the newer form where a kernel has
 * it. A source may leave out the flags of the last one.
 */
static inline bool ___scx_insert(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags)
{
	if (scx_bpf_dsq_insert___v2)
		return scx_bpf_dsq_insert___v2(p, dsq_id, slice, enq_flags);
	scx_bpf_dsq_insert(p, dsq_id, slice, enq_flags);
	return true;
}

static inline bool ___scx_insert_vtime(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
				       u64 enq_flags)
{
	if (__scx_bpf_dsq_insert_vtime) {
		struct scx_bpf_dsq_insert_vtime_args args = {
			.dsq_id = dsq_id,
			.slice = slice,
			.vtime = vtime,
			.enq_flags = enq_flags,
		};

		return __scx_bpf_dsq_insert_vtime(p, &args);
	}
	scx_bpf_dsq_insert_vtime(p, dsq_id, slice, vtime, enq_flags);
	return true;
}

static inline s32 ___scx_select_cpu_and(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
					const struct cpumask *cpus_allowed, u64 flags)
{
	if (__scx_bpf_select_cpu_and) {
		struct scx_bpf_select_cpu_and_args args = {
			.prev_cpu = prev_cpu,
			.wake_flags = wake_flags,
			.flags = flags,
		};

		return __scx_bpf_select_cpu_and(p, cpus_allowed, &args);
	}
	return scx_bpf_select_cpu_and(p, prev_cpu, wake_flags, cpus_allowed, flags);
}

static inline bool ___scx_move_to_local(u64 dsq_id, u64 enq_flags)
{
	if (scx_bpf_dsq_move_to_local___v2)
		return scx_bpf_dsq_move_to_local___v2(dsq_id, enq_flags);
	return scx_bpf_dsq_move_to_local(dsq_id);
}

#define scx_bpf_dsq_insert(p, dsq_id, slice, flags) ___scx_insert(p, dsq_id, slice, flags)
#define scx_bpf_dsq_insert_vtime(p, dsq_id, slice, vtime, flags)	\
	___scx_insert_vtime(p, dsq_id, slice, vtime, flags)
#define scx_bpf_select_cpu_and(p, prev_cpu, wake_flags, mask, flags)	\
	___scx_select_cpu_and(p, prev_cpu, wake_flags, mask, flags)
#define ___scx_flags(none, flags, ...) flags
#define scx_bpf_dsq_move_to_local(dsq_id, flags...)			\
	___scx_move_to_local(dsq_id, ___scx_flags(0, ##flags, 0))

/* It has done nothing since 6.15, and newer kernels refuse it. */
#define SCX_OPS_HAS_CGROUP_WEIGHT 0

/* Names before 6.13. */
#define scx_bpf_dispatch(p, dsq_id, slice, flags) scx_bpf_dsq_insert(p, dsq_id, slice, flags)
#define scx_bpf_dispatch_vtime(p, dsq_id, slice, vtime, flags)		\
	scx_bpf_dsq_insert_vtime(p, dsq_id, slice, vtime, flags)
#define scx_bpf_consume(dsq_id) scx_bpf_dsq_move_to_local(dsq_id)
#define scx_bpf_dispatch_from_dsq_set_slice(it, slice) scx_bpf_dsq_move_set_slice(it, slice)
#define scx_bpf_dispatch_from_dsq_set_vtime(it, vtime) scx_bpf_dsq_move_set_vtime(it, vtime)
#define scx_bpf_dispatch_from_dsq(it, p, dsq_id, flags) scx_bpf_dsq_move(it, p, dsq_id, flags)
#define scx_bpf_dispatch_vtime_from_dsq(it, p, dsq_id, flags)		\
	scx_bpf_dsq_move_vtime(it, p, dsq_id, flags)

#endif /* __SCX_COMPAT_BPF_H */
