/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Has a queue for each cgroup, and looks only at those of cgroups with tasks. It counts the
 * tasks that are born and exit, and not those that move from one cgroup to another.
 *
 * Breaks: every runnable task runs in bounded time.
 */
#include "faulty.h"

#define GROUPS 64

/* By the last digits of a cgroup's id: its tasks. */
static s64 members[GROUPS];
static u32 turns;

static __always_inline u32 group_of(struct cgroup *cgrp)
{
	return cgrp->kn->id % GROUPS;
}

SELECT_CPU_PREV(cgroup_move)

void OP(cgroup_move_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct cgroup *cgrp = scx_bpf_task_cgroup(p);
	u32 group = group_of(cgrp);

	bpf_cgroup_release(cgrp);
	scx_bpf_dsq_insert(p, group, SLICE_NS, enq_flags);
}

void OP(cgroup_move_dispatch, s32 cpu, struct task_struct *prev)
{
	u32 turn, group, first = __sync_fetch_and_add(&turns, 1);

	for_each_number(turn, 0, GROUPS) {
		group = (first + turn) % GROUPS;
		if (members[group] <= 0) /* the fault */
			continue;
		if (scx_bpf_dsq_move_to_local(group))
			return;
	}
}

s32 OP(cgroup_move_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	__sync_fetch_and_add(&members[group_of(args->cgroup)], 1);
	return 0;
}

void OP(cgroup_move_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	struct cgroup *cgrp = scx_bpf_task_cgroup(p);

	__sync_fetch_and_add(&members[group_of(cgrp)], -1);
	bpf_cgroup_release(cgrp);
}

/* Without it a policy is told of no move. */
void OP(cgroup_move_cgroup_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
}

s32 OP_SLEEPABLE(cgroup_move_init)
{
	s32 group, error;

	for_each_number(group, 0, GROUPS) {
		error = scx_bpf_create_dsq(group, -1);
		if (error)
			return error;
	}
	return 0;
}

FAULTY(cgroup_move,
       .init_task = (void *)cgroup_move_init_task,
       .exit_task = (void *)cgroup_move_exit_task,
       .cgroup_move = (void *)cgroup_move_cgroup_move);
