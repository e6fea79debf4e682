/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A policy in cid form that believes nothing: it compares what it is told with
 * what it can find out, and ends with an error at the first difference. It has
 * a queue for each cid, and a task stays where it was.
 *
 * The file that includes this one may give CID_OPS, more members of the table.
 */
#include <cid.h>

BPF_LICENSE();

/* init_cids: 0 leaves the numbers; 1 turns their order round; 2 gives one twice; 3 one too great;
 * 4 begins shards in the wrong order. */
const volatile u32 replaces = 0;

/* select_cid: this answer instead of the previous cid. */
const volatile s32 answer = -1;

/* enqueue: inserts into the local queue of this cid. */
const volatile s32 insert_on = -1;

/* select_cid calls a function that this form may not call. */
const volatile bool calls_cpu_only = false;

/* running writes the slice itself. */
const volatile bool writes_slice = false;

#define CPUS 64

ARENA(arena, 64);

/* What cid_override reads: at the place that the arena gives. */
struct layout {
	s32 cids[CPUS];
	s32 shards[CPUS];
};

__kfunc void *bpf_arena_alloc_pages(void *map, void *addr, u32 pages, int node, u64 flags);

/* Whether ops.enable() has run for a task, and its mask has come. */
struct task_state {
	bool enabled;
	bool told;
};

TASK_STORAGE(states, struct task_state);

/* Compares a mask with what the task may use. */
static __always_inline void check_mask(struct task_struct *p, const struct scx_cmask *cmask)
{
	const struct scx_cmask *mask = in_arena(cmask);
	u32 count = scx_bpf_nr_cids();

	if (mask->base || mask->nr_cids != count || mask->alloc_words != CMASK_WORDS(count))
		scx_bpf_error("header %u %u %u", (u64)mask->base, (u64)mask->nr_cids,
			      (u64)mask->alloc_words);
	for (u32 cid = 0; cid < CPUS; cid++) {
		s32 cpu;

		if (cid >= count)
			break;
		cpu = scx_bpf_cid_to_cpu(cid);
		if (bpf_cpumask_test_cpu(cpu, p->cpus_ptr) != cmask_has(cmask, cid))
			scx_bpf_error("cid %u of %d", (u64)cid, (u64)p->pid);
	}
}

s32 OP_SLEEPABLE(cid_init_cids)
{
	u32 count = scx_bpf_nr_cids();
	struct scx_cid_topo topo = {};
	struct layout *at, *layout;

	use_arena(arena);
	scx_bpf_cid_topo(0, &topo, sizeof(topo));
	bpf_printk("init_cids: %d cids, this %d", count, scx_bpf_this_cid());
	bpf_printk("core %d online %d", topo.core_cid, scx_bpf_online_cmask() != NULL);
	if (!replaces)
		return 0;
	at = bpf_arena_alloc_pages(&arena, NULL, 1, -1, 0);
	layout = in_arena(at);
	for (u32 cpu = 0; cpu < CPUS && cpu < count; cpu++)
		layout->cids[cpu] = count - 1 - cpu;
	layout->shards[0] = 0;
	layout->shards[1] = replaces == 4 ? 0 : 1;
	if (replaces == 2)
		layout->cids[0] = 0;
	if (replaces == 3)
		layout->cids[0] = count;
	scx_bpf_cid_override((s32 *)at, count, (s32 *)at + CPUS, 2);
	return 0;
}

s32 OP_SLEEPABLE(cid_init)
{
	u32 count = scx_bpf_nr_cids();
	const struct scx_cmask *online = scx_bpf_online_cmask();

	use_arena(arena);
	for (u32 cid = 0; cid < CPUS && cid < count; cid++) {
		struct scx_cid_topo topo;
		s32 cpu = scx_bpf_cid_to_cpu(cid);

		scx_bpf_cid_topo(cid, &topo, sizeof(topo));
		bpf_printk("cid %d: cpu %d core %d", cid, cpu, topo.core_cid);
		bpf_printk("llc %d node %d shard %d", topo.llc_cid, topo.node_cid, topo.shard_cid);
		if (scx_bpf_cpu_to_cid(cpu) != cid)
			scx_bpf_error("cid %u there and back", (u64)cid);
		bpf_printk("online %d", cmask_has(online, cid));
		if (scx_bpf_create_dsq(cid, -1))
			scx_bpf_error("queue %u", (u64)cid);
	}
	return 0;
}

s32 OP(cid_select_cid, struct task_struct *p, s32 prev_cid, u64 wake_flags)
{
	use_arena(arena);
	if (scx_bpf_task_cid(p) != prev_cid)
		scx_bpf_error("previous cid %d", (u64)prev_cid);
	if (calls_cpu_only)
		return scx_bpf_task_cpu(p);
	return answer < 0 ? prev_cid : answer;
}

void OP(cid_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 cid = scx_bpf_task_cid(p);

	use_arena(arena);
	if (insert_on >= 0) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | insert_on, SCX_SLICE_DFL, enq_flags);
		return;
	}
	scx_bpf_dsq_insert(p, cid, SCX_SLICE_DFL, enq_flags);
	scx_bpf_kick_cid(cid, SCX_KICK_IDLE);
}

void OP(cid_dispatch, s32 cid, struct task_struct *prev)
{
	use_arena(arena);
	if (cid != scx_bpf_this_cid())
		scx_bpf_error("dispatch of cid %d", (u64)cid);
	scx_bpf_dsq_move_to_local(cid);
}

void OP(cid_running, struct task_struct *p)
{
	use_arena(arena);
	if (scx_bpf_tid_to_task(tid_of(p)) != p)
		scx_bpf_error("%d has another's number", (u64)p->pid);
	if (writes_slice)
		p->scx.slice = 1000000;
}

void OP(cid_update_idle, s32 cid, bool idle)
{
	use_arena(arena);
	if (cid != scx_bpf_this_cid())
		scx_bpf_error("update_idle of cid %d", (u64)cid);
}

s32 OP_SLEEPABLE(cid_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	use_arena(arena);
	return bpf_task_storage_get(&states, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE) ? 0 : -ENOMEM;
}

void OP(cid_enable, struct task_struct *p, struct scx_enable_args *args)
{
	struct task_state *state = bpf_task_storage_get(&states, p, NULL, 0);

	use_arena(arena);
	check_mask(p, (const struct scx_cmask *)args->cmask_arena_addr);
	if (!state || state->enabled)
		scx_bpf_error("%d is enabled twice", (u64)p->pid);
	else
		*state = (struct task_state){ .enabled = true };
}

void OP(cid_set_cmask, struct task_struct *p, const struct scx_cmask *cmask)
{
	struct task_state *state = bpf_task_storage_get(&states, p, NULL, 0);

	use_arena(arena);
	check_mask(p, cmask);
	if (!state || !state->enabled)
		scx_bpf_error("mask of %d, which is not enabled", (u64)p->pid);
	else
		state->told = true;
}

void OP(cid_set_weight, struct task_struct *p, u32 weight)
{
	struct task_state *state = bpf_task_storage_get(&states, p, NULL, 0);

	use_arena(arena);
	if (!state || !state->told)
		scx_bpf_error("weight of %d before its mask", (u64)p->pid);
}

void OP(cid_disable, struct task_struct *p)
{
	struct task_state *state = bpf_task_storage_get(&states, p, NULL, 0);

	use_arena(arena);
	if (state)
		state->enabled = state->told = false;
}

void OP_SLEEPABLE(cid_online, s32 cid)
{
	use_arena(arena);
	bpf_printk("online cid %d, %d", cid, cmask_has(scx_bpf_online_cmask(), cid));
}

void OP_SLEEPABLE(cid_offline, s32 cid)
{
	use_arena(arena);
	bpf_printk("offline cid %d, %d", cid, cmask_has(scx_bpf_online_cmask(), cid));
}

#ifdef CID_RECORDS
/* So that no callback is empty. */
static u64 calls;

void OP(cid_dequeue, struct task_struct *p, u64 deq_flags)
{
	use_arena(arena);
	calls++;
}

void OP(cid_runnable, struct task_struct *p, u64 enq_flags)
{
	use_arena(arena);
	calls++;
}

void OP(cid_stopping, struct task_struct *p, bool runnable)
{
	use_arena(arena);
	calls++;
}

void OP(cid_quiescent, struct task_struct *p, u64 deq_flags)
{
	use_arena(arena);
	calls++;
}

void OP(cid_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	use_arena(arena);
	calls++;
}

s32 OP_SLEEPABLE(cid_prep_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	use_arena(arena);
	calls++;
	return 0;
}

void OP(cid_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	use_arena(arena);
	calls++;
}
#endif

#ifndef CID_OPS
#define CID_OPS
#endif

CID_POLICY(cid_ops,
	.select_cid = (void *)cid_select_cid,
	.enqueue = (void *)cid_enqueue,
	.dispatch = (void *)cid_dispatch,
	.running = (void *)cid_running,
	.update_idle = (void *)cid_update_idle,
	.init_task = (void *)cid_init_task,
	.enable = (void *)cid_enable,
	.set_cmask = (void *)cid_set_cmask,
	.set_weight = (void *)cid_set_weight,
	.disable = (void *)cid_disable,
	.init_cids = (void *)cid_init_cids,
	.init = (void *)cid_init,
	.flags = 1 << 8,	/* SCX_OPS_TID_TO_TASK */
	CID_OPS
	.name = "cid");
