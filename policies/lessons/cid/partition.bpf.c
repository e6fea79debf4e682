/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A partition: some CPUs for urgent tasks, the others for all the rest.
 *
 * A task with a nice value below 0 is urgent. Each of the two classes has a queue
 * and CPUs of its own, which nobody of the other class may use, however idle they
 * are. A task that may use none of its own CPUs uses the others.
 *
 * What it shows: how a scheduler keeps CPUs apart by topological numbers (cids):
 * neighbours share a core and a cache, so a range of numbers is a piece of the
 * machine; short waits for the urgent class, and CPUs that idle while others queue.
 *
 * Source: the cid form of sched_ext, Linux 7.3, kernel/sched/ext/cid.h.
 * Differs from the source: two classes by nice value; the border never moves; it
 * ends when a CPU comes or goes.
 */
#include <cid.h>
#include <knobs.bpf.h>

BPF_LICENSE();

KNOB_AT_LOAD(u32, urgent_percent, 25, "percent", "CPUs of the urgent class, one at least", 1, 99);
KNOB(u64, slice_ns, 4000000, "ns", "time on the CPU at once", 1000000, 1000000000);

#define CIDS_MAX 1024
enum { URGENT, OTHERS };

ARENA(arena, 16);

static u32 cids, border;	/* how many there are; the first cid of the others */
static bool idle[CIDS_MAX];	/* cids that nobody uses, as their CPUs tell */

TASK_STORAGE(allowed, u32);	/* classes whose cids a task may use, a bit each */

static __always_inline u32 class_of_cid(u32 cid)
{
	return cid < border ? URGENT : OTHERS;
}

static __always_inline u32 class_of(struct task_struct *p)
{
	u32 *classes = bpf_task_storage_get(&allowed, p, NULL, 0);
	u32 class = p->scx.weight > 100 ? URGENT : OTHERS;

	return classes && !(*classes & 1 << class) ? !class : class;
}

/* Claims an idle cid of the class that the task may use, `near` first; -1: none. */
static __always_inline s32 claim(struct task_struct *p, u32 class, u32 near)
{
	u32 start = class == URGENT ? 0 : border;
	u32 len = class == URGENT ? border : cids - border;
	u32 first = class_of_cid(near) == class ? near - start : 0;
	s32 i = 0;

	for_each_number(i, 0, len) {
		u32 cid = start + (first + i) % len;

		if (cid >= CIDS_MAX || !idle[cid] ||
		    !bpf_cpumask_test_cpu(scx_bpf_cid_to_cpu(cid), p->cpus_ptr))
			continue;
		idle[cid] = false;
		return cid;
	}
	return -1;
}

s32 OP(partition_select_cid, struct task_struct *p, s32 prev_cid, u64 wake_flags)
{
	s32 cid = claim(p, class_of(p), prev_cid);

	use_arena(arena);
	if (cid < 0)
		return prev_cid;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | cid, slice_ns, 0);
	return cid;
}

void OP(partition_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 class = class_of(p);
	s32 cid = claim(p, class, scx_bpf_task_cid(p));

	use_arena(arena);
	scx_bpf_dsq_insert(p, class, slice_ns, enq_flags);
	if (cid >= 0)
		scx_bpf_kick_cid(cid, SCX_KICK_IDLE);
}

void OP(partition_dispatch, s32 cid, struct task_struct *prev)
{
	use_arena(arena);
	/* A CPU that was kicked for nothing is told of no transition. */
	if (!scx_bpf_dsq_move_to_local(class_of_cid(cid)) && !prev && cid >= 0 && cid < CIDS_MAX)
		idle[cid] = true;
}

void OP(partition_update_idle, s32 cid, bool is_idle)
{
	use_arena(arena);
	if (cid >= 0 && cid < CIDS_MAX)
		idle[cid] = is_idle;
}

s32 OP_SLEEPABLE(partition_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	void *new = bpf_task_storage_get(&allowed, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	use_arena(arena);
	return new ? 0 : -ENOMEM;
}

void OP(partition_set_cmask, struct task_struct *p, const struct scx_cmask *cmask)
{
	u32 *classes = bpf_task_storage_get(&allowed, p, NULL, 0), found = 0;
	s32 cid = 0;

	use_arena(arena);
	for_each_number(cid, 0, cids)
		if (cmask_has(cmask, cid))
			found |= 1 << class_of_cid(cid);
	if (classes)
		*classes = found;
}

s32 OP_SLEEPABLE(partition_init)
{
	struct scx_cid_topo topo;

	use_arena(arena);
	cids = min(scx_bpf_nr_cids(), (u32)CIDS_MAX);
	border = max(cids * urgent_percent / 100, 1U);
	if (border < cids) {
		scx_bpf_cid_topo(border, &topo, sizeof(topo));
		/* No core is divided, unless there is but one. */
		if (topo.core_cid > 0)
			border = topo.core_cid;
	}
	return scx_bpf_create_dsq(URGENT, -1) ?: scx_bpf_create_dsq(OTHERS, -1);
}

CID_POLICY(partition_ops,
	   .select_cid	= (void *)partition_select_cid,
	   .enqueue	= (void *)partition_enqueue,
	   .dispatch	= (void *)partition_dispatch,
	   .update_idle	= (void *)partition_update_idle,
	   .init_task	= (void *)partition_init_task,
	   .set_cmask	= (void *)partition_set_cmask,
	   .init	= (void *)partition_init,
	   .name	= "partition");
