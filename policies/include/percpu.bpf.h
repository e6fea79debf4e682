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
 * A policy includes this file at its top, makes `struct queued q` the first member
 * of its struct task_ctx and `struct cpu_queue q` one of its struct cpu_ctx, and
 * then says CONTEXTS, which makes the maps of both and what finds an entry. Its
 * counters are those of this file and, behind them, its own.
 */
#ifndef RUNSLICE_PERCPU_BPF_H
#define RUNSLICE_PERCPU_BPF_H

#include <guard.bpf.h>
#include <hotplug.bpf.h>
#include <report.bpf.h>
#include <scx.h>

/* ---- State ---- */

#define NR_CPUS_MAX 1024

/* CPU numbers are below this; set in `init`. */
static u32 nr_cpus;

/* CPUs that are online. */
static u32 nr_online;

/* As many as nr_cpus, if the ticks of busy CPUs call idle ones; 0 if those look by themselves. */
static u32 nr_calling_cpus;

/* What its queue has to know of a task. */
struct queued {
	u64 key;		/* its place: list, and place in the list */
	u64 ready_ns;		/* since when it waits */
	u64 left_cpu_ns;	/* when it last ran or woke */
	u64 charged_ns;		/* the task's run time that its slice has paid for */
	u64 stamp_ns;		/* when that was, of a task that runs */
	s32 home;		/* the CPU that `key` belongs to */
	s32 last_cpu;		/* where it ran last; -1 before the first time */
	u32 prio;		/* its list within an array: priority, stair or level */
	bool asleep;		/* or has not been runnable yet */
	bool requeue;		/* takes a new place when it is enqueued */
	bool sync;		/* woken by somebody who is about to sleep */
	bool changing;		/* off the CPU for a change of nice level or the like */
	bool rescued;		/* runs because the guard says so */
	bool in_local;		/* may come to the CPU without our say */
};

/* The queue of a CPU, and who runs there. */
struct cpu_queue {
	u64 places;		/* given so far */
	u64 array;		/* number of the active array; 0 where there is only one */
	u64 busy_at_ns;		/* next look for work elsewhere */
	struct guard guard;
	s32 cpu;
	u32 prio;		/* of the running task; NO_PRIO if none of ours */
	bool offline;
	u32 chosen;		/* stair of the task that gets the CPU next; 0: not known */
	bool unseen;		/* somebody came since the last choice, and none of ours ran */
};

/* The maps of a policy's struct task_ctx and struct cpu_ctx, and their entries. */
#define CONTEXTS								\
	TASK_STORAGE(task_ctxs, struct task_ctx);				\
	ARRAY(cpu_ctxs, struct cpu_ctx, NR_CPUS_MAX);				\
										\
	static __always_inline struct task_ctx *task_ctx(struct task_struct *p)	\
	{									\
		return bpf_task_storage_get(&task_ctxs, p, NULL, 0);		\
	}									\
	static __always_inline struct task_ctx *new_task_ctx(struct task_struct *p)	\
	{									\
		struct task_ctx *tctx;						\
										\
		tctx = bpf_task_storage_get(&task_ctxs, p, NULL,		\
					    BPF_LOCAL_STORAGE_GET_F_CREATE);	\
		if (tctx)							\
			tctx->q.last_cpu = -1;					\
		return tctx && report_init(p) ? tctx : NULL;			\
	}									\
	static __always_inline struct cpu_ctx *cpu_ctx(s32 cpu)			\
	{									\
		u32 index = cpu;						\
										\
		return bpf_map_lookup_elem(&cpu_ctxs, &index);			\
	}									\
	static __always_inline struct queued *queued(struct task_struct *p)	\
	{									\
		struct task_ctx *tctx = task_ctx(p);				\
										\
		return tctx ? &tctx->q : NULL;					\
	}									\
	static __always_inline struct cpu_queue *cpu_queue(s32 cpu)		\
	{									\
		struct cpu_ctx *cctx = cpu_ctx(cpu);				\
										\
		return cctx ? &cctx->q : NULL;					\
	}									\
	_Static_assert(!__builtin_offsetof(struct task_ctx, q), "`q` comes first")

static __always_inline struct queued *queued(struct task_struct *p);
static __always_inline struct cpu_queue *cpu_queue(s32 cpu);

static __always_inline struct guard *guard_of(s32 cpu)
{
	struct cpu_queue *cq = cpu_queue(cpu);

	return cq ? &cq->guard : NULL;
}

enum {
	COUNT_SCHEDULE,
	COUNT_PICKED_ELSEWHERE,
	COUNT_LB_IDLE,		/* an idle CPU looks for work elsewhere */
	COUNT_LB_BUSY,		/* a busy one does */
	COUNT_LB_NOT_FOUND,
	COUNT_PULLED,
	COUNT_PULLED_FROM,	/* of the CPU that loses */
	COUNT_GUARDED,
	NR_PERCPU_COUNTERS,
};

#define PERCPU_COUNTERS								\
	"schedule", "picked_elsewhere", "lb_idle", "lb_busy", "lb_not_found",	\
	"pulled", "pulled_from", "guarded"

/* ---- Keys ---- */

/* cpu_queue.prio when none of the policy's tasks is on the CPU. Worse than any priority. */
#define NO_PRIO 255

#define PLACE_BITS 44
#define PLACE_MIDDLE (1ULL << (PLACE_BITS - 1))

/* Of a list the low bits say where it is in its array, and the others which array. */
#define ARRAY_SHIFT 8
#define ARRAY_MASK ((1 << (64 - PLACE_BITS - ARRAY_SHIFT)) - 1)

/* Keys compare as the kernel compares them: as a signed difference. */
static __always_inline bool is_before(u64 key, u64 other)
{
	return (s64)(key - other) < 0;
}

static __always_inline u64 list_of(u64 key)
{
	return key >> PLACE_BITS;
}

/* The list `prio` of the active array, and of the one behind it. */
static __always_inline u64 active_list(struct cpu_queue *cq, u32 prio)
{
	return (cq->array & ARRAY_MASK) << ARRAY_SHIFT | prio;
}

static __always_inline u64 expired_list(struct cpu_queue *cq, u32 prio)
{
	return ((cq->array + 1) & ARRAY_MASK) << ARRAY_SHIFT | prio;
}

static __always_inline bool is_active(struct cpu_queue *cq, u64 key)
{
	return list_of(key) >> ARRAY_SHIFT == (cq->array & ARRAY_MASK);
}

/* Gives the task the last place of `list`. */
static __always_inline void to_tail_of(struct queued *q, u64 list, struct cpu_queue *cq)
{
	u64 place = __sync_fetch_and_add(&cq->places, 1) + 1;

	q->key = (list << PLACE_BITS) + PLACE_MIDDLE + 2 * place;
	q->home = cq->cpu;
}

/* Gives the task the last place of its active list. */
static __always_inline void to_tail(struct queued *q, struct cpu_queue *cq)
{
	to_tail_of(q, active_list(cq, q->prio), cq);
}

/* Gives the task the first place of `list` of the active array, before the running task too. */
static __always_inline void to_head_of(struct queued *q, u32 prio, struct cpu_queue *cq)
{
	u64 place = __sync_fetch_and_add(&cq->places, 1) + 1;

	q->key = (active_list(cq, prio) << PLACE_BITS) + PLACE_MIDDLE - 2 * place;
	q->home = cq->cpu;
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

/*
 * In `enqueue`, before all else: whether the task is to wait in a queue. If not, it
 * runs at once, or has no context, which ends the policy.
 */
static __always_inline bool comes_to_queue(struct task_struct *p, void *tctx, u64 enq_flags)
{
	if (runs_at_once(p, enq_flags))
		return false;
	if (!tctx)
		scx_bpf_error("no context for task %d", (u64)p->pid);
	return tctx;
}

/* In `enqueue`: whether the task goes to the kernel, because its CPU leaves. */
static __always_inline bool leaves_with_cpu(struct task_struct *p, s32 cpu, u64 enq_flags)
{
	if (!is_leaving(cpu))
		return false;
	insert_leaving(p, SCX_SLICE_DFL, enq_flags);
	return true;
}

/*
 * Tells an idle CPU that a task waits in the queue of `cpu`. 2.6 lets every
 * idle CPU look each millisecond; here the busy CPU's tick does it, so that a
 * machine without waiting tasks stays asleep (but see `idle_ns`). A CPU that a
 * higher class has gives us no tick: who comes to it calls, and who waits there
 * when it is taken is called for. Looks at a few tasks, because the first may be
 * bound to this CPU.
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

/* Better than this are real-time and deadline tasks (MAX_RT_PRIO, 6.18). */
#define RT_PRIO_END 100

/* Whether a higher class has `cpu`, where none of ours runs. Kernels before 6.18 do not tell. */
static bool is_outranked(s32 cpu)
{
	struct task_struct *curr = NULL;

	if (exists(scx_bpf_cpu_curr))
		curr = scx_bpf_cpu_curr(cpu);
	return curr && curr->prio < RT_PRIO_END;
}

/*
 * A kernel chooses among our tasks before it looks whether a higher class wants
 * the CPU: the chosen one then waits in the CPU's own queue, and comes to run
 * without another choice. Whoever arrives meanwhile finds nobody to compare with,
 * so the chosen one has to look when it begins.
 *
 * Source: put_prev_task_balance() in kernel/sched/core.c and balance_one() in
 * kernel/sched/ext.c, 6.18; seen in a guest, where a mouse pointer waited 10 ms
 * behind a hog each time when the mouse's interrupt thread displaced a task whose
 * slice had just ended.
 */
static __always_inline void note_arrival(struct cpu_queue *cq, bool comes)
{
	if (!comes || cq->prio != NO_PRIO)
		return;
	cq->unseen = true;
	if (nr_calling_cpus > 1 && is_outranked(cq->cpu))
		call_idle_cpu(cq->cpu);
}

/* In `running`: whether somebody came behind the choice that brought the task here. */
static __always_inline bool is_overtaken(struct cpu_queue *cq, struct queued *q)
{
	bool unseen = cq->unseen;

	cq->unseen = false;
	cq->chosen = 0;
	return unseen && !q->rescued;
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
		struct cpu_queue *cq = cpu_queue(i);

		if (!cq || i == this_cpu || !is_silent(&cq->guard) ||
		    scx_bpf_dsq_nr_queued(i) <= 0)
			continue;
		hand_over_all(i);
		kick(i, 0);
		relieved = true;
	}
	return relieved;
}

/*
 * The guard's look: runs the task with the worst key of those that
 * have waited longer than guard_ms. It keeps its priority, but nobody preempts
 * it as long as `rescued` stands, which `stopping` clears.
 */
static bool rescue(s32 cpu, u64 now)
{
	struct cpu_queue *cq = cpu_queue(cpu);
	struct task_struct *p;
	bool rescued = false;

	if (!cq)
		return false;
	relieve_silent_cpus(cpu);
	for_each_queued(it, p, cpu, SCX_DSQ_ITER_REV) {
		struct queued *q = queued(p);

		if (!q || !is_starved(now - q->ready_ns) || !may_run_on(p, cpu))
			continue;
		scx_bpf_dsq_move_set_slice(&it, GUARD_TURN_NS);
		q->rescued = true;
		rescued = scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL, 0);
		if (rescued)
			break;
		q->rescued = false;
	}
	guard_looked(&cq->guard, rescued);
	if (rescued)
		count(COUNT_GUARDED);
	return rescued;
}

/*
 * In `dispatch`, before all else: everybody who waits is seen by the choice that
 * follows. Whether it is made already, by the guard.
 */
static __always_inline bool begin_choice(struct cpu_queue *cq)
{
	u64 now = scx_bpf_now();

	cq->unseen = false;
	cq->chosen = 0;
	return guard_looks(&cq->guard, now) && rescue(cq->cpu, now);
}

/*
 * When the choice began; behind begin_choice(). A callback asks the kernel for the
 * time once, because each call costs as much as a tenth of the callback.
 */
static __always_inline u64 choice_ns(struct cpu_queue *cq)
{
	return cq->guard.seen_ns;
}

/* In `tick`, at its end: sends the CPU to `dispatch` where something is due there. */
static __always_inline void look_around(struct task_struct *p, struct cpu_queue *cq, u64 now,
					bool balance_is_due)
{
	if (guard_is_due(&cq->guard, now) || balance_is_due)
		set_slice(p, 0);
	if (nr_calling_cpus > 1)
		call_idle_cpu(cq->cpu);
}

/* In `stopping`, before all else: none of the policy's tasks is on the CPU. */
static __always_inline void free_cpu(s32 cpu)
{
	struct cpu_queue *cq = cpu_queue(cpu);

	if (cq)
		cq->prio = NO_PRIO;
}

/* In `running`, when a turn begins. */
static __always_inline void note_cpu(struct queued *q, s32 cpu)
{
	if (q->last_cpu >= 0 && q->last_cpu != cpu)
		count(COUNT_PICKED_ELSEWHERE);
	q->last_cpu = cpu;
}

/* In `dispatch`: whether the task that had the CPU could go on. */
static __always_inline bool could_go_on(struct task_struct *prev)
{
	return prev && (prev->scx.flags & SCX_TASK_QUEUED);
}

/* ---- CPUs that come and go, load and unload ---- */

/* The queues of all CPUs exist from the start; others take over those of an absent one. */
static s32 create_queues(void)
{
	const struct cpumask *online = scx_bpf_get_online_cpumask();
	u32 cpu;
	s32 error;

	nr_online = bpf_cpumask_weight(online);
	scx_bpf_put_cpumask(online);
	nr_cpus = min(scx_bpf_nr_cpu_ids(), NR_CPUS_MAX);
	nr_calling_cpus = nr_cpus;
	for (cpu = 0; cpu < nr_cpus && cpu < NR_CPUS_MAX; cpu++) {
		struct cpu_queue *cq = cpu_queue(cpu);

		if (cq) {
			cq->cpu = cpu;
			cq->prio = NO_PRIO;
		}
		error = scx_bpf_create_dsq(cpu, -1);
		if (error)
			return error;
	}
	return 0;
}

/* A CPU comes. Nothing of ours runs there yet. */
void OP_SLEEPABLE(percpu_cpu_online, s32 cpu)
{
	struct cpu_queue *cq = cpu_queue(cpu);

	set_leaving(cpu, false);
	nr_online++;
	if (!cq)
		return;
	cq->prio = NO_PRIO;
	cq->offline = false;
}

/*
 * A CPU goes. The kernel gets all that waits in its queue, where nobody would
 * dispatch any more what was pulled there from other CPUs, and those of the
 * CPU's tasks that were pulled elsewhere.
 */
void OP(percpu_cpu_offline, s32 cpu)
{
	struct cpu_queue *cq = cpu_queue(cpu);
	int i;

	set_leaving(cpu, true);
	nr_online--;
	if (cq)
		cq->offline = true;
	hand_over_all(cpu);
	for_each_number(i, 0, nr_cpus)
		hand_over(i, cpu);
}

/* A higher class takes a CPU from one of our tasks: others that wait there need another. */
void OP(percpu_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	if (nr_calling_cpus > 1)
		call_idle_cpu(cpu);
}

void OP(percpu_exit, struct scx_exit_info *info)
{
	report_exit(info);
}

/*
 * What every policy with such queues has in its table, but for `init`. An exiting
 * task is one like any other, and waits in its list.
 */
#define PERCPU_OPS								\
	.cpu_online	= (void *)percpu_cpu_online,				\
	.cpu_offline	= (void *)percpu_cpu_offline,				\
	.cpu_release	= (void *)percpu_cpu_release,				\
	.exit		= (void *)percpu_exit,					\
	.flags		= SCX_OPS_ENQ_EXITING

#endif /* RUNSLICE_PERCPU_BPF_H */
