/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Multi-level feedback queue: short bursts rise, long ones sink.
 *
 * Twenty queues, 0 the best. A task that uses up its quantum goes one queue
 * down, where the quantum is longer; a task that blocks before that wakes one
 * queue up. A CPU runs the head of its best queue, and a task that wakes in a
 * better queue preempts. Nothing else is known of a task: no sleep average, no
 * nice level, no second chance for the starved, unless a tunable asks for it.
 *
 * Source: Torrey, Coleman and Miller, "A comparison of interactivity in the
 * Linux 2.6 scheduler and an MLFQ scheduler", Software: Practice and
 * Experience 37 (2007), 347-364; its section on future work for the tunables.
 * Between CPUs the balancer of Linux 2.6.3, as there.
 * Differs from the source: a quantum ends at a tick, so where the tick is
 * longer than 1 ms a task overruns, and the overrun is taken off its next
 * quantum; idle CPUs are called by the ticks of busy ones instead of looking
 * themselves (idle_ns=1000000: they look); wakeups through sockets are
 * synchronous today, too (sync_wakeups=0: none are); what the paper leaves open is
 * decided at the place where it matters and marked "Decision".
 *
 * A kernel ends a policy under which a task waits for 30 s, which the source's
 * rules allow. guard_ms and kthreads_fast (guard.bpf.h), which keep it alive, are
 * off in a simulation, as in the source, and on on a kernel.
 */
#include <balance.bpf.h>
#include <life.bpf.h>
#include <sync.bpf.h>

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
KNOB(bool, nice_ranges, 0, "bool",
     "a nice level above 0 bars the better queues, one below 0 the worse ones", 0, 1);
KNOB(bool, yield_expires, 0, "bool",
     "a task that yields sinks as if its quantum were used up", 0, 1);
KNOB(bool, exit_returns, 0, "bool",
     "a task that ends in its first quantum leaves the rest to its parent", 0, 1);
KNOB(u64, grain_ns, 1000000, "ns",
     "smallest unit in which fork divides a quantum: the source's tick", 1, 10000000);

/* ---- State ---- */

/* The source's figures number the queues 100 to 119, behind the real-time priorities. */
#define PRIO_OF_QUEUE_0 100

/* No quantum is longer, whatever the knobs say. */
#define QUANTUM_NS_MAX (1000 * NSEC_PER_SEC)

/* A parent that gets back time holds at most this much (2.6.3: the longest time slice). */
#define RETURN_NS_MAX (200 * NSEC_PER_MSEC)

/* What happened to a task's quantum; decides its level at the next wakeup. */
enum verdict {
	VERDICT_UP,	/* blocked within it */
	VERDICT_STAY,	/* blocked at the very end, and has sunk already */
	VERDICT_DOWN,	/* used it up */
};

struct task_ctx {
	struct queued q;	/* q.prio is the level: 0..queues */
	u64 left_ns;		/* of the quantum */
	u64 over_ns;		/* run beyond the quantum, to be taken off the next */
	u64 burst_ns;		/* used since the last wakeup */
	u64 turn_ns;		/* left of the turn that the guard gave it */
	s32 nice;
	u32 verdict;		/* enum verdict, valid while it sleeps */
	bool sank;		/* sank, and has not run since */
	bool yielded;		/* gave the rest of this turn away */
	bool forked;		/* a child that has not run yet */
	bool runs_next;		/* a child that goes before its parent */
	bool first;		/* in its first quantum */
};

struct cpu_ctx {
	struct cpu_queue q;
	bool rescued;		/* the running task is in a turn that the guard gave it */
} __attribute__((aligned(64)));

CONTEXTS;

enum {
	COUNT_SANK = NR_BALANCE_COUNTERS,
	COUNT_ROSE,
	COUNT_PREEMPTED,
	COUNT_YIELDS,
	COUNT_YIELDS_ALONE,
};

COUNTERS(BALANCE_COUNTERS, "sank", "rose", "preempted", "yields", "yields_alone");

/* ---- Quanta and levels ---- */

static __always_inline u32 last_queue(void)
{
	return min(queues, NR_QUEUES_MAX) - 1;
}

/*
 * Decision for nice: a sub-range of queues, as the source's section on future
 * work has it. Nice 0 has all of them, 19 the last one only, -20 the first.
 */
static __always_inline u32 top(struct task_ctx *tctx)
{
	return nice_ranges && tctx->nice > 0 ? last_queue() * min(tctx->nice, 19) / 19 : 0;
}

static __always_inline u32 bottom(struct task_ctx *tctx)
{
	u32 last = last_queue();

	return nice_ranges && tctx->nice < 0 ? last * max(20 + tctx->nice, 0) / 20 : last;
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
	tctx->q.prio = level;
	tctx->left_ns = quantum_ns(level);
	tctx->over_ns = 0;
	tctx->burst_ns = 0;
	tctx->sank = false;
}

static __always_inline u32 level_above(struct task_ctx *tctx)
{
	u32 level = min(tctx->q.prio, bottom(tctx)), best = top(tctx);

	return level > best + up ? level - up : best;
}

static __always_inline u32 level_below(struct task_ctx *tctx)
{
	return max(min(tctx->q.prio + down, bottom(tctx)), top(tctx));
}

/* Rule 3: the level of a woken task follows from its last quantum alone. */
static void wake_up(struct task_ctx *tctx)
{
	u32 was = tctx->q.prio, level = max(min(was, bottom(tctx)), top(tctx));

	if (tctx->verdict == VERDICT_UP)
		level = level_above(tctx);
	else if (tctx->verdict == VERDICT_DOWN)
		level = level_below(tctx);
	if (level != was)
		count(level < was ? COUNT_ROSE : COUNT_SANK);
	begin_quantum(tctx, level);
}

/*
 * Rule 2: the quantum is used up. The next one is shorter by the overrun, but
 * not by more than half. With `cumulative` it is what remains of the new
 * queue's limit; at the bottom a new count begins.
 */
static void sink(struct task_ctx *tctx, struct cpu_ctx *cctx)
{
	u32 level = level_below(tctx);
	u64 quantum = quantum_ns(level);

	if (level != tctx->q.prio)
		count(COUNT_SANK);
	if (cumulative && quantum > tctx->burst_ns) {
		tctx->left_ns = quantum - tctx->burst_ns;
	} else {
		tctx->left_ns = quantum - min(tctx->over_ns, quantum / 2);
		tctx->burst_ns = 0;
	}
	tctx->over_ns = 0;
	tctx->q.prio = level;
	tctx->sank = true;
	tctx->first = false;
	to_tail(&tctx->q, &cctx->q);
}

/*
 * Takes what the task has run since the last call off its quantum. The task's
 * own run time is what the kernel charges to the slice too, so both end
 * together; the slice itself is no measure, because a preemption sets it to 0.
 */
static void charge(struct task_struct *p, struct task_ctx *tctx)
{
	u64 ran = p->se.sum_exec_runtime - tctx->q.charged_ns;
	u64 used = min(ran, tctx->left_ns);

	tctx->q.charged_ns += ran;
	tctx->left_ns -= used;
	tctx->over_ns += ran - used;
	tctx->burst_ns += ran;
	tctx->turn_ns -= min(ran, tctx->turn_ns);
	if (ran)
		tctx->sank = false;
}

/* ---- The guard ---- */

/*
 * A turn of the guard begins, one queue up, as the source's section on future
 * work proposes after Solaris. Until the turn is over the task counts as one
 * of queue 0 that was interrupted: whoever takes the CPU from it, which only
 * kernel threads and higher classes can, gives it back. Without that a storm
 * of wakeups ends each turn before the task has done anything, and a kernel
 * waits for ever for what it holds, be it no more than a section of RCU.
 */
static void begin_turn(struct task_ctx *tctx, struct cpu_ctx *cctx)
{
	begin_quantum(tctx, tctx->q.prio > top(tctx) ? tctx->q.prio - 1 : tctx->q.prio);
	tctx->turn_ns = GUARD_TURN_NS;
	to_head_of(&tctx->q, 0, &cctx->q);
}

static void end_turn(struct task_ctx *tctx, struct cpu_ctx *cctx)
{
	tctx->q.rescued = false;
	tctx->turn_ns = 0;
	to_head_of(&tctx->q, tctx->q.prio, &cctx->q);
}

/* Charges, and draws the conclusions: the end of a turn, of a quantum. */
static void settle(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx)
{
	charge(p, tctx);
	if (tctx->q.rescued && !tctx->turn_ns)
		end_turn(tctx, cctx);
	if (tctx->yielded && yield_expires) {
		tctx->left_ns = 0;
		tctx->over_ns = 0;
	}
	tctx->yielded = false;
	if (!tctx->left_ns)
		sink(tctx, cctx);
}

/* ---- Callbacks, in the order of a task's life ---- */

static __always_inline s32 nice_of(struct task_struct *p)
{
	return p->policy == SCHED_IDLE ? 19 : p->static_prio - 120;
}

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
	ran = scx_bpf_now() - from->q.stamp_ns;
	left = from->left_ns - min(from->left_ns, ran);
	units = (left + grain - 1) / grain;
	share = min(min((units + 1) / 2 * grain, left), quantum_ns(tctx->q.prio));
	tctx->left_ns = max(share, 1ULL);
	tctx->forked = true;
	tctx->first = true;
	tctx->runs_next = from->q.prio > tctx->q.prio || share == left;
	from->left_ns -= share;
	/* The kernel's own count runs on, so it loses the same. */
	set_slice(parent, parent->scx.slice - min(parent->scx.slice, share));
}

s32 OP_SLEEPABLE(mlfq_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *tctx = new_task_ctx(p);

	if (!tctx)
		return -ENOMEM;
	tctx->q.charged_ns = p->se.sum_exec_runtime;
	tctx->q.home = -1;
	tctx->q.asleep = true;
	tctx->nice = nice_of(p);
	begin_quantum(tctx, top(tctx));
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
	come_in(p, &tctx->q);
	if (!tctx->forked)
		begin_quantum(tctx, top(tctx));
}

/* Rule 11: where it ran, or with a synchronous waker, as in 2.6.3. */
s32 OP(mlfq_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return choose_cpu(p, prev_cpu, wake_flags, note_sync(queued(p), wake_flags));
}

void OP(mlfq_runnable, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = task_ctx(p);

	/* A change of nice level or affinity is no wakeup, and a wait goes on. */
	if (!tctx || !tctx->q.asleep)
		return;
	tctx->q.asleep = false;
	if (enq_flags & SCX_ENQ_WAKEUP)
		wake_up(tctx);
	begin_wait(&tctx->q, scx_bpf_now());
}

/*
 * A new nice level. Decision: a task whose queue is not in the new range goes
 * to the nearest one that is, behind the others, with a fresh quantum.
 */
void OP(mlfq_set_weight, struct task_struct *p, u32 weight)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	u32 level;

	if (!tctx || !cctx)
		return;
	tctx->nice = nice_of(p);
	level = max(min(tctx->q.prio, bottom(tctx)), top(tctx));
	if (level == tctx->q.prio)
		return;
	begin_quantum(tctx, level);
	if (tctx->q.asleep)
		return;
	to_tail(&tctx->q, &cctx->q);
	/* Whoever is better now: the CPU decides again. */
	kick(cpu, SCX_KICK_PREEMPT);
}

/*
 * Rules 5 and 6: a task preempts if its queue is strictly better. Rule 7: so
 * does a child whose parent has nothing left, even in the same queue.
 */
static void preempt(struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	bool next = tctx->forked && tctx->runs_next;

	if (cctx->q.prio == NO_PRIO || cctx->rescued || is_local_sync(&tctx->q, cpu) ||
	    (tctx->q.prio >= cctx->q.prio && !next))
		return;
	count(COUNT_PREEMPTED);
	kick(cpu, SCX_KICK_PREEMPT);
}

void OP(mlfq_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	bool comes;

	if (!comes_to_queue(p, tctx, enq_flags) || leaves_with_cpu(p, cpu, enq_flags) || !cctx)
		return;
	/* The kernel may end a slice without asking dispatch: a local queue was not empty. */
	settle(p, tctx, cctx);
	comes = tctx->q.requeue || tctx->q.home != cpu;
	/* Decision for rule 7: a child that runs next stands before the others of its queue. */
	if (tctx->forked && tctx->runs_next)
		to_head_of(&tctx->q, tctx->q.prio, &cctx->q);
	else if (comes)
		to_tail(&tctx->q, &cctx->q);
	scx_bpf_dsq_insert_vtime(p, cpu, tctx->left_ns, tctx->q.key, enq_flags);
	note_arrival(&cctx->q, comes);
	preempt(tctx, cctx, cpu);
	tctx->q.requeue = false;
	tctx->q.sync = false;
}

/* The task is on the CPU: others compare themselves with its level, and tools see it. */
static void show(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx)
{
	cctx->rescued = tctx->q.rescued;
	cctx->q.prio = tctx->q.prio;
	report_task(p, PRIO_OF_QUEUE_0 + tctx->q.prio, tctx->q.prio, 0);
}

/*
 * A task that could go on does so unless another is before it: the head of a
 * better queue, or of its own if it sank or yielded and stands behind now.
 */
static void decide(struct task_struct *prev, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	settle(prev, tctx, cctx);
	tctx->q.stamp_ns = choice_ns(&cctx->q);
	balance_busy(&cctx->q, cpu);
	if (!tctx->q.rescued && waits_before(cpu, tctx->q.key) && scx_bpf_dsq_move_to_local(cpu))
		return;
	/* A slice that dispatch sets lets the task go on; it has left all that its quantum has. */
	set_slice(prev, tctx->left_ns);
	/* No other callback tells that it sank: the kernel calls none for a task that stays. */
	show(prev, tctx, cctx);
}

/*
 * Rule 1: the head of the best queue. `prev` is in no queue, but its key counts.
 * Rule 11: a CPU with nothing to do takes a task from another.
 */
void OP(mlfq_dispatch, s32 cpu, struct task_struct *prev)
{
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	struct task_ctx *tctx;

	count(COUNT_SCHEDULE);
	if (!cctx || begin_choice(&cctx->q))
		return;
	tctx = could_go_on(prev) ? task_ctx(prev) : NULL;
	if (tctx)
		decide(prev, tctx, cctx, cpu);
	else
		take_or_pull(cpu, !prev);
}

void OP(mlfq_running, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx(cpu);

	if (!tctx || !cctx)
		return;
	tctx->q.stamp_ns = scx_bpf_now();
	if (tctx->q.rescued && !tctx->turn_ns)
		begin_turn(tctx, cctx);
	else if (tctx->q.requeue || tctx->q.home != cpu)
		/* It came past our queues. */
		to_head_of(&tctx->q, tctx->q.prio, &cctx->q);
	tctx->q.requeue = false;
	tctx->forked = false;
	note_cpu(&tctx->q, cpu);
	show(p, tctx, cctx);
	/* Rule 1 again: without our say it may have been overtaken. */
	ask_again(p, &tctx->q, &cctx->q);
}

void OP(mlfq_tick, struct task_struct *p)
{
	end_tick(p, scx_bpf_now());
}

/* Rule 9. Decision: silent in the source; the task goes behind its equals, and keeps the rest. */
bool OP(mlfq_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *tctx = task_ctx(from);
	s32 cpu = scx_bpf_task_cpu(from);
	struct cpu_ctx *cctx = cpu_ctx(cpu);

	if (to || !tctx || !cctx)
		return false;
	count(COUNT_YIELDS);
	if (!scx_bpf_dsq_nr_queued(cpu))
		count(COUNT_YIELDS_ALONE);
	tctx->yielded = true;
	to_tail(&tctx->q, &cctx->q);
	set_slice(from, 0);
	return true;
}

void OP(mlfq_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tctx = task_ctx(p);

	free_cpu(scx_bpf_task_cpu(p));
	if (!tctx)
		return;
	charge(p, tctx);
	tctx->q.left_cpu_ns = scx_bpf_now();
	tctx->q.ready_ns = tctx->q.left_cpu_ns;
	/* Perhaps the kernel brings it back by itself; if dispatch does, nobody is before it. */
	tctx->q.in_local = true;
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
	tctx->q.asleep = true;
	tctx->first = false;
	tctx->yielded = false;
	tctx->q.in_local = false;
	tctx->q.rescued = false;
	tctx->turn_ns = 0;
	/* Decision for rule 4: blocking exactly at the end counts as used up, and only once. */
	if (!tctx->left_ns)
		tctx->verdict = VERDICT_DOWN;
	else
		tctx->verdict = tctx->sank ? VERDICT_STAY : VERDICT_UP;
}

POLICY_RIGHT("rank");
POLICY(mlfq_ops, LIFE_OPS(mlfq), BALANCE_OPS, .name = "mlfq");
