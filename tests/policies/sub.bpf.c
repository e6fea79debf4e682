/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A policy that may stand above others and below others. It has a queue for
 * each cid, where a task stays, and gives every CPU that it has no task for to
 * the schedulers below it. It prints what it is told, of tasks those whose
 * names begin with `tv`, with their third letter and its tag in front. With ROOT_OF_7_2 nobody may
 * stand below it.
 */
#include <cid.h>

BPF_LICENSE();

/* In front of every line. */
const volatile u32 tag = 0;

/* What a scheduler below gets, and on which cids (bits). */
const volatile u64 caps = 0xf;
const volatile u64 cids = ~0ULL;

/* Whether it hands CPUs down. */
const volatile bool hands_down = true;

/* Whether tasks go to the local queue at once. */
const volatile bool to_local = false;

/* Flags of inserts into a local queue; LOCAL_ON of this cid if it is not -1. */
const volatile u64 insert_flags = 0;
const volatile s32 local_on = -1;

/* The answer to who attaches below it, and of init_task. */
const volatile s32 accepts = 0;
const volatile s32 init_answer = 0;

/* Changed while it runs: bits of cids that are taken, given, and who is killed. */
volatile u64 revokes = 0;
volatile u64 grants = 0;
volatile u64 kills = 0;

#define CPUS 64
#define MOST_BELOW 4

ARENA(arena, 64);

__kfunc void *bpf_arena_alloc_pages(void *map, void *addr, u32 pages, int node, u64 flags);
__kfunc bool scx_bpf_dsq_move_to_local___v2___new(u64 dsq_id, u64 enq_flags);

/* Cgroups of those below it. */
static u64 below[MOST_BELOW];

/* A mask of its own, in the arena. */
static struct scx_cmask *mask;

#define SAY(what, word) bpf_printk("S%d " what " %llx", tag, (u64)(word))

#define SAY_OF(p, what, word) ({						\
	if ((p)->comm[0] == 't' && (p)->comm[1] == 'v')				\
		bpf_printk("%c S%d " what " %llx", (p)->comm[2], tag, (u64)(word)); \
})

/* Fills its own mask with these bits. */
static __always_inline void fill(u64 bits)
{
	struct scx_cmask *at = in_arena(mask);
	u32 count = scx_bpf_nr_cids();

	at->base = 0;
	at->nr_cids = count;
	at->alloc_words = CMASK_WORDS(count);
	at->bits[0] = count < 64 ? bits & ((1ULL << count) - 1) : bits;
}

s32 OP_SLEEPABLE(sub_init)
{
	u32 count = scx_bpf_nr_cids();

	use_arena(arena);
	mask = bpf_arena_alloc_pages(&arena, NULL, 1, -1, 0);
	for (u32 cid = 0; cid < CPUS && cid < count; cid++)
		scx_bpf_create_dsq(cid, -1);
	fill(0);
#ifndef ROOT_OF_7_2
	scx_bpf_sub_caps(0, SCX_CAP_ENQ_IMMED, mask);
#endif
	SAY("init", ((struct scx_cmask *)in_arena(mask))->bits[0]);
	return 0;
}

void OP_SLEEPABLE(sub_exit, struct scx_exit_info *info)
{
	use_arena(arena);
	SAY("exit", info->kind);
}

#ifndef ROOT_OF_7_2
s32 OP_SLEEPABLE(sub_sub_attach, struct scx_sub_attach_args *args)
{
	u64 id = args->ops->sub_cgroup_id;

	use_arena(arena);
	SAY("sub_attach", id);
	if (accepts)
		return accepts;
	for (u32 at = 0; at < MOST_BELOW; at++) {
		if (!below[at]) {
			below[at] = id;
			break;
		}
	}
	fill(cids);
	SAY("grant", -scx_bpf_sub_grant(id, caps, mask, NULL));
	return 0;
}

void OP_SLEEPABLE(sub_sub_detach, struct scx_sub_detach_args *args)
{
	u64 id = args->ops->sub_cgroup_id;

	use_arena(arena);
	SAY("sub_detach", id);
	for (u32 at = 0; at < MOST_BELOW; at++) {
		if (below[at] == id)
			below[at] = 0;
	}
}

void OP(sub_caps_updated, const struct scx_cmask *cmask, u64 caps)
{
	use_arena(arena);
	SAY("sub_caps_updated", ((struct scx_cmask *)in_arena(cmask))->bits[0] << 8 | caps);
}

void OP(sub_ecaps_updated, s32 cid, u64 before, u64 after)
{
	use_arena(arena);
	SAY("sub_ecaps_updated", (u64)cid << 16 | before << 8 | after);
}
#endif

s32 OP(sub_select_cid, struct task_struct *p, s32 prev_cid, u64 wake_flags)
{
	use_arena(arena);
	SAY_OF(p, "select_cid", wake_flags);
	return prev_cid;
}

void OP(sub_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 cid = scx_bpf_task_cid(p);

	use_arena(arena);
	SAY_OF(p, "enqueue", enq_flags);
	if (local_on >= 0) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | local_on, SCX_SLICE_DFL,
				   enq_flags | insert_flags);
		return;
	}
	if (to_local) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, enq_flags | insert_flags);
		return;
	}
	scx_bpf_dsq_insert(p, cid, SCX_SLICE_DFL, enq_flags);
	scx_bpf_kick_cid(cid, SCX_KICK_IDLE);
}

void OP(sub_dequeue, struct task_struct *p, u64 deq_flags)
{
	use_arena(arena);
	SAY_OF(p, "dequeue", deq_flags);
}

#ifndef ROOT_OF_7_2
/* Gives and takes what was asked for. */
static __always_inline void change_caps(void)
{
	char why[] = "asked for";
	/* A kernel demands a place for arguments, also where there are none. */
	unsigned long long none[1] = {};

	if (revokes) {
		fill(revokes);
		revokes = 0;
		scx_bpf_sub_revoke(below[0], caps, mask);
		SAY("revoked", 0);
	}
	if (grants) {
		fill(grants);
		grants = 0;
		SAY("granted", -scx_bpf_sub_grant(below[0], caps, mask, NULL));
	}
	if (kills) {
		kills = 0;
		scx_bpf_sub_kill_bstr(below[0], why, none, sizeof(none));
	}
}
#endif

void OP(sub_dispatch, s32 cid, struct task_struct *prev)
{
	use_arena(arena);
#ifdef ROOT_OF_7_2
	scx_bpf_dsq_move_to_local___v2___new(cid, insert_flags);
#else
	change_caps();
	if (scx_bpf_dsq_move_to_local___v2___new(cid, insert_flags) || !hands_down)
		return;
	for (u32 at = 0; at < MOST_BELOW; at++) {
		if (below[at] && scx_bpf_sub_dispatch(below[at]))
			break;
	}
#endif
}

void OP(sub_runnable, struct task_struct *p, u64 enq_flags)
{
	use_arena(arena);
	SAY_OF(p, "runnable", enq_flags);
}

void OP(sub_running, struct task_struct *p)
{
	use_arena(arena);
	SAY_OF(p, "running", p->scx.slice / 1000000);
}

void OP(sub_stopping, struct task_struct *p, bool runnable)
{
	use_arena(arena);
	SAY_OF(p, "stopping", runnable);
}

void OP(sub_quiescent, struct task_struct *p, u64 deq_flags)
{
	use_arena(arena);
	SAY_OF(p, "quiescent", deq_flags);
}

void OP(sub_update_idle, s32 cid, bool idle)
{
	use_arena(arena);
	if (tag)
		SAY("update_idle", (u64)cid << 8 | idle);
}

s32 OP_SLEEPABLE(sub_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	use_arena(arena);
	SAY_OF(p, "init_task", args->fork);
	return init_answer;
}

void OP(sub_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	use_arena(arena);
	SAY_OF(p, "exit_task", args->cancelled);
}

void OP(sub_enable, struct task_struct *p, struct scx_enable_args *args)
{
	use_arena(arena);
	SAY_OF(p, "enable", p->scx.slice);
}

void OP(sub_disable, struct task_struct *p)
{
	use_arena(arena);
	SAY_OF(p, "disable", 0);
}

void OP(sub_set_weight, struct task_struct *p, u32 weight)
{
	use_arena(arena);
	SAY_OF(p, "set_weight", weight);
}

void OP(sub_set_cmask, struct task_struct *p, const struct scx_cmask *cmask)
{
	use_arena(arena);
	SAY_OF(p, "set_cmask", ((struct scx_cmask *)in_arena(cmask))->bits[0]);
}

s32 OP_SLEEPABLE(sub_cpuctl_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	use_arena(arena);
	SAY("cpuctl_init", args->weight);
	return 0;
}

void OP_SLEEPABLE(sub_cpuctl_exit, struct cgroup *cgrp)
{
	use_arena(arena);
	SAY("cpuctl_exit", 0);
}

s32 OP_SLEEPABLE(sub_prep_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	use_arena(arena);
	SAY_OF(p, "cpuctl_prep_move", 0);
	return 0;
}

void OP(sub_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	use_arena(arena);
	SAY_OF(p, "cpuctl_move", 0);
}

void OP(sub_cpuctl_set_weight, struct cgroup *cgrp, u32 weight)
{
	use_arena(arena);
	SAY("cpuctl_set_weight", weight);
}

void OP_SLEEPABLE(sub_online, s32 cid)
{
	use_arena(arena);
	SAY("cid_online", cid);
}

void OP_SLEEPABLE(sub_offline, s32 cid)
{
	use_arena(arena);
	SAY("cid_offline", cid);
}

CID_POLICY(sub_ops,
	.select_cid = (void *)sub_select_cid,
	.enqueue = (void *)sub_enqueue,
	.dequeue = (void *)sub_dequeue,
	.dispatch = (void *)sub_dispatch,
	.runnable = (void *)sub_runnable,
	.running = (void *)sub_running,
	.stopping = (void *)sub_stopping,
	.quiescent = (void *)sub_quiescent,
	.update_idle = (void *)sub_update_idle,
	.init_task = (void *)sub_init_task,
	.exit_task = (void *)sub_exit_task,
	.enable = (void *)sub_enable,
	.disable = (void *)sub_disable,
	.set_weight = (void *)sub_set_weight,
	.set_cmask = (void *)sub_set_cmask,
	.cpuctl_init = (void *)sub_cpuctl_init,
	.cpuctl_exit = (void *)sub_cpuctl_exit,
	.cpuctl_prep_move = (void *)sub_prep_move,
	.cpuctl_move = (void *)sub_move,
	.cpuctl_set_weight = (void *)sub_cpuctl_set_weight,
#ifndef ROOT_OF_7_2
	.sub_attach = (void *)sub_sub_attach,
	.sub_detach = (void *)sub_sub_detach,
	.sub_caps_updated = (void *)sub_caps_updated,
	.sub_ecaps_updated = (void *)sub_ecaps_updated,
#endif
	.cid_online = (void *)sub_online,
	.cid_offline = (void *)sub_offline,
	.init = (void *)sub_init,
	.exit = (void *)sub_exit,
	.name = "sub");
