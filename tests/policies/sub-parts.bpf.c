/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A policy that parts its CPUs between itself and the schedulers below it by
 * the weights of their cgroups, its own being 100. It keeps the lowest ones and
 * what is left over. What it is granted by one above it parts anew, as it does
 * when a weight changes. Its tasks wait in one queue.
 *
 * It has the idea of scx_qmap (tools/sched_ext of kernel 7.3) and none of its
 * five queues.
 */
#include <cid.h>

BPF_LICENSE();

/* In front of every line. */
const volatile u32 tag = 0;

#define CPUS 64
#define MOST_BELOW 4
#define MOST_CGROUPS 64
#define OWN_WEIGHT 100
#define QUEUE 0
#define CAPS (SCX_CAP_ENQ_IMMED | SCX_CAP_ENQ | SCX_CAP_PREEMPT | SCX_CAP_PERF)

ARENA(arena, 64);

__kfunc void *bpf_arena_alloc_pages(void *map, void *addr, u32 pages, int node, u64 flags);
__kfunc bool scx_bpf_dsq_move_to_local___v2___new(u64 dsq_id, u64 enq_flags);

/* Those below it: the cgroup and the cids that it has granted. */
struct below {
	u64 id;
	u64 cids;
};

static struct below below[MOST_BELOW];

/* What it was told last of a cgroup. */
struct weight {
	u64 cgroup;
	u64 weight;
};

static struct weight weights[MOST_CGROUPS];

/* The cids that it keeps. */
static u64 own;

/* A mask of its own, in the arena. */
static struct scx_cmask *mask;

#define SAY(what, word) bpf_printk("S%d " what " %llx", tag, (u64)(word))

/* Fills its own mask with these bits. */
static __always_inline void fill(u64 bits)
{
	struct scx_cmask *at = in_arena(mask);
	u32 count = scx_bpf_nr_cids();

	at->base = 0;
	at->nr_cids = count;
	at->alloc_words = CMASK_WORDS(count);
	at->bits[0] = bits;
}

/* The cids to which it has the right itself. */
static __always_inline u64 granted(void)
{
	fill(0);
	scx_bpf_sub_caps(0, SCX_CAP_ENQ, mask);
	return ((struct scx_cmask *)in_arena(mask))->bits[0];
}

static __always_inline u32 count_of(u64 bits)
{
	u32 count = 0;

	for (u32 cid = 0; cid < CPUS; cid++)
		count += bits >> cid & 1;
	return count;
}

/* The `count` lowest of `bits`. */
static __always_inline u64 lowest(u64 bits, u32 count)
{
	u64 taken = 0;

	for (u32 cid = 0; cid < CPUS; cid++) {
		if (count && bits >> cid & 1) {
			taken |= 1ULL << cid;
			count--;
		}
	}
	return taken;
}

static __always_inline void keep_weight(u64 cgroup, u32 weight)
{
	for (u32 at = 0; at < MOST_CGROUPS; at++) {
		if (!weights[at].cgroup || weights[at].cgroup == cgroup) {
			weights[at].cgroup = cgroup;
			weights[at].weight = weight;
			break;
		}
	}
}

static __always_inline u64 weight_of(u64 cgroup)
{
	for (u32 at = 0; at < MOST_CGROUPS; at++) {
		if (weights[at].cgroup == cgroup)
			return weights[at].weight;
	}
	return OWN_WEIGHT;
}

/* How many of `count` CPUs one below gets, where all weigh `sum`. */
static __always_inline u32 share(u32 at, u32 count, u64 sum)
{
	return below[at].id ? count * weight_of(below[at].id) / sum : 0;
}

static __always_inline void kick_own(void)
{
	for (u32 cid = 0; cid < CPUS; cid++) {
		if (own >> cid & 1)
			scx_bpf_kick_cid(cid, SCX_KICK_IDLE);
	}
}

/* Parts what it has anew. */
static __always_inline void part(void)
{
	u64 all = granted(), left = all, sum = OWN_WEIGHT;
	u32 count = count_of(all), others = 0;

	for (u32 at = 0; at < MOST_BELOW; at++)
		sum += below[at].id ? weight_of(below[at].id) : 0;
	for (u32 at = 0; at < MOST_BELOW; at++)
		others += share(at, count, sum);
	own = lowest(all, count - others);
	left &= ~own;
	for (u32 at = 0; at < MOST_BELOW; at++) {
		/* Who takes a right takes it from all below. */
		u64 before = below[at].cids & all, now;

		if (!below[at].id)
			continue;
		now = lowest(left, share(at, count, sum));
		left &= ~now;
		below[at].cids = now;
		if (before & ~now) {
			fill(before & ~now);
			scx_bpf_sub_revoke(below[at].id, CAPS, mask);
		}
		if (now & ~before) {
			fill(now & ~before);
			scx_bpf_sub_grant(below[at].id, CAPS, mask, NULL);
		}
	}
	SAY("self", own);
	kick_own();
}

s32 OP_SLEEPABLE(sub_parts_init)
{
	use_arena(arena);
	mask = bpf_arena_alloc_pages(&arena, NULL, 1, -1, 0);
	scx_bpf_create_dsq(QUEUE, -1);
	part();
	return 0;
}

s32 OP_SLEEPABLE(sub_parts_sub_attach, struct scx_sub_attach_args *args)
{
	u64 id = args->ops->sub_cgroup_id;
	u32 at;

	use_arena(arena);
	for (at = 0; at < MOST_BELOW; at++) {
		if (!below[at].id) {
			below[at].id = id;
			below[at].cids = 0;
			break;
		}
	}
	if (at == MOST_BELOW)
		return -1;
	part();
	return 0;
}

void OP_SLEEPABLE(sub_parts_sub_detach, struct scx_sub_detach_args *args)
{
	u64 id = args->ops->sub_cgroup_id;

	use_arena(arena);
	for (u32 at = 0; at < MOST_BELOW; at++) {
		if (below[at].id == id)
			below[at].id = 0;
	}
	part();
}

s32 OP_SLEEPABLE(sub_parts_cpuctl_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	use_arena(arena);
	keep_weight(cgrp->kn->id, args->weight);
	return 0;
}

void OP(sub_parts_cpuctl_set_weight, struct cgroup *cgrp, u32 weight)
{
	use_arena(arena);
	keep_weight(cgrp->kn->id, weight);
	part();
}

void OP(sub_parts_caps_updated, const struct scx_cmask *cmask, u64 caps)
{
	use_arena(arena);
	part();
}

s32 OP(sub_parts_select_cid, struct task_struct *p, s32 prev_cid, u64 wake_flags)
{
	use_arena(arena);
	return prev_cid;
}

void OP(sub_parts_enqueue, struct task_struct *p, u64 enq_flags)
{
	use_arena(arena);
	scx_bpf_dsq_insert(p, QUEUE, SCX_SLICE_DFL, enq_flags);
	kick_own();
}

void OP(sub_parts_dispatch, s32 cid, struct task_struct *prev)
{
	use_arena(arena);
	if (own >> cid & 1) {
		scx_bpf_dsq_move_to_local___v2___new(QUEUE, 0);
		return;
	}
	for (u32 at = 0; at < MOST_BELOW; at++) {
		if (below[at].id && below[at].cids >> cid & 1)
			scx_bpf_sub_dispatch(below[at].id);
	}
}

CID_POLICY(sub_parts_ops,
	.select_cid = (void *)sub_parts_select_cid,
	.enqueue = (void *)sub_parts_enqueue,
	.dispatch = (void *)sub_parts_dispatch,
	.cpuctl_init = (void *)sub_parts_cpuctl_init,
	.cpuctl_set_weight = (void *)sub_parts_cpuctl_set_weight,
	.sub_attach = (void *)sub_parts_sub_attach,
	.sub_detach = (void *)sub_parts_sub_detach,
	.sub_caps_updated = (void *)sub_parts_caps_updated,
	.init = (void *)sub_parts_init,
	.name = "sub_parts");
