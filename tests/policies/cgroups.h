/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A policy that leaves scheduling to the kernel and writes down what it is
 * told of cgroups. A line of the log is a letter for the callback and the
 * first letters of the cgroups: `pab` asks to move a task from a to b, `/` is
 * the root. Around a move come the callbacks of the task that is moved. A
 * weight of 77 ends the policy, with the log as its message: as an error,
 * because kernels tell the message of an error only.
 */
#include <scx.h>

BPF_LICENSE();

/* ---- Tunables: set before load, constant afterwards ---- */

/* The call of cgroup_prep_move that is refused, from 1, and with what. */
const volatile u32 refused_call = 0;
const volatile s32 refusal = -13;

/* Looks at the tree in ways that only a simulated kernel's loader lets pass. */
const volatile bool looks = false;

/* ---- Functions and types that scx.h does not declare ---- */

struct kernfs_node___named {
	const char *name;
} __core;

struct scx_cgroup_init_args___bandwidth {
	u64 bw_period_us;
	u64 bw_quota_us;
	u64 bw_burst_us;
} __core;

struct css_set___default {
	struct cgroup *dfl_cgrp;
} __core;

struct task_group___css {
	struct {
		struct cgroup *cgroup;
	} css;
} __core;

struct task_struct___cgroups {
	struct css_set___default *cgroups;
	struct task_group___css *sched_task_group;
} __core;

__kfunc struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgrp, int level);
__kfunc struct cgroup *bpf_cgroup_from_id(u64 cgid);
__kfunc long bpf_task_under_cgroup(struct task_struct *task, struct cgroup *ancestor);

/* BPF_MAP_TYPE_CGRP_STORAGE and bpf_cgrp_storage_get (uapi/linux/bpf.h). */
static void *(*const bpf_cgrp_storage_get)(void *map, struct cgroup *cgrp, void *value,
					   u64 flags) = (void *)210;

struct {
	__uint(type, 32);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u64);
} turns SEC(".maps");

/* ---- The log ---- */

#define LOG_BYTES 512

char text[LOG_BYTES];
u32 length;
u32 nr_asked;

/* The task that is being moved, until it runs again. */
s32 moving;

static __always_inline void put(char c)
{
	u32 at = length;

	if (at >= LOG_BYTES - 1)
		return;
	text[at & (LOG_BYTES - 1)] = c;
	length = at + 1;
}

static __always_inline char letter(struct cgroup *cgrp)
{
	struct kernfs_node___named *node = (void *)cgrp->kn;
	char name[2] = {};

	bpf_probe_read_kernel_str(name, sizeof(name), node->name);
	/* A player has its cgroups below one whose name begins with an r. */
	return name[0] && name[0] != 'r' ? name[0] : '/';
}

static __always_inline void note(char what, struct cgroup *from, struct cgroup *to)
{
	put(what);
	put(letter(from));
	if (to)
		put(letter(to));
	put(' ');
}

/* ---- Callbacks of a task ---- */

static __always_inline void look(struct task_struct *p, struct cgroup *cgrp)
{
	struct cgroup *ancestor = bpf_cgroup_ancestor(cgrp, cgrp->level - 1);
	struct cgroup *same = bpf_cgroup_from_id(cgrp->kn->id);

	if (ancestor && letter(cgrp) == 'b' && letter(ancestor) != 'a')
		bpf_printk("b is not below a");
	if (ancestor && !bpf_task_under_cgroup(p, ancestor))
		bpf_printk("a task is not below its cgroup's parent");
	if (same != cgrp)
		bpf_printk("a cgroup is not found by its id");
	if (bpf_cgroup_ancestor(cgrp, cgrp->level + 1))
		bpf_printk("a cgroup has an ancestor below it");
	if (!bpf_task_under_cgroup(p, cgrp))
		bpf_printk("a task is not in its cgroup");
	if (same)
		bpf_cgroup_release(same);
	if (ancestor)
		bpf_cgroup_release(ancestor);
}

void OP(cgroups_running, struct task_struct *p)
{
	struct cgroup *cgrp = scx_bpf_task_cgroup(p);
	u64 *nr = bpf_cgrp_storage_get(&turns, cgrp, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (nr)
		__sync_fetch_and_add(nr, 1);
	if (looks)
		look(p, cgrp);
	bpf_cgroup_release(cgrp);
	if (p->pid == moving) {
		put('u');
		put(' ');
		moving = 0;
	}
}

void OP(cgroups_stopping, struct task_struct *p, bool runnable)
{
	if (p->pid == moving)
		put(runnable ? 'S' : 's');
}

void OP(cgroups_quiescent, struct task_struct *p, u64 deq_flags)
{
	if (p->pid == moving)
		put(deq_flags & SCX_DEQ_SLEEP ? 'Q' : 'q');
}

void OP(cgroups_runnable, struct task_struct *p, u64 enq_flags)
{
	if (p->pid == moving)
		put(enq_flags & SCX_ENQ_WAKEUP ? 'R' : 'r');
}

s32 OP_SLEEPABLE(cgroups_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_struct___cgroups *groups = (void *)p;

	if (looks && args->fork)
		bpf_printk("born in %c, seen in %c", letter(groups->sched_task_group->css.cgroup),
			   letter(groups->cgroups->dfl_cgrp));
	if (looks && args->fork && letter(args->cgroup) !=
				   letter(groups->sched_task_group->css.cgroup))
		bpf_printk("told of another cgroup");
	return 0;
}

/* ---- Callbacks of cgroups ---- */

s32 OP_SLEEPABLE(cgroups_cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	struct scx_cgroup_init_args___bandwidth *limits = (void *)args;

	note('i', cgrp, NULL);
	bpf_printk("%c: weight %u", letter(cgrp), args->weight);
	bpf_printk("quota %lld of %llu, burst %llu", limits->bw_quota_us, limits->bw_period_us,
		   limits->bw_burst_us);
	return 0;
}

void OP_SLEEPABLE(cgroups_cgroup_exit, struct cgroup *cgrp)
{
	u64 *nr = bpf_cgrp_storage_get(&turns, cgrp, NULL, 0);

	note('x', cgrp, NULL);
	bpf_printk("%c leaves after %llu turns", letter(cgrp), nr ? *nr : 0);
}

s32 OP_SLEEPABLE(cgroups_prep_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	note('p', from, to);
	if (++nr_asked == refused_call)
		return refusal;
	moving = p->pid;
	return 0;
}

void OP(cgroups_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	note('m', from, to);
}

void OP(cgroups_cancel_move, struct task_struct *p, struct cgroup *from,
		  struct cgroup *to)
{
	note('c', from, to);
	moving = 0;
}

void OP(cgroups_set_weight, struct cgroup *cgrp, u32 weight)
{
	/* A constant would be a relocation in .rodata, which loaders leave alone. */
	volatile u64 at = (u64)text;

	note('w', cgrp, NULL);
	bpf_printk("weight %u", weight);
	if (weight == 77)
		scx_bpf_error("%s", at);
}

void OP(cgroups_set_bandwidth, struct cgroup *cgrp, u64 period_us, u64 quota_us,
		  u64 burst_us)
{
	note('b', cgrp, NULL);
	bpf_printk("max %lld of %llu, burst %llu", quota_us, period_us, burst_us);
}

#ifdef WITH_IDLE
void OP(cgroups_set_idle, struct cgroup *cgrp, bool idle)
{
	note(idle ? 'I' : 'a', cgrp, NULL);
}
#endif

void OP(cgroups_exit, struct scx_exit_info *info)
{
	bpf_printk("log %s", text);
}

POLICY(cgroups_ops,
       .running			= (void *)cgroups_running,
       .stopping		= (void *)cgroups_stopping,
       .quiescent		= (void *)cgroups_quiescent,
       .runnable		= (void *)cgroups_runnable,
       .init_task		= (void *)cgroups_init_task,
       .cgroup_init		= (void *)cgroups_cgroup_init,
       .cgroup_exit		= (void *)cgroups_cgroup_exit,
       .cgroup_prep_move	= (void *)cgroups_prep_move,
       .cgroup_move		= (void *)cgroups_move,
       .cgroup_cancel_move	= (void *)cgroups_cancel_move,
       .cgroup_set_weight	= (void *)cgroups_set_weight,
       .cgroup_set_bandwidth	= (void *)cgroups_set_bandwidth,
#ifdef WITH_IDLE
       .cgroup_set_idle		= (void *)cgroups_set_idle,
#endif
       .exit			= (void *)cgroups_exit,
       .flags			= CGROUPS_FLAGS,
       .name			= "cgroups");
