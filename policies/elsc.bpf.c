/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ELSC: the 2.3.99 scheduler with its queue kept sorted.
 *
 * Twenty lists hold the tasks that wait, by ticks left plus priority, which
 * do not change while they wait. A choice looks at a few tasks of the highest
 * list that has somebody with ticks left, so its cost does not grow with the
 * number of tasks. Tasks without ticks stand at the end of the list in which
 * the next recalculation finds them. All else is as in goodness: ticks,
 * recalculation, fork, exit, and who preempts whom.
 *
 * Source: Molloy and Honeyman, "Scalable Linux Scheduling", USENIX Annual
 * Technical Conference, FREENIX track, 2001.
 * Differs from the source: the ten lists of real-time tasks are missing, since
 * such tasks stand above the policy; with no room above, all tasks from
 * static goodness 80 on share the last list; a task that may not run on a CPU
 * is passed over and not counted, and a recalculation is due when no task that
 * may run there has ticks left; the rest as goodness differs from its source.
 *
 * The source names a heap as another way to keep the queue sorted: the knob
 * heap. One order has all tasks then, and a choice looks at its first few.
 *
 * What cannot hold under sched_ext: the one lock for the whole table, and the
 * order of real-time tasks. What the paper leaves open is decided at the place
 * where it matters and marked "Decision". The lists are made for the counters of
 * a clock with 100 ticks a second.
 *
 * Differs from goodness, as the paper means it to: the search stays in one
 * list and ends after a few tasks, so a task of a lower list, or one further
 * behind, is passed over even if a bonus would lift it; on the kernel for one
 * CPU it ends at the first task that shares the address space; a yielder that
 * is alone in its list runs again, without a recalculation and before all
 * lower lists, and gives way to anybody within it; a task that loses the CPU
 * goes to the front of its list, and of equals the last to come is the first.
 *
 * The kernel ends a policy under which a task waits too long (30 s): some 150
 * CPU hogs at nice 0 on one CPU are enough. The guard against that, guard_ms,
 * and kthreads_fast, without which RCU's and per-CPU kernel threads wait behind
 * hogs and stall a kernel, are off in a simulation, as in the source, and on on
 * a kernel.
 */
#include <goodness.bpf.h>

BPF_LICENSE();

/* ---- Tunables ---- */

KNOB_AT_LOAD(bool, heap, 0, "bool",
	     "one order of all tasks, as of a heap, instead of the lists (at load)", 0, 1);

/* ---- State ---- */

/*
 * The table. A list is a queue with its number as id, 19 the best. Keys order
 * its two sections: those with ticks left carry the number of the present
 * recalculation in their high bits, those without the next number, so that a
 * recalculation turns the second section into the first without touching it.
 * The kernel compares keys as a signed difference, so the number may wrap.
 */
#define NR_LISTS 20
#define ROUND_SHIFT 48
#define MIDDLE (1ULL << (ROUND_SHIFT - 1))

static u64 keys_used;

/*
 * With the knob `heap` list 0 has all tasks, and below the section the key has
 * what a task is worth without a bonus, the best first. Counter and priority
 * are 120 at most. Decision: a choice looks at as many of the best as it does
 * of a list.
 */
#define WORTH_MAX 127
#define WORTH_SHIFT 40
#define HEAP_MIDDLE (1ULL << (WORTH_SHIFT - 1))

static bool is_heap;

/*
 * Tasks that stand in each list, or are on their way from it to a CPU: who is in
 * the list is counted before the kernel puts it there. The source knows from an
 * index which lists to look at; asking the kernel for the length of each would
 * cost more than all the rest of a choice.
 */
static volatile u32 members[NR_LISTS];

/* The task stands in no list any more. */
static __always_inline void uncount(struct task_ctx *tctx)
{
	u32 list = tctx->counted_in - 1;

	if (tctx->counted_in && list < NR_LISTS)
		__sync_fetch_and_add(&members[list], -1);
	tctx->counted_in = 0;
}

/* The task comes to its list. */
static __always_inline void count_member(struct task_ctx *tctx)
{
	u32 list = tctx->list;

	uncount(tctx);
	if (list >= NR_LISTS)
		return;
	__sync_fetch_and_add(&members[list], 1);
	tctx->counted_in = list + 1;
}

/* Reports show the list that a task was in before it ran. */
static __always_inline u32 level_of(struct task_ctx *tctx)
{
	return tctx->list;
}

/*
 * A task's place in the table: with ticks left at the front of its list, else
 * at the end of that in which it will be after the next recalculation.
 * Decision: the highest list takes all that would come to lie above it.
 */
static void add(struct task_ctx *tctx)
{
	u64 round, section, place = __sync_fetch_and_add(&keys_used, 1);
	u32 counter, worth;

	catch_up(&tctx->credit);
	counter = counter_of(&tctx->credit);
	round = tctx->credit.word >> 32;
	section = (counter ? round : round + 1) << ROUND_SHIFT;
	worth = (counter ?: tctx->credit.quantum) + tctx->credit.base;
	if (is_heap) {
		tctx->list = 0;
		section += (u64)(WORTH_MAX - min(worth, (u32)WORTH_MAX)) << WORTH_SHIFT;
		section += HEAP_MIDDLE;
	} else {
		tctx->list = min(worth / 4, (u32)NR_LISTS - 1);
		section += MIDDLE;
	}
	tctx->key = counter ? section - place : section + place;
	tctx->queued = true;
}

/* ---- The choice: schedule() ---- */

enum verdict {
	KEEPS,		/* prev goes on */
	TAKEN,		/* another task is on its way to the CPU */
	MISSED,		/* another CPU was faster */
	NOBODY,		/* with ticks left */
};

/*
 * What a search has to know. It lies in a map, where a verifier knows no values:
 * on the stack it would follow all loops anew for each combination.
 */
struct search {
	u64 now;
	u64 mm;
	s32 weight;			/* what prev is worth */
	u32 list;			/* ... and its list; NR_LISTS: there is no prev */
	bool prev_first;		/* prev stands at the front of its list, else at its end */
	bool yielding;			/* prev is the last choice */
	bool dry;			/* somebody who may run here has no ticks left */
};

ARRAY(searches, struct search, NR_CPUS_MAX);

static __always_inline struct search *search_of(s32 cpu)
{
	u32 index = cpu;

	return bpf_map_lookup_elem(&searches, &index);
}

/* What a search has found in one list. */
struct found {
	struct task_struct *next;	/* NULL: prev, if anybody */
	s32 best;
	u32 looked;
	bool fallback;			/* the yielder is here */
	bool done;
};

/*
 * Tasks to look at in one list. Read anew each time: a verifier that remembers
 * the limit from one task to the next learns how many it has counted, and
 * follows the loop once a number instead of once.
 */
static __always_inline u32 limit(void)
{
	return *(volatile u32 *)&nr_cpus / 2 + 5;
}

/* Looks at prev, which stands in the table although it is in no queue yet. */
static __always_inline void look_at_prev(struct search *s, struct found *f)
{
	f->looked++;
	if (!s->weight) {
		s->dry = true;
		f->done = true;
	} else if (s->yielding) {
		f->fallback = true;
	} else {
		if (s->weight > f->best) {
			f->best = s->weight;
			f->next = NULL;
		}
		/* On one CPU nothing better is to be expected than one's own address space. */
		f->done = !smp_kernel;
	}
}

/*
 * Looks through one list; an enum verdict. Of equals the first one wins. Decision:
 * every task looked at counts towards the limit. Not static, so that a verifier
 * follows it once, not once a list.
 */
__noinline int search_list(s32 cpu, u32 list)
{
	struct search *s = search_of(cpu);
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	enum verdict verdict = MISSED;
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	struct found f = {};
	bool has_prev;

	if (!s || !cctx)
		return NOBODY;
	has_prev = s->list == list;
	if (has_prev && s->prev_first)
		look_at_prev(s, &f);
	bpf_iter_scx_dsq_new(&it, list, 0);
	while (!f.done && f.looked < limit() && (p = bpf_iter_scx_dsq_next(&it))) {
		struct task_ctx *tctx = task_ctx(p);
		s32 weight;

		if (!tctx || !may_run_on(p, cpu))
			continue;
		f.looked++;
		weight = goodness(p, tctx, cpu, s->mm);
		if (!weight) {
			s->dry = true;
			f.done = true;
			continue;
		}
		if (weight > f.best) {
			f.best = weight;
			f.next = p;
		}
		f.done = !smp_kernel && shares_mm(p, s->mm);
	}
	if (has_prev && !s->prev_first && !f.done && f.looked < limit())
		look_at_prev(s, &f);
	/* The source knows beforehand which lists have somebody with ticks left. */
	if (f.best || f.fallback)
		count_by(COUNT_EXAMINED, f.looked);
	if (f.next) {
		struct task_ctx *tctx = task_ctx(f.next);

		if (tctx && scx_bpf_dsq_move(&it, f.next, SCX_DSQ_LOCAL, 0)) {
			take(cctx, cpu, f.next, tctx, s->now);
			verdict = TAKEN;
		}
	} else {
		verdict = f.best || f.fallback ? KEEPS : NOBODY;
	}
	bpf_iter_scx_dsq_destroy(&it);
	return verdict;
}

/*
 * The highest list below `below` that may have somebody, as the source's index of
 * it; -1: none has. Not static, so that a verifier follows the loop once.
 */
__noinline int next_list(s32 cpu, u32 below)
{
	struct search *s = search_of(cpu);
	u32 list;

	for (list = NR_LISTS; s && list-- > 0;) {
		if (list < below && (members[list] || s->list == list))
			return list;
	}
	return -1;
}

/* The highest list that has somebody. Decision: if nobody may be taken there, the next lower. */
static __always_inline enum verdict search_table(struct search *s, s32 cpu)
{
	enum verdict verdict = NOBODY;
	u32 i, below = NR_LISTS;

	for_each_number(i, 0, NR_LISTS) {
		s32 list = next_list(cpu, below);

		if (list < 0)
			break;
		below = list;
		verdict = search_list(cpu, list);
		if (verdict != NOBODY)
			break;
	}
	return verdict;
}

/* Takes whom the kernel finds first, highest list first. */
static __always_inline bool take_anybody(void)
{
	u32 i;

	for_each_number(i, 0, NR_LISTS)
		if (scx_bpf_dsq_move_to_local(NR_LISTS - 1 - i))
			return true;
	return false;
}

/* A recalculation asks for a second search, and each race that is lost for one more. */
#define SEARCHES_MAX 4

/* `prev` could go on, or is NULL. */
static __always_inline enum verdict schedule(struct search *s, struct task_struct *prev,
					     struct task_ctx *tctx, s32 cpu)
{
	enum verdict verdict = NOBODY;
	u32 i;

	for_each_number(i, 0, SEARCHES_MAX) {
		u32 seen = epoch;

		s->dry = false;
		if (prev && tctx)
			s->weight = goodness(prev, tctx, cpu, s->mm);
		verdict = search_table(s, cpu);
		if (verdict == NOBODY && s->dry)
			recalculate(seen);
		else if (verdict != MISSED)
			break;
	}
	/* Unlucky every time: better anybody than an idle CPU. */
	if (verdict == MISSED || (verdict == NOBODY && s->dry))
		verdict = take_anybody() ? TAKEN : s->list < NR_LISTS ? KEEPS : NOBODY;
	return verdict;
}

/* ---- Callbacks, in the order of a task's life ---- */

s32 OP_SLEEPABLE(elsc_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	return admit(p, args);
}

void OP(elsc_set_weight, struct task_struct *p, u32 weight)
{
	struct task_ctx *tctx = task_ctx(p);

	change_priority(p);
	/* Another priority, another list. */
	if (tctx)
		tctx->queued = false;
}

s32 OP(elsc_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return cpu_for(p, prev_cpu, wake_flags);
}

void OP(elsc_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = task_ctx(p);

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
	if (!tctx->queued)
		add(tctx);
	note_wait(tctx);
	count_member(tctx);
	scx_bpf_dsq_insert_vtime(p, tctx->list, SLICE_NS, tctx->key, enq_flags);
	after_enqueue(p, tctx, enq_flags, false);
}

/* Whether the guard has found somebody. */
static __always_inline bool guard(struct cpu_ctx *cctx, s32 cpu, u64 now)
{
	bool found = false;
	u32 list;

	if (!guard_looks(&cctx->guard, now))
		return false;
	for_each_number(list, 0, NR_LISTS) {
		found = rescue(list, cpu);
		if (found)
			break;
	}
	guard_looked(&cctx->guard, found);
	return found;
}

void OP(elsc_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *tctx = prev ? task_ctx(prev) : NULL;
	struct cpu_ctx *cctx = cpu_ctx(cpu);
	struct search *s = search_of(cpu);
	bool goes_on;

	if (!cctx || !s)
		return;
	s->now = scx_bpf_now();
	if (guard(cctx, cpu, s->now))
		return;
	count(COUNT_SCHEDULES);
	s->yielding = false;
	s->list = NR_LISTS;
	s->mm = active_mm(cctx, prev);
	goes_on = tctx && (prev->scx.flags & SCX_TASK_QUEUED);
	if (goes_on) {
		charge(&tctx->credit, s->now);
		add(tctx);
		s->list = tctx->list;
		s->prev_first = counter_of(&tctx->credit) > 0;
		s->yielding = tctx->yielding;
		tctx->yielding = false;
	}
	if (schedule(s, goes_on ? prev : NULL, tctx, cpu) != KEEPS) {
		end_turn(cctx, tctx, s->now);
		return;
	}
	if (prev && tctx) {
		if (s->yielding)
			count(COUNT_YIELDS_IN_VAIN);
		tctx->queued = false;
		keep(cctx, prev, tctx);
	}
}

void OP(elsc_running, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);

	arrive(p, tctx);
	/* A running task is in no list. */
	if (tctx) {
		tctx->queued = false;
		uncount(tctx);
	}
}

void OP(elsc_tick, struct task_struct *p)
{
	pass_tick(p);
}

bool OP(elsc_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *tctx = task_ctx(from);

	if (to || !tctx)
		return false;
	count(COUNT_YIELDS);
	tctx->yielding = true;
	set_slice(from, 0);
	return true;
}

void OP(elsc_stopping, struct task_struct *p, bool runnable)
{
	leave(p, runnable);
}

void OP(elsc_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tctx = task_ctx(p);

	go_to_sleep(p, tctx, deq_flags);
	if (tctx)
		uncount(tctx);
}

/* ---- Machine, load and unload ---- */

void OP_SLEEPABLE(elsc_cpu_online, s32 cpu)
{
	set_leaving(cpu, false);
}

void OP(elsc_cpu_offline, s32 cpu)
{
	u32 list;

	set_leaving(cpu, true);
	for_each_number(list, 0, NR_LISTS)
		hand_over(list, cpu);
}

s32 OP_SLEEPABLE(elsc_init)
{
	u32 list;
	s32 error;

	measure_machine();
	is_heap = heap;
	for (list = 0; list < NR_LISTS; list++) {
		error = scx_bpf_create_dsq(list, -1);
		if (error)
			return error;
	}
	return 0;
}

void OP(elsc_exit, struct scx_exit_info *info)
{
	report_exit(info);
}

/* No share is kept for tasks that are bound to a CPU, as in goodness. */
POLICY_RIGHT("none");

/* Tasks that exit or must not migrate are tasks like others. */
POLICY(elsc_ops,
       .flags		= SCX_OPS_ENQ_EXITING | SCX_OPS_ENQ_MIGRATION_DISABLED,
       .init_task	= (void *)elsc_init_task,
       .set_weight	= (void *)elsc_set_weight,
       .select_cpu	= (void *)elsc_select_cpu,
       .enqueue		= (void *)elsc_enqueue,
       .dispatch	= (void *)elsc_dispatch,
       .running		= (void *)elsc_running,
       .tick		= (void *)elsc_tick,
       .yield		= (void *)elsc_yield,
       .stopping	= (void *)elsc_stopping,
       .quiescent	= (void *)elsc_quiescent,
       .cpu_online	= (void *)elsc_cpu_online,
       .cpu_offline	= (void *)elsc_cpu_offline,
       .init		= (void *)elsc_init,
       .exit		= (void *)elsc_exit,
       .name		= "elsc");
