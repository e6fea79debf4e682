/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The scheduler of Linux 2.4: one queue, and a look at every task in it.
 *
 * Each choice walks the whole queue and takes the task with the greatest
 * goodness: ticks left plus priority, more if it ran here last or shares the
 * address space of the task before it. Who has used its ticks up waits until
 * all have; then every task of the system gets new ones, and a sleeper keeps
 * half of what it had, which is all that interactive tasks gain.
 *
 * Source: Linux 2.3.99-pre4 and 2.4.0, kernel/sched.c; the first is the
 * "current scheduler" of Molloy and Honeyman, "Scalable Linux Scheduling",
 * USENIX Annual Technical Conference, FREENIX track, 2001.
 * Differs from the source: real-time tasks are not in the queue, but above it
 * in a class of the kernel; affinity is obeyed by 2.3.99 too, which knew none,
 * and a recalculation is due when all tasks that may run on this CPU have no
 * ticks left; a CPU that is told of a task is not told of the next one until
 * it has looked; wakeups flagged synchronous disturb others like any, since
 * today's kernel flags those of sockets, which the source did not
 * (sync_quiet=1: none, as the source's pipes); the ticks of a child that has
 * ended return to its parent when that runs next, not when it waits; after a real-time task the
 * interrupted task counts as running; recalculations reach a task when it is
 * looked at next, with the same result; an expired counter is noticed at the
 * first tick of the machine after that of the source's clock; SCHED_IDLE is
 * nice 19 and SCHED_BATCH an ordinary task.
 *
 * What cannot hold under sched_ext: a real-time task's goodness (1000 and
 * more), the one lock for queue and choice, and wakeups that tell an interrupt
 * from a system call.
 *
 * The kernel ends a policy under which a task waits too long (30 s): some 150
 * CPU hogs at nice 0 on one CPU are enough, for each has 200 ms. The guard
 * against that, guard_ms, and kthreads_fast, without which RCU's and per-CPU
 * kernel threads wait behind hogs and stall a kernel, are off in a simulation,
 * as in the source, and on on a kernel. The walk holds a lock: with thousands
 * of runnable tasks or more than 16 CPUs set scan_max.
 */
#include <goodness.bpf.h>
#include <knobs.bpf.h>

BPF_LICENSE();

/* ---- Tunables ---- */

KNOB_AT_LOAD(u32, variant, 99, "count", "99: Linux 2.3.99, 24: Linux 2.4.0 (at load)", 24, 99);
KNOB_AT_LOAD(u32, hz, 100, "count",
	     "ticks a second of the source's clock, which counters count (at load)",
     50, 1000);
KNOB(u32, scan_max, 0, "count",
     "if not 0, a choice looks at so many tasks at most, and a task without ticks goes to the tail",
     0, 1000000);

/* ---- State ---- */

/*
 * The queue. Tasks stand in the order of their keys: one to the front has a
 * key less than all before it, one to the tail a greater one, and a task that
 * loses the CPU goes back to its old place with its old key.
 */
#define QUEUE 0
#define FIRST_KEY (1ULL << 62)

static u64 keys_used;

/* Reports show a task's ticks. */
static __always_inline u32 level_of(struct task_ctx *tctx)
{
	return counter_of(&tctx->credit);
}

static __always_inline u64 front(void)
{
	return FIRST_KEY - __sync_fetch_and_add(&keys_used, 1);
}

static __always_inline u64 tail(void)
{
	return FIRST_KEY + __sync_fetch_and_add(&keys_used, 1);
}

/* ---- The choice: schedule() ---- */

enum verdict {
	KEEPS,		/* prev goes on */
	TAKEN,		/* another task is on its way to the CPU */
	RAN_OUT,	/* tasks wait, and none has ticks left */
	MISSED,		/* another CPU was faster */
	NOBODY,
};

/*
 * What a choice has to know. It lies in a map, where a verifier knows no values:
 * on the stack it would follow the walk anew for each combination.
 */
struct search {
	u64 now;
	u64 mm;
	s32 prev;	/* what prev is worth, which all others must beat; NOTHING without one */
	s32 second;	/* ... when the walk meets it again; else NOTHING */
	bool has_prev;	/* prev could go on */
};

ARRAY(searches, struct search, NR_CPUS_MAX);

static __always_inline struct search *search_of(s32 cpu)
{
	u32 index = cpu;

	return bpf_map_lookup_elem(&searches, &index);
}

/*
 * 2.3.99 takes a yielder's bit here and counts it as 0, which makes a lone one on
 * an SMP kernel recalculate. The kernel for one CPU meets prev, which is still in
 * the queue, again on the walk, now without its bit: a yielder, which stands
 * last, only loses ties.
 */
static __always_inline void weigh_prev(struct search *s, struct task_struct *prev,
				       struct task_ctx *tctx, s32 cpu)
{
	s->prev = NOTHING;
	s->second = NOTHING;
	if (!s->has_prev || !prev || !tctx)
		return;
	if (variant_24 || !tctx->yielding) {
		s->prev = goodness(prev, tctx, cpu, s->mm);
		return;
	}
	tctx->yielding = false;
	s->prev = 0;
	if (!smp_kernel)
		s->second = goodness(prev, tctx, cpu, s->mm);
}

/*
 * Walks the queue once. Equals: prev first, then whoever stands nearer to the
 * front. An enum verdict; NOBODY if nobody beats prev. Not static, so that a
 * verifier follows the walk just once.
 */
__noinline int choose(s32 cpu)
{
	struct search *s = search_of(cpu);
	struct task_struct *p, *next = NULL;
	enum verdict verdict = MISSED;
	struct bpf_iter_scx_dsq it;
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	u32 examined;
	s32 best;

	if (!s || !cctx)
		return NOBODY;
	examined = s->has_prev;
	best = s->prev;
	bpf_iter_scx_dsq_new(&it, QUEUE, 0);
	while ((p = bpf_iter_scx_dsq_next(&it))) {
		struct task_ctx *tctx = task_ctx(p);
		s32 weight;

		if (!tctx || !may_run_on(p, cpu))
			continue;
		examined++;
		weight = goodness(p, tctx, cpu, s->mm);
		if (weight > best) {
			best = weight;
			next = p;
		}
		if (scan_max && examined >= scan_max)
			break;
	}
	count_by(COUNT_EXAMINED, examined);
	if (s->second > best) {
		verdict = KEEPS;
	} else if (best == 0) {
		verdict = RAN_OUT;
	} else if (!next) {
		verdict = NOBODY;
	} else {
		struct task_ctx *tctx = task_ctx(next);

		if (tctx && scx_bpf_dsq_move(&it, next, SCX_DSQ_LOCAL, 0)) {
			take(cctx, cpu, next, tctx, s->now);
			verdict = TAKEN;
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	return verdict;
}

/* A recalculation asks for a second walk, and each race that is lost for one more. */
#define WALKS_MAX 4

static __always_inline enum verdict schedule(struct search *s, struct task_struct *prev,
					     struct task_ctx *tctx, s32 cpu)
{
	enum verdict verdict = MISSED;
	u32 i;

	for_each_number(i, 0, WALKS_MAX) {
		u32 seen = epoch;

		weigh_prev(s, prev, tctx, cpu);
		verdict = choose(cpu);
		if (verdict == RAN_OUT)
			recalculate(seen);
		else if (verdict != MISSED)
			break;
	}
	/* Unlucky every time: better anybody than an idle CPU. */
	if (verdict == MISSED || verdict == RAN_OUT)
		verdict = scx_bpf_dsq_move_to_local(QUEUE) ? TAKEN : NOBODY;
	return verdict == NOBODY && s->has_prev ? KEEPS : verdict;
}

/* ---- Callbacks, in the order of a task's life ---- */

s32 OP_SLEEPABLE(goodness_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	return admit(p, args);
}

void OP(goodness_set_weight, struct task_struct *p, u32 weight)
{
	change_priority(p);
}

s32 OP(goodness_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return cpu_for(p, prev_cpu, wake_flags);
}

void OP(goodness_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = task_ctx(p);
	bool yielded;

	if (runs_at_once(p, enq_flags))
		return;
	if (is_leaving(scx_bpf_task_cpu(p))) {
		insert_leaving(p, SCX_SLICE_DFL, enq_flags);
		return;
	}
	if (!tctx) {
		scx_bpf_error("no context for task %d", (u64)p->pid);
		return;
	}
	if (!tctx->queued) {
		tctx->key = front();
	} else if (scan_max && tctx->off_cpu && !counter_of(&tctx->credit)) {
		/* The source has no limit, and leaves it where it is. */
		tctx->key = tail();
	}
	tctx->queued = true;
	note_wait(tctx);
	yielded = tctx->yielding;
	tctx->yielding = false;
	scx_bpf_dsq_insert_vtime(p, QUEUE, SLICE_NS, tctx->key, enq_flags);
	after_enqueue(p, tctx, enq_flags, yielded);
}

void OP(goodness_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *tctx = prev ? task_ctx(prev) : NULL;
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	struct search *s = search_of(cpu);
	bool yielded = tctx && tctx->yielding;

	if (!cctx || !s)
		return;
	s->now = scx_bpf_now();
	if (guard_looks(&cctx->guard, s->now)) {
		bool found = rescue(QUEUE, cpu);

		guard_looked(&cctx->guard, found);
		if (found)
			return;
	}
	count(COUNT_SCHEDULES);
	s->mm = active_mm(cctx, prev);
	s->has_prev = tctx && (prev->scx.flags & SCX_TASK_QUEUED);
	if (s->has_prev)
		charge(&tctx->credit, s->now);
	if (schedule(s, prev, tctx, cpu) != KEEPS) {
		end_turn(cctx, tctx, s->now);
		return;
	}
	if (prev && tctx) {
		if (yielded)
			count(COUNT_YIELDS_IN_VAIN);
		tctx->yielding = false;
		keep(cctx, prev, tctx);
	}
}

void OP(goodness_running, struct task_struct *p)
{
	arrive(p, task_ctx(p));
}

void OP(goodness_tick, struct task_struct *p)
{
	pass_tick(p);
}

/*
 * 2.3.99: to the tail, and whoever has ticks left goes first. 2.4.0: nothing if
 * nobody waits; else anybody goes first, and the place stays.
 */
bool OP(goodness_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *tctx = task_ctx(from);

	if (to || !tctx)
		return false;
	count(COUNT_YIELDS);
	if (variant_24 && scx_bpf_dsq_nr_queued(QUEUE) <= 0) {
		count(COUNT_YIELDS_IGNORED);
		return true;
	}
	tctx->yielding = true;
	if (!variant_24) {
		tctx->key = tail();
		tctx->queued = true;
	}
	set_slice(from, 0);
	return true;
}

void OP(goodness_stopping, struct task_struct *p, bool runnable)
{
	leave(p, runnable);
}

void OP(goodness_quiescent, struct task_struct *p, u64 deq_flags)
{
	go_to_sleep(p, task_ctx(p), deq_flags);
}

/* ---- Machine, load and unload ---- */

void OP_SLEEPABLE(goodness_cpu_online, s32 cpu)
{
	set_leaving(cpu, false);
}

void OP(goodness_cpu_offline, s32 cpu)
{
	set_leaving(cpu, true);
	hand_over(QUEUE, cpu);
}

s32 OP_SLEEPABLE(goodness_init)
{
	if (variant != 24 && variant != 99) {
		scx_bpf_error("variant is 24 or 99, not %d", (u64)variant);
		return -EINVAL;
	}
	variant_24 = variant == 24;
	source_hz = hz;
	measure_machine();
	return scx_bpf_create_dsq(QUEUE, -1);
}

void OP(goodness_exit, struct scx_exit_info *info)
{
	report_exit(info);
}

/*
 * No share is kept for tasks that are bound to a CPU, nor in 2.4.0: what another CPU recalculates
 * refills the task that runs there, which never runs out if its quantum is the longer one.
 */
POLICY_RIGHT("none");

/* Tasks that exit or must not migrate are tasks like others. */
POLICY(goodness_ops,
       .flags		= SCX_OPS_ENQ_EXITING | SCX_OPS_ENQ_MIGRATION_DISABLED,
       .init_task	= (void *)goodness_init_task,
       .set_weight	= (void *)goodness_set_weight,
       .select_cpu	= (void *)goodness_select_cpu,
       .enqueue		= (void *)goodness_enqueue,
       .dispatch	= (void *)goodness_dispatch,
       .running		= (void *)goodness_running,
       .tick		= (void *)goodness_tick,
       .yield		= (void *)goodness_yield,
       .stopping	= (void *)goodness_stopping,
       .quiescent	= (void *)goodness_quiescent,
       .cpu_online	= (void *)goodness_cpu_online,
       .cpu_offline	= (void *)goodness_cpu_offline,
       .init		= (void *)goodness_init,
       .exit		= (void *)goodness_exit,
       .name		= "goodness");
