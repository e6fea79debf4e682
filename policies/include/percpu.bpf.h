/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One run queue a CPU, as the schedulers of Linux 2.6 have it: 140 lists, the
 * best list first, each list in the order of arrival.
 *
 * A queue with priorities, with the CPU's number as its id, holds all lists of
 * a CPU: a key has the list in its high bits and the place within the list
 * below. Places at the tail grow and places at the head shrink, both with one
 * counter, so that no two tasks of a CPU ever have the same; they are two
 * apart, so that a child fits in before its parent. In 2.6 the
 * running task stays in its list; here it is in no queue, but keeps its key,
 * so that it can be compared with those that wait and goes back to its place
 * when it is preempted.
 *
 * A policy includes this file behind the definitions of
 *
 *	struct task_ctx	with u64 key, ready_ns; s32 home, last_cpu; bool rescued
 *	struct cpu_ctx	with u64 places; struct guard guard; u32 prio; bool offline
 *
 * where last_cpu is the CPU that the task ran on last, -1 before the first time,
 * and of the counters COUNT_PICKED_ELSEWHERE and COUNT_GUARDED.
 */
#ifndef RUNSLICE_PERCPU_BPF_H
#define RUNSLICE_PERCPU_BPF_H

#include <guard.bpf.h>
#include <hotplug.bpf.h>
#include <scx.h>

#define NR_CPUS_MAX 1024

/* CPU numbers are below this; set in `init`. */
static u32 nr_cpus;

/* As many, if the ticks of busy CPUs call idle ones; 0 if those look by themselves. */
static u32 nr_calling_cpus;

TASK_STORAGE(task_ctxs, struct task_ctx);

ARRAY(cpu_ctxs, struct cpu_ctx, NR_CPUS_MAX);

static __always_inline struct task_ctx *task_ctx(struct task_struct *p)
{
	return bpf_task_storage_get(&task_ctxs, p, NULL, 0);
}

static __always_inline struct cpu_ctx *cpu_ctx(s32 cpu)
{
	u32 index = cpu;

	return bpf_map_lookup_elem(&cpu_ctxs, &index);
}

/* cpu_ctx.prio when none of the policy's tasks is on the CPU. Worse than any priority. */
#define NO_PRIO 255

#define PLACE_BITS 44
#define PLACE_MIDDLE (1ULL << (PLACE_BITS - 1))

static __always_inline struct guard *guard_of(s32 cpu)
{
	struct cpu_ctx *cctx = cpu_ctx(cpu);

	return cctx ? &cctx->guard : NULL;
}

/* Keys compare as the kernel compares them: as a signed difference. */
static __always_inline bool is_before(u64 key, u64 other)
{
	return (s64)(key - other) < 0;
}

static __always_inline u64 list_of(u64 key)
{
	return key >> PLACE_BITS;
}

/* Gives the task the last place of `list` on `cpu`. */
static __always_inline void to_tail(struct task_ctx *tctx, u64 list, struct cpu_ctx *cctx, s32 cpu)
{
	u64 place = __sync_fetch_and_add(&cctx->places, 1) + 1;

	tctx->key = (list << PLACE_BITS) + PLACE_MIDDLE + 2 * place;
	tctx->home = cpu;
}

/* Gives the task the first place of `list` on `cpu`, before the running task too. */
static __always_inline void to_head(struct task_ctx *tctx, u64 list, struct cpu_ctx *cctx, s32 cpu)
{
	u64 place = __sync_fetch_and_add(&cctx->places, 1) + 1;

	tctx->key = (list << PLACE_BITS) + PLACE_MIDDLE - 2 * place;
	tctx->home = cpu;
}

static __always_inline bool may_run_on(struct task_struct *p, s32 cpu)
{
	return !p->migration_disabled && bpf_cpumask_test_cpu(cpu, p->cpus_ptr);
}

/*
 * Whether a task that came back to the CPU without our say may lose it at once.
 * The kernel puts one that must not migrate back without asking, however often
 * it loses the CPU: it would never run on, nor would anybody behind it. A task
 * that forks is such a one while `init_task` works for it. Fast kernel threads
 * are put back by the policy itself.
 *
 * Source: do_enqueue_task() in kernel/sched/ext.c, 6.18; seen on 7.2, where RCU
 * stalled after 376,000 turns of one task.
 */
static __always_inline bool may_ask_again(struct task_struct *p)
{
	return !p->migration_disabled && !is_fast(p);
}

/* The first key in the queue of `cpu` of a task that may run there; none if there is none. */
static bool first_key(s32 cpu, u64 *key)
{
	struct task_struct *p;
	bool found = false;

	for_each_queued(it, p, cpu, 0) {
		if (bpf_cpumask_test_cpu(cpu, p->cpus_ptr)) {
			*key = p->scx.dsq_vtime;
			found = true;
			break;
		}
	}
	return found;
}

/* Whether a task that may run on `cpu` waits in its queue with a key before `key`. */
static __always_inline bool waits_before(s32 cpu, u64 key)
{
	u64 first = 0;

	return first_key(cpu, &first) && is_before(first, key);
}

/*
 * Gives the kernel what waits at CPUs that no longer serve their queues. Before
 * it calls cpu_offline, a kernel that takes a CPU away stops asking the policy
 * there and then waits for all readers of RCU: one that was preempted there and
 * may run nowhere else would never come to its end, and after 21 s RCU ejects
 * the policy. Not static, so that a verifier follows it once.
 *
 * Source: sched_cpu_deactivate() in kernel/sched/core.c and scx_rq_online() in
 * kernel/sched/ext.c, 6.18; seen on 6.18.
 */
__noinline bool relieve_silent_cpus(s32 this_cpu)
{
	bool relieved = false;
	int i;

	for_each_number(i, 0, nr_cpus) {
		struct cpu_ctx *cctx = cpu_ctx(i);

		if (!cctx || i == this_cpu || !is_silent(&cctx->guard) ||
		    scx_bpf_dsq_nr_queued(i) <= 0)
			continue;
		hand_over_all(i);
		kick(i, 0);
		relieved = true;
	}
	return relieved;
}

/*
 * The guard: if a look is due, runs the task with the worst key of those that
 * have waited longer than guard_ms. It keeps its priority, but nobody preempts
 * it as long as `rescued` stands, which `stopping` clears.
 */
static bool rescue(s32 cpu)
{
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	u64 now = scx_bpf_now();
	struct task_struct *p;
	bool rescued = false;

	if (!cctx || !guard_looks(&cctx->guard))
		return false;
	relieve_silent_cpus(cpu);
	for_each_queued(it, p, cpu, SCX_DSQ_ITER_REV) {
		struct task_ctx *tctx = task_ctx(p);

		if (!tctx || !is_starved(now - tctx->ready_ns) || !may_run_on(p, cpu))
			continue;
		scx_bpf_dsq_move_set_slice(&it, GUARD_TURN_NS);
		tctx->rescued = true;
		rescued = scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL, 0);
		if (rescued)
			break;
		tctx->rescued = false;
	}
	guard_looked(&cctx->guard, rescued);
	if (rescued)
		count(COUNT_GUARDED);
	return rescued;
}

/*
 * Tells an idle CPU that a task waits in the queue of `cpu`. 2.6 lets every
 * idle CPU look each millisecond; here the busy CPU's tick does it, so that a
 * machine without waiting tasks stays asleep (but see `idle_ns`). Looks at a
 * few tasks, because the first may be bound to this CPU.
 */
#define WAITING_EXAMINED 8

static void call_idle_cpu(s32 cpu)
{
	struct task_struct *p;
	u32 examined = 0;
	s32 idle;

	for_each_queued(it, p, cpu, 0) {
		if (++examined > WAITING_EXAMINED)
			break;
		if (p->nr_cpus_allowed == 1 || p->migration_disabled)
			continue;
		idle = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
		if (idle >= 0)
			kick(idle, SCX_KICK_IDLE);
		break;
	}
}

/* In `tick`, at its end: sends the CPU to `dispatch` where something is due there. */
static __always_inline void look_around(struct task_struct *p, struct cpu_ctx *cctx, s32 cpu,
					bool balance_is_due)
{
	if (guard_is_due(&cctx->guard) || balance_is_due)
		set_slice(p, 0);
	if (nr_calling_cpus > 1)
		call_idle_cpu(cpu);
}

/* In `running`, when a turn begins. */
static __always_inline void note_cpu(struct task_ctx *tctx, s32 cpu)
{
	if (tctx->last_cpu >= 0 && tctx->last_cpu != cpu)
		count(COUNT_PICKED_ELSEWHERE);
	tctx->last_cpu = cpu;
}

/* In `dispatch`: the context of the task that had the CPU, if it could go on. */
static __always_inline struct task_ctx *able_to_go_on(struct task_struct *prev)
{
	return prev && (prev->scx.flags & SCX_TASK_QUEUED) ? task_ctx(prev) : NULL;
}

/* The queues of all CPUs exist from the start; others take over those of an absent one. */
static s32 create_queues(void)
{
	u32 cpu;
	s32 error;

	nr_cpus = min(scx_bpf_nr_cpu_ids(), NR_CPUS_MAX);
	nr_calling_cpus = nr_cpus;
	for (cpu = 0; cpu < nr_cpus && cpu < NR_CPUS_MAX; cpu++) {
		struct cpu_ctx *cctx = cpu_ctx(cpu);

		if (cctx)
			cctx->prio = NO_PRIO;
		error = scx_bpf_create_dsq(cpu, -1);
		if (error)
			return error;
	}
	return 0;
}

/*
 * A CPU comes; in `cpu_online`. Nothing of ours runs there yet.
 */
static void return_cpu(s32 cpu)
{
	struct cpu_ctx *cctx = cpu_ctx(cpu);

	set_leaving(cpu, false);
	if (!cctx)
		return;
	cctx->prio = NO_PRIO;
	cctx->offline = false;
}

/*
 * A CPU goes; in `cpu_offline`. The kernel gets all that waits in its queue,
 * where nobody would dispatch any more what was pulled there from other CPUs,
 * and those of the CPU's tasks that were pulled elsewhere.
 */
static void leave_cpu(s32 cpu)
{
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	int i;

	set_leaving(cpu, true);
	if (cctx)
		cctx->offline = true;
	hand_over_all(cpu);
	for_each_number(i, 0, nr_cpus)
		hand_over(i, cpu);
}

#endif /* RUNSLICE_PERCPU_BPF_H */
