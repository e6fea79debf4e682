/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A policy that a loader sets up: variables with something inside, programs
 * that run before and after it is attached. It prints what it found.
 */
#include <scx.h>

BPF_LICENSE();

/* ---- What a loader sets ---- */

struct mode {
	u64 slice_ns;
	s32 cpus[4];
};

const volatile struct mode modes[2];
const volatile s32 cgroup_answer;

/* ---- Maps ---- */

struct pair {
	u32 low, high, rest;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, s32);
} nodes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 3);
	__type(key, u32);
	__type(value, struct pair);
} pairs SEC(".maps");

static __attribute__((noinline)) s32 node_of(u32 cpu)
{
	s32 *node = bpf_map_lookup_elem(&nodes, &cpu);

	return node ? *node : -100;
}

/* ---- State ---- */

u32 nr_runs;
s32 last_queue;
u64 at_ns;

struct argument {
	s32 answer;
	u64 queue;
	bool complain;
};

SEC("syscall") int configure(struct argument *argument)
{
	nr_runs++;
	at_ns = bpf_ktime_get_ns();
	last_queue = scx_bpf_create_dsq(argument->queue, -1);
	if (argument->complain)
		scx_bpf_error("set-up complains");
	bpf_printk("configure %llu: %d", argument->queue, last_queue);
	return argument->answer;
}

SEC("syscall") int wild(struct argument *argument)
{
	*(volatile u64 *)argument->queue = 1;
	return 0;
}

/* ---- Load ---- */

struct cgroup_subsys_state {
	struct cgroup *cgroup;
} __attribute__((preserve_access_index));

struct cgroup___self {
	struct cgroup_subsys_state self;
} __attribute__((preserve_access_index));

struct bpf_iter_css {
	u64 opaque[3];
};

__kfunc int bpf_iter_css_new(struct bpf_iter_css *it, struct cgroup_subsys_state *start,
			     unsigned int flags);
__kfunc struct cgroup_subsys_state *bpf_iter_css_next(struct bpf_iter_css *it);
__kfunc void bpf_iter_css_destroy(struct bpf_iter_css *it);
__kfunc struct cgroup *bpf_cgroup_from_id(u64 cgid);

/* Groups that a walk in this order visits, or its error. */
static __attribute__((noinline)) s32 walk(struct cgroup *root, u32 order)
{
	struct cgroup___self *group = (void *)root;
	struct cgroup_subsys_state *css;
	struct bpf_iter_css it;
	s32 visited = 0, error;

	error = bpf_iter_css_new(&it, &group->self, order);
	while ((css = bpf_iter_css_next(&it)))
		visited += css->cgroup == root;
	bpf_iter_css_destroy(&it);
	return error ?: visited;
}

s32 OP_SLEEPABLE(setup_init)
{
	struct cgroup *root = bpf_cgroup_from_id(1);
	struct pair *pair;
	u32 key = 2;

	bpf_printk("init: %d runs, slice %llu", nr_runs, modes[1].slice_ns);
	bpf_printk("cpus %d %d %d", modes[0].cpus[0], modes[1].cpus[2], modes[1].cpus[3]);
	bpf_printk("nodes %d %d %d", node_of(0), node_of(2), node_of(3));
	pair = bpf_map_lookup_elem(&pairs, &key);
	bpf_printk("pair %d %d", pair ? pair->low : 0, pair ? pair->high : 0);
	if (!root)
		return -2;
	bpf_printk("orders %d %d %d", walk(root, 2), walk(root, 3), walk(root, 4));
	bpf_printk("no order: %d %d", walk(root, 0), walk(root, 9));
	bpf_cgroup_release(root);
	return 0;
}

struct scx_cgroup_init_args___bandwidth {
	u64 bw_period_us;
	u64 bw_quota_us;
} __attribute__((preserve_access_index));

s32 OP_SLEEPABLE(setup_cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	struct scx_cgroup_init_args___bandwidth *limits = (void *)args;

	bpf_printk("cgroup %llu, weight %u", cgrp->kn->id, args->weight);
	bpf_printk("quota %lld of %llu us", limits->bw_quota_us, limits->bw_period_us);
	return cgroup_answer;
}

void OP(setup_cgroup_exit, struct cgroup *cgrp)
{
	bpf_printk("cgroup %llu leaves", cgrp->kn->id);
}

POLICY(setup_ops,
       .init		= (void *)setup_init,
       .cgroup_init	= (void *)setup_cgroup_init,
       .cgroup_exit	= (void *)setup_cgroup_exit,
       .name	= "setup");
