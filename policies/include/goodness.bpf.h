/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ticks, recalculation and goodness: the scheduler of Linux 2.3.99 and 2.4.0
 * without its run queue. Two policies search this way, each in its own queues.
 *
 * A task has a counter of ticks left. Whoever runs when a tick comes loses
 * one. When every task that could run has none, all tasks get new ones, those
 * that sleep too. Whom a woken task takes the CPU from, what a child inherits
 * and what its end gives back stand here as well.
 *
 * A policy defines level_of(), what reports show of a task, and may set variant_24
 * and source_hz at load, before measure_machine().
 *
 * Source of numbers marked 2.3.99 and 2.4.0: those kernels' kernel/sched.c,
 * timer.c, fork.c and exit.c.
 */
#ifndef RUNSLICE_GOODNESS_BPF_H
#define RUNSLICE_GOODNESS_BPF_H

#include <guard.bpf.h>
#include <hotplug.bpf.h>
#include <knobs.bpf.h>
#include <report.bpf.h>

/* ---- Tunables ---- */

KNOB_AT_LOAD(u32, smp, 2, "count",
     "0: as a kernel for one CPU, 1: as one for several, 2: what the machine is (at load)", 0, 2);
KNOB(u64, cache_ns, 1000000, "ns",
     "a woken task whose turns are shorter than this preempts on any CPU (2.3.99)", 0, 1000000000);
KNOB(bool, sync_quiet, 0, "bool",
     "a synchronous wakeup only queues its task and disturbs no CPU", 0, 1);

/* ---- State ---- */

/* Whether the source is 2.4.0, else 2.3.99; and how often its clock ticks. */
static bool variant_24;
static u32 source_hz = 100;

#define NR_CPUS_MAX 1024

/* What a task is worth more on the CPU that it ran on last (2.4.0, i386, SMP kernels only). */
#define SAME_CPU_BONUS 15
/* What it is worth more after a task with the same address space. */
#define SAME_MM_BONUS 1
/* What the idle task is worth. */
#define NOTHING (-1000)

/*
 * A counter, not a slice, ends a turn: the kernel asks `dispatch` only when
 * the slice is zero, so it is long, and zeroed wherever the source sets
 * need_resched.
 */
#define SLICE_NS (3600 * NSEC_PER_SEC)

/*
 * A quantum is at most 2 * 20 * 1000 / 100 ticks, and each recalculation halves
 * the distance to twice of it.
 */
#define RECALCULATIONS_MAX 16

struct credit {
	/*
	 * Recalculations taken part in, in the high half, and the counter: one
	 * word, so that CPUs that bring it up to date at once write the same.
	 */
	u64 word;
	u64 tick;	/* number of the last tick accounted for, while it runs */
	u32 quantum;	/* ticks that a recalculation adds */
	u32 base;	/* what it is worth besides its counter */
};

struct task_ctx {
	struct credit credit;
	u64 key;		/* place in its queue */
	u64 ready_ns;		/* since when it waits; 0 when it does not */
	u64 turn_ns;		/* running average of its turns (2.3.99) */
	s32 processor;		/* runs or ran there, as the policy saw it */
	u32 list;		/* the queue that it is or was in */
	u32 counted_in;		/* the list that counts it, and one; 0: none (elsc) */
	u32 refunds;		/* ticks that ended children have left it */
	bool queued;		/* list and key are its place, to which it returns */
	bool off_cpu;		/* lost the CPU, and has not come to enqueue since */
	bool yielding;		/* between its yield and the next choice */
	bool quiet;		/* woken synchronously */
	bool forked;		/* a child that is not queued yet */
	bool parent_spent;	/* ... whose parent has no ticks left */
	bool rescued;		/* runs because the guard says so */
};

TASK_STORAGE(task_ctxs, struct task_ctx);

struct cpu_ctx {
	struct credit curr;	/* of the task `pid` */
	u64 mm;			/* address space in use: the last one of any task */
	u64 switched_ns;	/* when the CPU last changed hands */
	struct guard guard;
	s32 pid;		/* of the task that runs or is about to; 0: none of ours */
	bool rescued;		/* ... which is in a turn that the guard gave it */
	bool chosen;		/* ... and which has not begun to run yet */
	u64 seen;		/* `arrivals` when it was chosen */
} __attribute__((aligned(64)));

ARRAY(cpu_ctxs, struct cpu_ctx, NR_CPUS_MAX);

/* Taken from the machine and the knobs at load. CPU numbers are below nr_cpus. */
static u32 nr_cpus;
static bool smp_kernel;
static u64 tick_ns = NSEC_PER_SEC / 100;

/* Recalculations of all counters so far. */
static u32 epoch;

/* Tasks that came into the queue so far, and for which no CPU idled. */
static u64 arrivals;

enum {
	COUNT_SCHEDULES,	/* calls of schedule() that had to choose */
	COUNT_EXAMINED,		/* tasks looked at for that */
	COUNT_RECALCULATIONS,
	COUNT_NEW_CPU,		/* choices that ran last on another CPU */
	COUNT_PREEMPTED,	/* tasks that lost the CPU to a woken or displaced one */
	COUNT_YIELDS,
	COUNT_YIELDS_IGNORED,	/* returned at once: nobody waited (2.4.0) */
	COUNT_YIELDS_IN_VAIN,	/* the yielder was chosen again */
	COUNT_GUARDED,
};

COUNTERS("schedules", "examined", "recalculations", "new_cpu", "preempted", "yields",
	 "yields_ignored", "yields_in_vain", "guarded");

/* What reports show of a task; the policy defines it. */
static __always_inline u32 level_of(struct task_ctx *tctx);

static __always_inline struct task_ctx *task_ctx(struct task_struct *p)
{
	return bpf_task_storage_get(&task_ctxs, p, NULL, 0);
}

static __always_inline struct cpu_ctx *cpu_ctx(s32 cpu)
{
	u32 index = cpu;

	return bpf_map_lookup_elem(&cpu_ctxs, &index);
}

static __always_inline struct guard *guard_of(s32 cpu)
{
	struct cpu_ctx *cctx = cpu_ctx(cpu);

	return cctx ? &cctx->guard : NULL;
}

static __always_inline bool allowed_on(struct task_struct *p, s32 cpu)
{
	return bpf_cpumask_test_cpu(cpu, p->cpus_ptr);
}

/* Whether `p`, which waits, can be moved to `cpu`; a kernel ejects a policy that tries else. */
static __always_inline bool may_run_on(struct task_struct *p, s32 cpu)
{
	return allowed_on(p, cpu) && (!p->migration_disabled || scx_bpf_task_cpu(p) == cpu);
}

/* ---- Counters ---- */

static __always_inline u32 counter_of(const struct credit *credit)
{
	return (u32)credit->word;
}

static __always_inline void set_counter(struct credit *credit, u32 counter)
{
	credit->word = (credit->word >> 32 << 32) | counter;
}

/* A counter after recalculations. Not static, so that a verifier follows the loop just once. */
__noinline u32 recalculated(u32 counter, u32 quantum, u32 recalculations)
{
	u32 i;

	for (i = 0; i < RECALCULATIONS_MAX && i < recalculations; i++)
		counter = counter / 2 + quantum;
	return counter;
}

/* The recalculations that the task has missed. The source does it to all tasks at once. */
static __always_inline void catch_up(struct credit *credit)
{
	u32 now = epoch, missed = now - (u32)(credit->word >> 32);

	if (missed)
		credit->word = (u64)now << 32 |
			       recalculated(counter_of(credit), credit->quantum, missed);
}

/* Whoever runs when a tick comes loses one of its counter, even if it has just begun. */
static void charge(struct credit *credit, u64 now)
{
	u64 tick = now / tick_ns;
	u64 ticks = tick - credit->tick;
	u32 counter;

	catch_up(credit);
	credit->tick = tick;
	counter = counter_of(credit);
	set_counter(credit, counter - (u32)min(ticks, (u64)counter));
}

/* All counters are used up: new ones for all tasks, unless another CPU was faster. */
static __always_inline void recalculate(u32 seen)
{
	if (__sync_val_compare_and_swap(&epoch, seen, seen + 1) == seen)
		count(COUNT_RECALCULATIONS);
}

/* Today's SCHED_IDLE was nothing that the source knew: the least nice level stands for it. */
static __always_inline s32 nice_of(struct task_struct *p)
{
	return p->policy == SCHED_IDLE ? 19 : p->static_prio - 120;
}

/* 2.4.0: 6 ticks at nice 0 and HZ 100, whatever the length of a tick about 50 ms. */
static __always_inline u32 quantum_24(s32 nice)
{
	u32 x = 20 - nice;

	if (source_hz < 200)
		return x / 4 + 1;
	if (source_hz < 400)
		return x / 2 + 1;
	if (source_hz < 800)
		return x + 1;
	return source_hz < 1600 ? 2 * x + 1 : 4 * x + 1;
}

/* 2.3.99: 20 ticks at nice 0 and HZ 100, one more or less a nice level. */
static __always_inline u32 priority_99(s32 nice)
{
	u32 middle = 20 * source_hz / 100;
	u32 steps = nice < 0 ? -nice : nice;
	u32 distance = (steps * middle + 10) / 20;

	if (nice < 0)
		return min(middle + distance, 2 * middle);
	return distance < middle ? middle - distance : 1;
}

static void set_priority(struct task_struct *p, struct credit *credit)
{
	s32 nice = nice_of(p);

	if (variant_24) {
		credit->quantum = quantum_24(nice);
		credit->base = 20 - nice;
	} else {
		credit->quantum = priority_99(nice);
		credit->base = credit->quantum;
	}
}

/* ---- Goodness ---- */

static __always_inline u64 mm_of(struct task_struct *p)
{
	return (u64)p->mm;
}

/* The address space in use when `prev` leaves the CPU: a kernel thread borrows one. */
static __always_inline u64 active_mm(struct cpu_ctx *cctx, struct task_struct *prev)
{
	u64 mm = prev ? mm_of(prev) : 0;

	return mm ? mm : cctx->mm;
}

static __always_inline bool shares_mm(struct task_struct *p, u64 mm)
{
	return !mm_of(p) || mm_of(p) == mm;
}

/* How good it is to run `p` on `cpu` after a task with the address space `mm`. */
static __always_inline s32 goodness(struct task_struct *p, struct task_ctx *tctx, s32 cpu, u64 mm)
{
	s32 weight;

	if (variant_24 && tctx->yielding)
		return -1;
	catch_up(&tctx->credit);
	if (!counter_of(&tctx->credit))
		return 0;
	weight = counter_of(&tctx->credit) + tctx->credit.base;
	if (smp_kernel && tctx->processor == cpu)
		weight += SAME_CPU_BONUS;
	if (shares_mm(p, mm))
		weight += SAME_MM_BONUS;
	return weight;
}

/* The same for the task that runs on the CPU of `cctx`, as another CPU sees it. */
static s32 goodness_of_curr(struct cpu_ctx *cctx, u64 now)
{
	struct credit credit = cctx->curr;

	charge(&credit, now);
	if (!counter_of(&credit))
		return 0;
	return counter_of(&credit) + credit.base + SAME_MM_BONUS +
	       (smp_kernel ? SAME_CPU_BONUS : 0);
}

/* How much better `p` is than the task on `cpu`; NOTHING if none of ours runs there. */
static __always_inline s32 advantage(struct task_struct *p, struct task_ctx *tctx, s32 cpu,
				     u64 now)
{
	struct cpu_ctx *cctx = cpu_ctx(cpu);

	if (!cctx || !cctx->pid || cctx->rescued || !allowed_on(p, cpu))
		return NOTHING;
	return goodness(p, tctx, cpu, cctx->mm) - goodness_of_curr(cctx, now);
}

/* ---- Which CPU hears of a task: reschedule_idle() ---- */

/* 2.3.99: the highest idle CPU. Claims it. */
static s32 idle_cpu_99(struct task_struct *p)
{
	u32 i;

	for_each_number(i, 0, nr_cpus) {
		s32 cpu = nr_cpus - 1 - i;

		if (allowed_on(p, cpu) && scx_bpf_test_and_clear_cpu_idle(cpu))
			return cpu;
	}
	return -1;
}

/* 2.4.0: the CPU that idles longest. Claims it. */
static s32 idle_cpu_24(struct task_struct *p)
{
	const struct cpumask *idle = scx_bpf_get_idle_cpumask();
	u64 oldest_ns = ~0ULL;
	s32 best = -1;
	u32 cpu;

	for_each_number(cpu, 0, nr_cpus) {
		struct cpu_ctx *cctx = cpu_ctx(cpu);

		if (!cctx || !allowed_on(p, cpu) || !bpf_cpumask_test_cpu(cpu, idle))
			continue;
		if (cctx->switched_ns < oldest_ns) {
			oldest_ns = cctx->switched_ns;
			best = cpu;
		}
	}
	scx_bpf_put_idle_cpumask(idle);
	return best >= 0 && scx_bpf_test_and_clear_cpu_idle(best) ? best : -1;
}

/* An idle CPU for `p`, best its last one; -1 if there is none. */
static __always_inline s32 find_idle(struct task_struct *p, struct task_ctx *tctx)
{
	s32 cpu = tctx->processor;

	/* A callback that a task's own CPU executes disables its migration for the moment. */
	if (p->nr_cpus_allowed == 1 || (p->migration_disabled && !tctx->off_cpu))
		cpu = scx_bpf_task_cpu(p);
	if (allowed_on(p, cpu) && scx_bpf_test_and_clear_cpu_idle(cpu))
		return cpu;
	if (p->nr_cpus_allowed == 1 || (p->migration_disabled && !tctx->off_cpu))
		return -1;
	return variant_24 ? idle_cpu_24(p) : idle_cpu_99(p);
}

static __always_inline void preempt(s32 cpu)
{
	count(COUNT_PREEMPTED);
	kick(cpu, SCX_KICK_PREEMPT);
}

/*
 * 2.3.99: a task that is better where it ran last preempts there; one with
 * short turns, whose cache is no loss, on any CPU.
 */
static void preempt_99(struct task_struct *p, struct task_ctx *tctx, u64 now)
{
	u32 i;

	if (advantage(p, tctx, tctx->processor, now) > 0) {
		preempt(tctx->processor);
		return;
	}
	if (!smp_kernel || tctx->turn_ns >= cache_ns)
		return;
	for_each_number(i, 0, nr_cpus) {
		s32 cpu = nr_cpus - 1 - i;

		if (advantage(p, tctx, cpu, now) > 0) {
			preempt(cpu);
			return;
		}
	}
}

/* 2.4.0: where it gains most, if that is more than the address space can make up. */
static void preempt_24(struct task_struct *p, struct task_ctx *tctx, u64 now)
{
	s32 most = 1, best = -1;
	u32 cpu;

	for_each_number(cpu, 0, nr_cpus) {
		s32 gain = advantage(p, tctx, cpu, now);

		if (gain > most) {
			most = gain;
			best = cpu;
		}
	}
	if (best >= 0)
		preempt(best);
}

/*
 * A task has come into the queue: tells a CPU that idles; else `may_preempt`
 * says whether it may take one from a task. The kernel itself wakes the CPU on
 * whose run queue a task is woken. Whether a CPU idled.
 */
static bool tell_cpus(struct task_struct *p, struct task_ctx *tctx, bool may_preempt)
{
	s32 idle = find_idle(p, tctx);

	if (idle >= 0) {
		if (idle != scx_bpf_task_cpu(p))
			kick(idle, SCX_KICK_IDLE);
		return true;
	}
	if (!may_preempt)
		return false;
	if (variant_24)
		preempt_24(p, tctx, scx_bpf_now());
	else
		preempt_99(p, tctx, scx_bpf_now());
	return false;
}

/* ---- The pieces of callbacks, in the order of a task's life ---- */

/* `p` is what runs on the CPU of `cctx`, or will in a moment. */
static __always_inline void publish(struct cpu_ctx *cctx, struct task_struct *p,
				    struct task_ctx *tctx)
{
	cctx->curr = tctx->credit;
	cctx->pid = p->pid;
	cctx->rescued = tctx->rescued;
	if (mm_of(p))
		cctx->mm = mm_of(p);
}

/* Parent and child share the parent's counter; the odd tick is the child's. */
static __always_inline void fork_from(struct task_struct *parent, struct task_ctx *tctx)
{
	struct task_ctx *from = task_ctx(parent);
	struct cpu_ctx *cctx;
	u32 counter;

	if (!from)
		return;
	cctx = cpu_ctx(from->processor);
	/* A parent of another class is on no CPU of ours, and pays for no ticks. */
	if (cctx && cctx->pid == parent->pid)
		charge(&from->credit, scx_bpf_now());
	else
		catch_up(&from->credit);
	counter = counter_of(&from->credit);
	tctx->credit.word = (u64)epoch << 32 | (counter + 1) / 2;
	set_counter(&from->credit, counter / 2);
	if (cctx && cctx->pid == parent->pid)
		cctx->curr = from->credit;
	tctx->turn_ns = from->turn_ns;
	tctx->processor = from->processor;
	tctx->forked = true;
	tctx->parent_spent = counter < 2;
}

static __always_inline s32 admit(struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *tctx;

	tctx = bpf_task_storage_get(&task_ctxs, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!tctx || !report_init(p))
		return -ENOMEM;
	set_priority(p, &tctx->credit);
	tctx->credit.word = (u64)epoch << 32 | tctx->credit.quantum;
	tctx->processor = scx_bpf_task_cpu(p);
	if (args->fork)
		fork_from(bpf_get_current_task_btf(), tctx);
	return 0;
}

/* nice(): the counter stays as it is, but what was missed belongs to the old priority. */
static __always_inline void change_priority(struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);

	if (!tctx)
		return;
	catch_up(&tctx->credit);
	set_priority(p, &tctx->credit);
}

/*
 * The CPU whose run queue takes a woken task. The task goes into the queue
 * first, and only then a CPU is told, so that none misses it; a synchronous
 * wakeup that shall disturb nobody stays with its waker.
 */
static __always_inline s32 cpu_for(struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = bpf_get_smp_processor_id();

	if (!tctx)
		return prev_cpu;
	tctx->quiet = sync_quiet && (wake_flags & SCX_WAKE_SYNC) && allowed_on(p, cpu);
	return tctx->quiet ? cpu : prev_cpu;
}

/*
 * The task waits from now on, unless it did before: a change of nice level or
 * affinity takes it out of its queue for a moment, and its wait goes on.
 */
static __always_inline void note_wait(struct task_ctx *tctx)
{
	if (!tctx->ready_ns)
		tctx->ready_ns = scx_bpf_now();
}

/* What follows when `p` has been put into its queue. */
static __always_inline void after_enqueue(struct task_struct *p, struct task_ctx *tctx,
					  u64 enq_flags, bool yielded)
{
	bool woken = tctx->forked || (enq_flags & SCX_ENQ_WAKEUP);
	bool idled = false;

	/* A switch makes only the kernel for several CPUs look for another place. */
	if (!tctx->quiet && !yielded)
		idled = tell_cpus(p, tctx, woken || (tctx->off_cpu && smp_kernel));
	/* Who has lost the CPU took part in the choice of the next. */
	if (!idled && !tctx->off_cpu)
		__sync_fetch_and_add(&arrivals, 1);
	if (tctx->forked && tctx->parent_spent)
		kick(tctx->processor, SCX_KICK_PREEMPT);
	tctx->forked = false;
	tctx->quiet = false;
	tctx->off_cpu = false;
	tctx->yielding = false;
}

/* `prev` goes on: a slice that dispatch sets means so. */
static __always_inline void keep(struct cpu_ctx *cctx, struct task_struct *prev,
				 struct task_ctx *tctx)
{
	set_slice(prev, SLICE_NS);
	publish(cctx, prev, tctx);
	report_task(prev, prev->static_prio, level_of(tctx), 0);
}

/* `next` gets the CPU. */
static __always_inline void take(struct cpu_ctx *cctx, s32 cpu, struct task_struct *next,
				 struct task_ctx *tctx, u64 now)
{
	if (tctx->processor != cpu)
		count(COUNT_NEW_CPU);
	tctx->processor = cpu;
	tctx->credit.tick = now / tick_ns;
	publish(cctx, next, tctx);
	cctx->chosen = true;
	cctx->seen = arrivals;
}

/* The CPU changes hands; `tctx` is of the task whose turn ends, if it is one of ours. */
static __always_inline void end_turn(struct cpu_ctx *cctx, struct task_ctx *tctx, u64 now)
{
	if (tctx)
		tctx->turn_ns = (now - cctx->switched_ns + tctx->turn_ns) / 2;
	cctx->switched_ns = now;
}

/*
 * Gives a starved task to the kernel whose CPU no longer serves the queue.
 * Before it calls cpu_offline, a kernel that takes a CPU away stops asking the
 * policy there and waits for all readers of RCU: one that was preempted there
 * and may run nowhere else would never come to its end (see percpu.bpf.h).
 */
static __always_inline void relieve(struct bpf_iter_scx_dsq *it, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx(cpu);

	if (cctx && is_silent(&cctx->guard) && scx_bpf_dsq_move(it, p, SCX_DSQ_GLOBAL, 0))
		kick(cpu, 0);
}

/*
 * The guard's look through one queue: moves the first task that has waited too
 * long to this CPU, where no wakeup preempts it in its turn. Not static, so that
 * a verifier does not follow all that comes behind it once more.
 */
__noinline bool rescue(u64 queue, s32 cpu)
{
	u64 now = scx_bpf_now();
	struct task_struct *p;

	for_each_queued(it, p, queue, 0) {
		struct task_ctx *tctx = task_ctx(p);

		if (!tctx || !is_starved(now - tctx->ready_ns))
			continue;
		scx_bpf_dsq_move_set_slice(&it, GUARD_TURN_NS);
		if (!may_run_on(p, cpu)) {
			relieve(&it, p);
			continue;
		}
		if (!scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL, 0))
			continue;
		tctx->rescued = true;
		count(COUNT_GUARDED);
		return true;
	}
	return false;
}

/*
 * The end of a child gives its parent the ticks that it has not used. The
 * parent gets them when it waits for the child, so not before it runs.
 */
static __always_inline void refund(struct task_struct *p, struct task_ctx *tctx)
{
	struct task_struct *parent = p->real_parent;
	struct task_ctx *to = parent ? task_ctx(parent) : NULL;

	if (!to || to == tctx)
		return;
	catch_up(&tctx->credit);
	__sync_fetch_and_add(&to->refunds, counter_of(&tctx->credit));
}

static __always_inline void receive(struct task_ctx *tctx)
{
	u32 more = __sync_lock_test_and_set(&tctx->refunds, 0);
	u32 most = variant_24 ? 20 * source_hz / 100 : 2 * tctx->credit.quantum;

	if (more)
		set_counter(&tctx->credit, min(counter_of(&tctx->credit) + more, most));
}

/*
 * `p` is on the CPU. If the kernel brought it back after a higher class
 * without asking, the CPU is made to ask: the source would choose anew. So it
 * would if others came while a higher class kept the chosen task from the CPU
 * (see note_arrival() in percpu.bpf.h).
 */
static __always_inline void arrive(struct task_struct *p, struct task_ctx *tctx)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	bool overtaken;

	if (!tctx || !cctx)
		return;
	catch_up(&tctx->credit);
	receive(tctx);
	tctx->credit.tick = scx_bpf_now() / tick_ns;
	tctx->processor = cpu;
	publish(cctx, p, tctx);
	report_task(p, p->static_prio, level_of(tctx), 0);
	overtaken = cctx->chosen && cctx->seen != arrivals && !tctx->rescued;
	cctx->chosen = false;
	if ((tctx->off_cpu || overtaken) && !is_fast(p))
		kick(cpu, SCX_KICK_PREEMPT);
	tctx->off_cpu = false;
}

static __always_inline void pass_tick(struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);
	struct cpu_ctx *cctx = cpu_ctx(scx_bpf_task_cpu(p));
	u64 now = scx_bpf_now();

	if (!tctx || !cctx)
		return;
	charge(&tctx->credit, now);
	cctx->curr = tctx->credit;
	if (!counter_of(&tctx->credit) || guard_is_due(&cctx->guard, now))
		set_slice(p, 0);
}

static __always_inline void leave(struct task_struct *p, bool runnable)
{
	struct task_ctx *tctx = task_ctx(p);
	struct cpu_ctx *cctx = cpu_ctx(scx_bpf_task_cpu(p));
	u64 now = scx_bpf_now();

	/* The next task may stand there already. */
	if (cctx && cctx->pid == p->pid)
		cctx->pid = 0;
	if (!tctx)
		return;
	charge(&tctx->credit, now);
	tctx->rescued = false;
	tctx->ready_ns = 0;
	if (runnable) {
		tctx->ready_ns = now;
		tctx->off_cpu = true;
	}
}

static __always_inline void go_to_sleep(struct task_struct *p, struct task_ctx *tctx,
					u64 deq_flags)
{
	/* Without the flag it is a change of nice level, affinity or group: it did not block. */
	if (!tctx || !(deq_flags & SCX_DEQ_SLEEP))
		return;
	if (p->flags & PF_EXITING)
		refund(p, tctx);
	tctx->queued = false;
	tctx->yielding = false;
	tctx->off_cpu = false;
}

/* At load: what the machine is, and what knobs mean for the whole run. */
static __always_inline void measure_machine(void)
{
	nr_cpus = min(scx_bpf_nr_cpu_ids(), NR_CPUS_MAX);
	smp_kernel = smp == 1 || (smp == 2 && nr_cpus > 1);
	tick_ns = NSEC_PER_SEC / source_hz;
	if (nr_cpus > 16)
		bpf_printk("one queue serves %d CPUs; it was made for 16 at most", nr_cpus);
}

#endif /* RUNSLICE_GOODNESS_BPF_H */
