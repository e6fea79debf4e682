/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Multi-level feedback queue: short bursts rise, long ones sink.
 *
 * Twenty queues, 0 the best. A task that uses up its quantum goes one queue
 * down, where the quantum is longer; a task that blocks before that wakes one
 * queue up. A CPU runs the head of its best queue, and a task that wakes in a
 * better queue preempts. Nothing else is known of a task: no sleep average, no
 * nice level, no second chance for the starved.
 *
 * Source: Torrey, Coleman and Miller, "A comparison of interactivity in the
 * Linux 2.6 scheduler and an MLFQ scheduler", Software: Practice and
 * Experience 37 (2007), 347-364.
 * Differs from the source: a quantum ends at a tick, so where the tick is
 * longer than 1 ms a task overruns, and the overrun is taken off its next
 * quantum; a woken or new task takes an idle CPU instead of waiting for its
 * previous one; a CPU without work takes a task from the next CPU that has
 * one, best queue first, and there is no other balancing yet; what the paper
 * leaves open is decided at the place where it matters and marked "Decision".
 *
 * The kernel ends a policy under which a task waits too long (30 s), which
 * the source's rules allow. The guard against that, guard_ms, is off as in the
 * source; on a kernel set it to a third of the watchdog's timeout. The same
 * holds for kthreads_fast: per-CPU kernel threads behind hogs stall a kernel.
 */
#include <hotplug.bpf.h>
#include <knobs.bpf.h>
#include <report.bpf.h>

BPF_LICENSE();

/* ---- Tunables ---- */

#define NR_QUEUES_MAX 32

KNOB(u32, queues, 20, "count", "number of queues", 1, 32);
KNOB(u64, base_ns, 10000000, "ns", "quantum of the best queue", 100000, 1000000000);
KNOB(u64, step_ns, 10000000, "ns", "how much longer the quantum is one queue down", 0, 1000000000);
KNOB(u32, factor_percent, 0, "percent",
     "if not 0, each quantum is this share of the one above, and step_ns is unused", 0, 1000);
KNOB(u32, up, 1, "levels", "how far a task rises that blocked within its quantum", 0, 31);
KNOB(u32, down, 1, "levels", "how far a task sinks that used its quantum up", 0, 31);
KNOB(bool, cumulative, 0, "bool",
     "a quantum limits all work since the last wakeup, not only the work in its queue", 0, 1);
KNOB(bool, yield_expires, 0, "bool",
     "a task that yields sinks as if its quantum were used up", 0, 1);
KNOB(bool, exit_returns, 0, "bool",
     "a task that ends in its first quantum leaves the rest to its parent", 0, 1);
KNOB(u64, grain_ns, 1000000, "ns",
     "smallest unit in which fork divides a quantum: the source's tick", 1, 10000000);
KNOB(u32, guard_ms, 0, "ms",
     "if not 0, a task that waited so long runs next, one queue up", 0, 30000);
KNOB(bool, kthreads_fast, 0, "bool",
     "per-CPU kernel threads run at once and outside the queues", 0, 1);

/* ---- State ---- */

/* The source's figures number the queues 100 to 119, behind the real-time priorities. */
#define PRIO_OF_QUEUE_0 100

/* No quantum is longer, whatever the knobs say. */
#define QUANTUM_NS_MAX (1000 * NSEC_PER_SEC)

/* A parent that gets back time holds at most this much (2.6.3: the longest time slice). */
#define RETURN_NS_MAX (200 * NSEC_PER_MSEC)

/*
 * One queue with priorities for each CPU, with the CPU's number as its id,
 * holds all levels: the key has the level in its high bits and the place
 * within the level below. Tail places grow with the clock and head places
 * shrink with it, so neither needs a counter, and a task that the kernel takes
 * out and puts back (nice, affinity) keeps its place by keeping its key. Keys
 * stay below 2^63, because the kernel compares them as a signed difference.
 */
#define LEVEL_SHIFT 57
#define MIDDLE (1ULL << (LEVEL_SHIFT - 1))

#define NR_CPUS_MAX 1024
#define NO_LEVEL (~0U)

/* What happened to a task's quantum; decides its level at the next wakeup. */
enum verdict {
	VERDICT_UP,	/* blocked within it */
	VERDICT_STAY,	/* blocked at the very end, and has sunk already */
	VERDICT_DOWN,	/* used it up */
};

/* Where a runnable task goes when it is put into a queue. */
enum place {
	PLACE_TAIL,	/* became ready, sank or yielded */
	PLACE_HEAD,	/* lost the CPU to a better one: runs next in its level */
	PLACE_KEPT,	/* was in the queue, and goes back to where it was */
};

struct task_ctx {
	u64 left_ns;		/* of the quantum */
	u64 over_ns;		/* run beyond the quantum, to be taken off the next */
	u64 burst_ns;		/* used since the last wakeup */
	u64 charged_ns;		/* the task's run time up to which left_ns is true */
	u64 stamp_ns;		/* when that was */
	u64 ready_ns;		/* since when it waits */
	u64 key;		/* in its queue */
	u32 level;		/* 0..queues */
	u32 verdict;		/* enum verdict, valid while it sleeps */
	u32 place;		/* enum place, for the next enqueue */
	bool sank;		/* sank, and has not run since */
	bool yielded;		/* gave the rest of this turn away */
	bool idle_found;	/* select_cpu has found an idle CPU for it */
	bool forked;		/* a child that has not run yet */
	bool runs_next;		/* a child that goes before its parent */
	bool first;		/* in its first quantum */
	bool in_local;		/* lost the CPU to a higher class, back without our say */
};

TASK_STORAGE(task_ctxs, struct task_ctx);

struct cpu_ctx {
	u32 level;		/* of the task on the CPU; NO_LEVEL if none of ours */
	u64 guard_at_ns;	/* next look for starved tasks */
} __attribute__((aligned(64)));

ARRAY(cpu_ctxs, struct cpu_ctx, NR_CPUS_MAX);

/* CPU numbers are below this. */
static u32 nr_cpus;

enum {
	COUNT_SANK,
	COUNT_ROSE,
	COUNT_PREEMPTED,
	COUNT_STOLEN,
	COUNT_GUARDED,
};

COUNTERS("sank", "rose", "preempted", "stolen", "guarded");

static __always_inline struct task_ctx *task_ctx(struct task_struct *p)
{
	return bpf_task_storage_get(&task_ctxs, p, NULL, 0);
}

static __always_inline struct cpu_ctx *cpu_ctx(s32 cpu)
{
	u32 index = cpu;

	return bpf_map_lookup_elem(&cpu_ctxs, &index);
}

/* ---- Quanta and levels ---- */

static __always_inline u32 bottom(void)
{
	return min(queues, NR_QUEUES_MAX) - 1;
}

/* The quantum of a level: 10, 20, ... 200 ms as the source has it. */
static u64 quantum_ns(u32 level)
{
	u64 quantum = base_ns;
	u32 i;

	if (!factor_percent)
		return quantum + level * step_ns;
	/*
	 * The level counts down beside `i`, and the compiler must not join the
	 * two: when a counter that the verifier knows is compared with one that
	 * it does not, 6.18 warns of a bug of the verifier's own.
	 */
	for (i = 0; i < NR_QUEUES_MAX; i++) {
		opaque(level);
		if (!level || quantum >= QUANTUM_NS_MAX)
			break;
		level--;
		quantum = quantum * factor_percent / 100;
	}
	return min(max(quantum, 1ULL), QUANTUM_NS_MAX);
}

/* A fresh start in `level`: on a wakeup, and when a task enters the policy. */
static void begin_quantum(struct task_ctx *tctx, u32 level)
{
	tctx->level = level;
	tctx->left_ns = quantum_ns(level);
	tctx->over_ns = 0;
	tctx->burst_ns = 0;
	tctx->sank = false;
}

/* Rule 3: the level of a woken task follows from its last quantum alone. */
static void wake_up(struct task_ctx *tctx)
{
	u32 level = min(tctx->level, bottom());

	switch (tctx->verdict) {
	case VERDICT_UP:
		if (level)
			count(COUNT_ROSE);
		level -= min(level, up);
		break;
	case VERDICT_DOWN:
		if (level < bottom())
			count(COUNT_SANK);
		level = min(level + down, bottom());
		break;
	}
	begin_quantum(tctx, level);
}

/*
 * Rule 2: the quantum is used up. The next one is shorter by the overrun, but
 * not by more than half. With `cumulative` it is what remains of the new
 * queue's limit; at the bottom a new count begins.
 */
static void sink(struct task_ctx *tctx)
{
	u32 level = min(tctx->level + down, bottom());
	u64 quantum = quantum_ns(level);

	if (level != tctx->level)
		count(COUNT_SANK);
	if (cumulative && quantum > tctx->burst_ns) {
		tctx->left_ns = quantum - tctx->burst_ns;
	} else {
		tctx->left_ns = quantum - min(tctx->over_ns, quantum / 2);
		tctx->burst_ns = 0;
	}
	tctx->over_ns = 0;
	tctx->level = level;
	tctx->place = PLACE_TAIL;
	tctx->sank = true;
	tctx->first = false;
}

/*
 * Takes what the task has run since the last call off its quantum. The task's
 * own run time is what the kernel charges to the slice too, so both end
 * together; the slice itself is no measure, because a preemption sets it to 0.
 */
static void charge(struct task_struct *p, struct task_ctx *tctx)
{
	u64 ran = p->se.sum_exec_runtime - tctx->charged_ns;
	u64 used = min(ran, tctx->left_ns);

	tctx->charged_ns += ran;
	tctx->stamp_ns = scx_bpf_now();
	tctx->left_ns -= used;
	tctx->over_ns += ran - used;
	tctx->burst_ns += ran;
	if (ran)
		tctx->sank = false;
}

/* Charges, and sinks if that was the end of the quantum. */
static void settle(struct task_struct *p, struct task_ctx *tctx)
{
	charge(p, tctx);
	if (tctx->yielded && yield_expires) {
		tctx->yielded = false;
		tctx->left_ns = 0;
		tctx->over_ns = 0;
	}
	if (!tctx->left_ns)
		sink(tctx);
}

/* ---- Queues ---- */

static __always_inline u64 level_of_key(u64 key)
{
	return key >> LEVEL_SHIFT;
}

static u64 key_for(struct task_ctx *tctx)
{
	u64 origin = ((u64)tctx->level << LEVEL_SHIFT) + MIDDLE;

	switch (tctx->place) {
	case PLACE_TAIL:
		return origin + scx_bpf_now();
	case PLACE_HEAD:
		return origin - scx_bpf_now();
	}
	return tctx->key;
}

static __always_inline bool may_run_on(struct task_struct *p, s32 cpu)
{
	return !p->migration_disabled && bpf_cpumask_test_cpu(cpu, p->cpus_ptr);
}

/* The level of the first task in the queue of `cpu` that may run there, else NO_LEVEL. */
static u32 best_waiting(s32 cpu)
{
	struct task_struct *p;
	u32 level = NO_LEVEL;

	for_each_queued(it, p, cpu, 0) {
		if (bpf_cpumask_test_cpu(cpu, p->cpus_ptr)) {
			level = level_of_key(p->scx.dsq_vtime);
			break;
		}
	}
	return level;
}

/*
 * Whether `prev`, which could go on, gives way to the head of its CPU's queue.
 * A task that sank or yielded stands behind its equals; one that was merely
 * interrupted stands before them.
 */
static bool gives_way(struct task_ctx *tctx, s32 cpu)
{
	u32 best = best_waiting(cpu);

	if (tctx->sank || tctx->yielded)
		return best <= tctx->level;
	return best < tctx->level;
}

/* Takes a task from the next CPU that has one to give. */
static void steal(s32 cpu)
{
	u32 i;

	for (i = 1; i < nr_cpus && i < NR_CPUS_MAX; i++) {
		u32 victim = (cpu + i) % nr_cpus;

		if (scx_bpf_dsq_nr_queued(victim) > 0 && scx_bpf_dsq_move_to_local(victim)) {
			count(COUNT_STOLEN);
			return;
		}
	}
}

/*
 * The guard: runs the first task found that has waited longer than guard_ms,
 * one level up, as the source's section on future work proposes after Solaris.
 * Looks again after an eighth of that time, or after one short quantum if it
 * found something, so that neither the starved nor the others starve.
 */
static bool rescue(s32 cpu)
{
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	u64 now = scx_bpf_now();
	u64 guard_ns = guard_ms * NSEC_PER_MSEC;
	struct task_struct *p;
	bool rescued = false;

	if (!cctx || now < cctx->guard_at_ns)
		return false;
	cctx->guard_at_ns = now + guard_ns / 8;
	for_each_queued(it, p, cpu, SCX_DSQ_ITER_REV) {
		struct task_ctx *tctx = task_ctx(p);

		if (!tctx || now - tctx->ready_ns < guard_ns || !may_run_on(p, cpu))
			continue;
		begin_quantum(tctx, tctx->level ? tctx->level - 1 : 0);
		scx_bpf_dsq_move_set_slice(&it, tctx->left_ns);
		rescued = scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL, 0);
		if (rescued)
			break;
	}
	if (rescued) {
		cctx->guard_at_ns = now + base_ns;
		count(COUNT_GUARDED);
	}
	return rescued;
}

/* ---- Callbacks, in the order of a task's life ---- */

/*
 * Rule 7: parent and child share what the parent has left, the child's share
 * rounded up to the grain. The child starts in the best queue, so what it
 * cannot hold there goes back. Called in the parent's context.
 */
static void fork_from(struct task_struct *parent, struct task_ctx *tctx)
{
	struct task_ctx *from = task_ctx(parent);
	u64 grain = grain_ns, ran, left, units, share;

	if (!from)
		return;
	ran = scx_bpf_now() - from->stamp_ns;
	left = from->left_ns - min(from->left_ns, ran);
	units = (left + grain - 1) / grain;
	share = min(min((units + 1) / 2 * grain, left), quantum_ns(0));
	tctx->left_ns = max(share, 1ULL);
	tctx->forked = true;
	tctx->first = true;
	tctx->runs_next = from->level > 0 || share == left;
	from->left_ns -= share;
	/* The kernel's own count runs on, so it loses the same. */
	set_slice(parent, parent->scx.slice - min(parent->scx.slice, share));
}

s32 OP_SLEEPABLE(mlfq_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *tctx;

	tctx = bpf_task_storage_get(&task_ctxs, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!tctx || !report_init(p))
		return -ENOMEM;
	tctx->charged_ns = p->se.sum_exec_runtime;
	begin_quantum(tctx, 0);
	if (args->fork)
		fork_from(bpf_get_current_task_btf(), tctx);
	return 0;
}

/* A task comes in: by fork with its share, else (rule 12) with a new quantum at the top. */
void OP(mlfq_enable, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);

	if (!tctx)
		return;
	/* It may have run in another class meanwhile. */
	tctx->charged_ns = p->se.sum_exec_runtime;
	tctx->place = PLACE_TAIL;
	if (!tctx->forked)
		begin_quantum(tctx, 0);
}

s32 OP(mlfq_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *tctx = task_ctx(p);
	bool is_idle = false;
	s32 cpu;

	/* A hint that the waker sleeps soon would send the task to a CPU that is still busy. */
	cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags & ~SCX_WAKE_SYNC, &is_idle);
	if (tctx)
		tctx->idle_found = is_idle;
	return cpu;
}

void OP(mlfq_runnable, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = task_ctx(p);

	if (!tctx || !(enq_flags & SCX_ENQ_WAKEUP))
		return;
	wake_up(tctx);
	tctx->place = PLACE_TAIL;
	tctx->ready_ns = scx_bpf_now();
}

/*
 * Rules 5 and 6: a task preempts if its queue is strictly better. Rule 7: so
 * does a child whose parent has nothing left, even in the same queue.
 */
static void tell_cpus(struct task_struct *p, struct task_ctx *tctx, s32 cpu)
{
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	bool next = tctx->forked && tctx->runs_next;
	s32 idle;

	if (tctx->idle_found)
		return;
	if (cctx && cctx->level != NO_LEVEL && (tctx->level < cctx->level || next)) {
		count(COUNT_PREEMPTED);
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		return;
	}
	/* It has to wait here, while another CPU may have nothing to do. */
	if (p->nr_cpus_allowed == 1)
		return;
	idle = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (idle >= 0)
		scx_bpf_kick_cpu(idle, SCX_KICK_IDLE);
}

void OP(mlfq_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);

	if (kthreads_fast && (p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, enq_flags | SCX_ENQ_PREEMPT);
		return;
	}
	if (is_leaving(cpu)) {
		insert_leaving(p, SCX_SLICE_DFL, enq_flags);
		return;
	}
	if (!tctx) {
		scx_bpf_error("no context for task %d", (u64)p->pid);
		return;
	}
	/* The kernel may end a slice without asking dispatch: a local queue was not empty. */
	settle(p, tctx);
	/* Decision for rule 7: a child that runs next stands before the others of its queue. */
	if (tctx->forked && tctx->runs_next)
		tctx->place = PLACE_HEAD;
	tctx->key = key_for(tctx);
	scx_bpf_dsq_insert_vtime(p, cpu, tctx->left_ns, tctx->key, enq_flags);
	tell_cpus(p, tctx, cpu);
	tctx->place = PLACE_KEPT;
	tctx->yielded = false;
	tctx->idle_found = false;
	tctx->in_local = false;
}

/* The task is on the CPU: others compare themselves with its level, and tools see it. */
static void show(struct task_struct *p, struct task_ctx *tctx, s32 cpu)
{
	struct cpu_ctx *cctx = cpu_ctx(cpu);

	if (cctx)
		cctx->level = tctx->level;
	report_task(p, PRIO_OF_QUEUE_0 + tctx->level, tctx->level, 0);
}

/* Lets the running task go on for what it has left: a slice that dispatch sets means so. */
static void keep(struct task_struct *prev, struct task_ctx *tctx, s32 cpu)
{
	set_slice(prev, tctx->left_ns);
	tctx->yielded = false;
	tctx->place = PLACE_HEAD;
	/* No other callback tells that it sank: the kernel calls none for a task that stays. */
	show(prev, tctx, cpu);
}

/* Rule 1: the head of the best queue. `prev` is not in a queue yet, but counts as if it were. */
void OP(mlfq_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *tctx = NULL;

	if (guard_ms && rescue(cpu))
		return;
	if (prev && (prev->scx.flags & SCX_TASK_QUEUED))
		tctx = task_ctx(prev);
	if (!tctx) {
		if (!scx_bpf_dsq_move_to_local(cpu))
			steal(cpu);
		return;
	}
	settle(prev, tctx);
	if (!gives_way(tctx, cpu) || !scx_bpf_dsq_move_to_local(cpu))
		keep(prev, tctx, cpu);
}

/* Rule 1 again: a task that returns to the CPU without our say may have been overtaken. */
static void yield_to_better(struct task_ctx *tctx, s32 cpu, bool exiting)
{
	/* An exiting task would not come to enqueue, but straight back. */
	if (tctx->in_local && !exiting && best_waiting(cpu) < tctx->level)
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	tctx->in_local = false;
}

void OP(mlfq_running, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);

	if (!tctx)
		return;
	tctx->stamp_ns = scx_bpf_now();
	tctx->forked = false;
	tctx->place = PLACE_HEAD;
	show(p, tctx, cpu);
	yield_to_better(tctx, cpu, p->flags & PF_EXITING);
}

/* Rule 9. Decision: silent in the source; the task goes behind its equals, and keeps the rest. */
bool OP(mlfq_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *tctx = task_ctx(from);

	if (to || !tctx)
		return false;
	tctx->yielded = true;
	tctx->place = PLACE_TAIL;
	set_slice(from, 0);
	return true;
}

void OP(mlfq_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tctx = task_ctx(p);
	struct cpu_ctx *cctx = cpu_ctx(scx_bpf_task_cpu(p));

	if (cctx)
		cctx->level = NO_LEVEL;
	if (!tctx)
		return;
	charge(p, tctx);
	if (runnable) {
		tctx->ready_ns = scx_bpf_now();
		/* Stays true if the kernel keeps it in the local queue: enqueue clears it. */
		tctx->in_local = true;
	}
}

/* Rule 8, an option: the end of a short child gives its parent back what fork took. */
static void return_quantum(struct task_struct *p, struct task_ctx *tctx)
{
	struct task_struct *parent = p->real_parent;
	struct task_ctx *to = parent ? task_ctx(parent) : NULL;

	if (to && to->left_ns < RETURN_NS_MAX)
		to->left_ns += min(tctx->left_ns, RETURN_NS_MAX - to->left_ns);
}

void OP(mlfq_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tctx = task_ctx(p);

	/* Without the flag it is a change of nice level, affinity or group: it did not block. */
	if (!tctx || !(deq_flags & SCX_DEQ_SLEEP))
		return;
	if (exit_returns && tctx->first && (p->flags & PF_EXITING))
		return_quantum(p, tctx);
	tctx->first = false;
	tctx->yielded = false;
	tctx->in_local = false;
	/* Decision for rule 4: blocking exactly at the end counts as used up, and only once. */
	if (!tctx->left_ns)
		tctx->verdict = VERDICT_DOWN;
	else
		tctx->verdict = tctx->sank ? VERDICT_STAY : VERDICT_UP;
}

/* ---- Machine, load and unload ---- */

/* The queues of all CPUs exist from the start; those of an absent one are robbed by the others. */
void OP_SLEEPABLE(mlfq_cpu_online, s32 cpu)
{
	struct cpu_ctx *cctx = cpu_ctx(cpu);

	if (cctx)
		cctx->level = NO_LEVEL;
	set_leaving(cpu, false);
}

void OP(mlfq_cpu_offline, s32 cpu)
{
	set_leaving(cpu, true);
	hand_over(cpu, cpu);
}

s32 OP_SLEEPABLE(mlfq_init)
{
	u32 cpu;
	s32 error;

	nr_cpus = min(scx_bpf_nr_cpu_ids(), NR_CPUS_MAX);
	for (cpu = 0; cpu < nr_cpus && cpu < NR_CPUS_MAX; cpu++) {
		struct cpu_ctx *cctx = cpu_ctx(cpu);

		if (cctx)
			cctx->level = NO_LEVEL;
		error = scx_bpf_create_dsq(cpu, -1);
		if (error)
			return error;
	}
	return 0;
}

void OP(mlfq_exit, struct scx_exit_info *info)
{
	report_exit(info);
}

POLICY(mlfq_ops,
       .init_task	= (void *)mlfq_init_task,
       .enable		= (void *)mlfq_enable,
       .select_cpu	= (void *)mlfq_select_cpu,
       .runnable	= (void *)mlfq_runnable,
       .enqueue		= (void *)mlfq_enqueue,
       .dispatch	= (void *)mlfq_dispatch,
       .running		= (void *)mlfq_running,
       .yield		= (void *)mlfq_yield,
       .stopping	= (void *)mlfq_stopping,
       .quiescent	= (void *)mlfq_quiescent,
       .cpu_online	= (void *)mlfq_cpu_online,
       .cpu_offline	= (void *)mlfq_cpu_offline,
       .init		= (void *)mlfq_init,
       .exit		= (void *)mlfq_exit,
       .name		= "mlfq");
