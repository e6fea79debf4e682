/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The balancer of scheduling domains, over the queues of percpu.bpf.h. A source that
 * includes it first has it instead of that of 2.6.3 (balance.bpf.h), under the same names.
 *
 * CPUs of a core, CPUs of a node and all CPUs form domains, and a domain has groups:
 * CPUs, cores, nodes. The load of a group is divided by its power. In each of its
 * domains a CPU compares its own group with the busiest other one, and pulls as many
 * tasks as bring both nearer to the average. It looks each millisecond when idle and
 * each 64 when busy, more seldom while nothing is to be done, and when its last task
 * goes. A load is what runs and waits, and half of what it was a tick before: the
 * smaller of now and before for others, the greater for the own group. A task leaves
 * its CPU alone while it is hot there, until pulling has failed. After three more
 * failures an idle CPU whose core, or node, is idle gets the task that runs.
 *
 * A woken task goes to its waker's CPU if a domain has both CPUs and either of two
 * holds: the task is no longer hot where it ran, or that CPU is the busier one by half
 * of the imbalance at which tasks are pulled. In a core it takes an idle CPU.
 *
 * Source: kernel/sched.c of the spring of 2004, as in 2.6.5 with -mm patches and in
 * 2.6.7 (rebalance_tick, idle_balance, can_migrate_task, try_to_wake_up), with the
 * numbers of SD_*_INIT in include/linux/sched.h; that of March for 2.6.4 is not kept
 * anywhere that we know. Pulled is the smaller distance from the average times the
 * smaller power, as then; from 2005 on each distance is weighed with its own power.
 * Differs from the source: one timer looks for all CPUs at each millisecond, whatever
 * the tick, in the order of their numbers; groups are blocks of neighbouring CPUs, and
 * `smt_cpus` says how many a core has; a program is not moved to the idlest node when
 * it is executed, because sched_ext has nothing for it; active balancing gives a task
 * to the CPU that asked and not to each idle group; a CPU that runs out of work takes
 * all that it pulls into its active array. Its timer calls idle CPUs for nothing, so it
 * is no policy for a machine that is to save energy.
 */
#ifndef RUNSLICE_DOMAINS_BPF_H
#define RUNSLICE_DOMAINS_BPF_H
#define RUNSLICE_BALANCE_BPF_H

#include <knobs.bpf.h>
#include <life.bpf.h>
#include <percpu.bpf.h>

KNOB_AT_LOAD(bool, domains, 1, "bool",
	     "scheduling domains balance the CPUs (at load), as in Linux 2.6.4 with -mm patches", 1,
	     1);
KNOB_AT_LOAD(u32, smt_cpus, 1, "CPUs", "CPUs of a core (at load)", 1, 1024);
KNOB_AT_LOAD(u32, node_cpus, 0, "CPUs",
	     "CPUs of a node (at load); 0: as the machine has them", 0, 1024);

enum {
	COUNT_LB_RESCHED = NR_PERCPU_COUNTERS,	/* a CPU is about to go idle */
	COUNT_LB_IMBALANCE,
	COUNT_LB_NODE,		/* between nodes; neither idle, busy nor resched */
	COUNT_PULLED_NODE,	/* also in `pulled` */
	COUNT_PULLED_NODE_FROM,	/* of the CPU that loses */
	COUNT_LB_FAILED,	/* a busier CPU, and no task that may leave it */
	COUNT_PUSHED,		/* tasks that had to leave their CPU while they ran */
	COUNT_WOKEN_HERE,	/* of the waker that drew a task to itself */
	NR_BALANCE_COUNTERS,
};

#define BALANCE_COUNTERS PERCPU_COUNTERS, "lb_resched", "lb_imbalance", "lb_node",	\
	"pulled_node", "pulled_node_from", "lb_failed", "pushed", "woken_here"

/* ---- Domains ---- */

enum level {
	SIBLINGS,
	CPUS,
	NODES,
	NR_LEVELS,
};

enum why {
	IDLE,
	BUSY,
	NEWLY_IDLE,
};

#define LOAD_SCALE 128
#define TICK_NS NSEC_PER_MSEC

/* Of a domain: intervals in ticks, percent, nanoseconds. */
struct numbers {
	u32 min_interval;
	u32 max_interval;
	u32 busy_factor;
	u32 imbalance_pct;
	u64 hot_ns;
	u32 tries;		/* failures up to which hot tasks stay */
};

/* SD_SIBLING_INIT, SD_CPU_INIT, SD_NODE_INIT; max_interval of nodes: 256 * fls(CPUs). */
static struct numbers numbers[NR_LEVELS] = {
	[SIBLINGS] = { 1, 2, 8, 110, 0, 0 },
	[CPUS] = { 1, 4, 64, 125, 5 * NSEC_PER_MSEC / 2, 1 },
	[NODES] = { 8, 256, 32, 125, 10 * NSEC_PER_MSEC, 1 },
};

/* What a CPU knows of one of its domains. */
struct domain {
	u64 looked;		/* ticks */
	u32 interval;
	u32 failed;
};

struct balanced {
	u32 load;		/* rq->cpu_load */
	bool is_asked;		/* the task that runs is to leave the CPU */
	u64 leaves_ns;		/* the choice at which it does */
	s32 receiver;		/* the CPU that gets it */
	s32 giver;		/* the CPU that gives one to this; -1: none */
	struct domain domains[NR_LEVELS];
};

ARRAY(all_balanced, struct balanced, NR_CPUS_MAX);

static u8 node_numbers[NR_CPUS_MAX];
static bool has_nodes;

static __always_inline struct balanced *balanced(s32 cpu)
{
	u32 row = cpu;

	return bpf_map_lookup_elem(&all_balanced, &row);
}

static __always_inline u32 core_of(u32 cpu)
{
	return cpu / max(smt_cpus, 1U);
}

static __always_inline u32 node_of(u32 cpu)
{
	return cpu < NR_CPUS_MAX ? node_numbers[cpu] : 0;
}

static __always_inline bool is_one_domain(u32 level, u32 cpu, u32 other)
{
	if (level == SIBLINGS)
		return core_of(cpu) == core_of(other);
	return level == NODES || node_of(cpu) == node_of(other);
}

static __always_inline u32 group_of(u32 level, u32 cpu)
{
	if (level == SIBLINGS)
		return cpu;
	return level == CPUS ? core_of(cpu) : node_of(cpu);
}

/* What a CPU adds to the power of its group: each further one of a core a tenth. */
static __always_inline u32 power_of(u32 level, u32 cpu)
{
	bool is_first = level == SIBLINGS || cpu % max(smt_cpus, 1U) == 0;

	return is_first ? LOAD_SCALE : LOAD_SCALE / 10;
}

static __always_inline bool has_level(u32 level)
{
	if (level == SIBLINGS)
		return smt_cpus > 1;
	return level == CPUS || has_nodes;
}

/* ---- Loads ---- */

/* What `cpu` has to do: tasks that wait and the one that runs, whatever its class. */
static u32 nr_running(s32 cpu)
{
	struct cpu_queue *cq = cpu_queue(cpu);
	s32 waiting = scx_bpf_dsq_nr_queued(cpu);

	if (waiting < 0 || !cq)
		return 0;
	return waiting + (cq->prio != NO_PRIO || (waiting && (cq->offline || is_outranked(cpu))));
}

/* source_load(): a low guess. */
static u32 source_load(s32 cpu)
{
	struct balanced *b = balanced(cpu);
	u32 now = nr_running(cpu) * LOAD_SCALE;

	return b ? min(b->load, now) : now;
}

/* target_load(): a high guess. */
static u32 target_load(s32 cpu)
{
	struct balanced *b = balanced(cpu);
	u32 now = nr_running(cpu) * LOAD_SCALE;

	return b ? max(b->load, now) : now;
}

/* ---- Who is busiest ---- */

/* A group while it is weighed, and what is known of the others. */
struct search {
	u64 total, power;	/* of all groups */
	u64 most, mine;		/* load by power: the busiest other group, the own */
	u64 busiest_power, own_power;
	u64 load, group_power;	/* of the group that is weighed */
	s32 busiest, first;	/* where it begins; -1: there is none */
	s32 source;		/* the CPU of the busiest group with the most */
	u32 source_load;
	s32 group_source;	/* the same of the group that is weighed */
	u32 group_source_load;
	bool is_own;
};

static void end_group(struct search *s)
{
	u64 load;

	if (!s->group_power)
		return;
	s->total += s->load;
	s->power += s->group_power;
	load = s->load * LOAD_SCALE / s->group_power;
	if (s->is_own) {
		s->mine = load;
		s->own_power = s->group_power;
	} else if (load > s->most) {
		s->most = load;
		s->busiest = s->first;
		s->busiest_power = s->group_power;
		s->source = s->group_source;
	}
	s->load = 0;
	s->group_power = 0;
	s->is_own = false;
	s->group_source = -1;
	s->group_source_load = 0;
}

static void weigh(struct search *s, u32 level, s32 cpu, s32 this_cpu)
{
	bool is_own = group_of(level, cpu) == group_of(level, this_cpu);
	u32 load = is_own ? target_load(cpu) : source_load(cpu);

	if (!s->group_power)
		s->first = cpu;
	if (!is_own && load > s->group_source_load) {
		s->group_source = cpu;
		s->group_source_load = load;
	}
	s->is_own |= is_own;
	s->load += load;
	s->group_power += power_of(level, cpu);
}

/* Whether one task more for the own group uses an eighth of a CPU more of both. */
static bool uses_more(struct search *s)
{
	u64 now = s->busiest_power * min((u64)LOAD_SCALE, s->most) +
		  s->own_power * min((u64)LOAD_SCALE, s->mine);
	u64 less = LOAD_SCALE * LOAD_SCALE / s->busiest_power;
	u64 more = min((u64)(LOAD_SCALE * LOAD_SCALE / s->own_power), s->most);
	u64 then = s->own_power * min((u64)LOAD_SCALE, s->mine + more);

	if (s->most > less)
		then += s->busiest_power * min((u64)LOAD_SCALE, s->most - less);
	return then / LOAD_SCALE >= now / LOAD_SCALE + LOAD_SCALE / 8;
}

/* How many tasks would bring both groups to the average. */
static u64 imbalance_of(struct search *s, u32 level, u32 why)
{
	u64 average, apart;

	if (s->busiest < 0 || level >= NR_LEVELS)
		return 0;
	average = LOAD_SCALE * s->total / s->power;
	if (s->mine < s->most && s->mine < average &&
	    100 * s->most > numbers[level].imbalance_pct * s->mine) {
		/* Without a sign: what lies below the average is far above it. */
		apart = min(s->most - average, average - s->mine);
		apart = apart * min(s->busiest_power, s->own_power) / LOAD_SCALE;
		if (apart >= LOAD_SCALE - 1)
			return (apart + 1) / LOAD_SCALE;
		if (s->most - s->mine >= 2 * LOAD_SCALE || uses_more(s))
			return 1;
	}
	return why != BUSY && s->most > LOAD_SCALE;
}

/*
 * find_busiest_group() and find_busiest_queue(): how many tasks to pull from s->source.
 * Not static, so that a verifier follows it once.
 */
__noinline u64 find_busiest(struct search *s, u32 level, s32 this_cpu, u32 why)
{
	u32 group = ~0U;
	int i;

	if (!s)
		return 0;
	s->busiest = s->source = s->group_source = -1;
	for_each_number(i, 0, nr_cpus) {
		struct cpu_queue *cq = cpu_queue(i);

		if (!cq || cq->offline || !is_one_domain(level, i, this_cpu))
			continue;
		if (group_of(level, i) != group)
			end_group(s);
		group = group_of(level, i);
		weigh(s, level, i, this_cpu);
	}
	end_group(s);
	return s->source < 0 ? 0 : imbalance_of(s, level, why);
}

/* ---- Pulling ---- */

/*
 * task_hot(). The source subtracts without a sign, so that a task which left its CPU
 * after the last tick is not hot.
 */
static __always_inline bool is_hot(struct queued *q, u64 hot_ns, u64 now)
{
	return now - now % TICK_NS - q->left_cpu_ns < hot_ns;
}

/* The expired array is robbed first, because its tasks are not in the cache. */
static __always_inline u64 pull_order(u64 key, struct cpu_queue *from)
{
	u64 prio = list_of(key) & ((1 << ARRAY_SHIFT) - 1);

	return is_active(from, key) ? prio + (1 << ARRAY_SHIFT) : prio;
}

/* Of the policy: somebody may be in the expired array of `cpu`. */
static void note_expired(s32 cpu);

/* Pulls one task: best rank first, the last of its list first. */
static bool pull_one(s32 from, s32 to, u64 hot_ns, bool idle)
{
	struct cpu_queue *source = cpu_queue(from), *target = cpu_queue(to);
	u64 best = ~0ULL, key = 0, now = scx_bpf_now();
	struct task_struct *p;
	bool pulled = false;

	if (!source || !target)
		return false;
	for_each_queued(it, p, from, 0) {
		struct queued *q = queued(p);
		u64 rank = pull_order(p->scx.dsq_vtime, source);

		if (q && rank <= best && may_run_on(p, to) && !is_hot(q, hot_ns, now)) {
			best = rank;
			key = p->scx.dsq_vtime;
		}
	}
	if (best == ~0ULL)
		return false;
	for_each_queued(again, p, from, 0) {
		struct queued *q = queued(p);

		if (!q || p->scx.dsq_vtime != key || !may_run_on(p, to))
			continue;
		if (idle || is_active(source, key)) {
			to_tail(q, target);
		} else {
			to_tail_of(q, expired_list(target, q->prio), target);
			note_expired(to);
		}
		scx_bpf_dsq_move_set_vtime(&again, q->key);
		pulled = scx_bpf_dsq_move_vtime(&again, p, to, 0);
		if (pulled && target->prio != NO_PRIO && q->prio < target->prio)
			kick(to, SCX_KICK_PREEMPT);
		break;
	}
	if (pulled) {
		count_for(to, COUNT_PULLED);
		count_for(from, COUNT_PULLED_FROM);
	}
	return pulled;
}

/* No more tasks are moved in one go; the source has no limit. */
#define PULLS_MAX 64

/* move_tasks(): how many came. */
static u32 pull(struct search *s, u64 imbalance, s32 cpu, struct domain *d, u32 level, u32 why)
{
	u32 pulled = 0;
	u64 hot_ns;
	int i;

	if (level >= NR_LEVELS || nr_running(s->source) <= 1)
		return 0;
	hot_ns = why == NEWLY_IDLE || d->failed < numbers[level].tries ? numbers[level].hot_ns : 0;
	for_each_number(i, 0, min(imbalance, (u64)PULLS_MAX)) {
		if (!pull_one(s->source, cpu, hot_ns, why != BUSY))
			break;
		pulled++;
		if (level == NODES) {
			count_for(cpu, COUNT_PULLED_NODE);
			count_for(s->source, COUNT_PULLED_NODE_FROM);
		}
	}
	return pulled;
}

/* ---- Active balancing: a task leaves its CPU while it runs ---- */

/* Whether no CPU of the group of `cpu` has anything to do. */
static bool is_idle_group(u32 level, s32 cpu)
{
	int i;

	for_each_number(i, 0, nr_cpus) {
		if (is_one_domain(level, i, cpu) && group_of(level, i) == group_of(level, cpu) &&
		    nr_running(i))
			return false;
	}
	return true;
}

/* active_load_balance(), as the migration thread of `from` does it. */
static void push(s32 from, s32 to, u32 level)
{
	struct balanced *giver = balanced(from), *receiver = balanced(to);

	if (!giver || !receiver || giver->is_asked || !is_idle_group(level, to))
		return;
	giver->is_asked = true;
	giver->receiver = to;
	receiver->giver = from;
	kick(from, SCX_KICK_PREEMPT);
}

/*
 * In `dispatch`, for a task that could go on, before the choice: if it is to leave, the
 * choice gives it no slice, and the kernel puts it into the queue of this CPU
 * (SCX_OPS_ENQ_LAST), from which the receiver takes it.
 */
static __always_inline void balance_busy(struct cpu_queue *cq, s32 cpu)
{
	struct balanced *b = balanced(cpu);

	if (!b || !b->is_asked)
		return;
	b->is_asked = false;
	b->leaves_ns = choice_ns(cq);
	kick(b->receiver, SCX_KICK_IDLE);
}

static __always_inline void set_slice_unless_it_leaves(struct task_struct *p, u64 slice)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct balanced *b = balanced(cpu);
	struct cpu_queue *cq = cpu_queue(cpu);

	if (slice && b && cq && b->leaves_ns && b->leaves_ns == choice_ns(cq))
		return;
	set_slice(p, slice);
}

/* In the policies that follow, and nowhere above. */
#define set_slice set_slice_unless_it_leaves

/* In `dispatch` of an idle CPU: whether it got a task that another CPU has let go. */
static bool receive(s32 cpu)
{
	struct balanced *b = balanced(cpu);
	s32 giver;

	if (!b || b->giver < 0)
		return false;
	giver = b->giver;
	b->giver = -1;
	if (pull_one(giver, cpu, 0, true)) {
		count_for(cpu, COUNT_PUSHED);
		return true;
	}
	kick(giver, SCX_KICK_IDLE);
	return false;
}

static u32 counter_of(u32 level, u32 why)
{
	if (why == NEWLY_IDLE)
		return COUNT_LB_RESCHED;
	if (level == NODES)
		return COUNT_LB_NODE;
	return why == IDLE ? COUNT_LB_IDLE : COUNT_LB_BUSY;
}

/* load_balance(), and load_balance_newidle(), which leaves intervals alone. */
__noinline u32 balance(s32 cpu, u32 level, u32 why)
{
	struct balanced *b = balanced(cpu);
	struct search s = {};
	struct domain *d;
	u64 imbalance;
	u32 pulled = 0;

	if (!b || level >= NR_LEVELS)
		return 0;
	d = &b->domains[level];
	count_for(cpu, counter_of(level, why));
	imbalance = find_busiest(&s, level, cpu, why);
	if (imbalance) {
		pulled = pull(&s, imbalance, cpu, d, level, why);
		count_by(COUNT_LB_IMBALANCE, imbalance);
	} else {
		count_for(cpu, COUNT_LB_NOT_FOUND);
	}
	if (why == NEWLY_IDLE)
		return pulled;
	if (!imbalance) {
		if (d->interval < numbers[level].max_interval)
			d->interval *= 2;
		return 0;
	}
	d->interval = numbers[level].min_interval;
	d->failed = pulled ? 0 : d->failed + 1;
	if (!pulled)
		count_for(cpu, COUNT_LB_FAILED);
	if (d->failed > numbers[level].tries + 2) {
		d->failed = numbers[level].tries;
		push(s.source, cpu, level);
	}
	return pulled;
}

/* ---- The tick of all CPUs ---- */

struct tick {
	struct bpf_timer timer;
};

ARRAY(ticks, struct tick, 1);

/* rebalance_tick(). CPUs look at different times: CPU_OFFSET, in ticks. */
static void tick_of(s32 cpu, u64 tick)
{
	struct cpu_queue *cq = cpu_queue(cpu);
	struct balanced *b = balanced(cpu);
	u64 at = tick + 1000 * cpu / max(nr_cpus, 1U);
	u32 running = nr_running(cpu);
	bool idle = !running, pulled = false;
	u32 level;

	if (!cq || cq->offline || !b)
		return;
	b->load = (b->load + running * LOAD_SCALE) / 2;
	for (level = 0; level < NR_LEVELS; level++) {
		struct domain *d = &b->domains[level];
		u64 interval = d->interval;

		if (!has_level(level))
			continue;
		if (!idle)
			interval *= numbers[level].busy_factor;
		if (at - d->looked < max(interval, 1ULL))
			continue;
		d->looked += max(interval, 1ULL);
		if (balance(cpu, level, idle ? IDLE : BUSY)) {
			pulled = true;
			idle = false;
		}
	}
	/* Also for a task that was let go and that nobody received. */
	if (cq->prio == NO_PRIO && (pulled || running))
		kick(cpu, SCX_KICK_IDLE);
}

static __always_inline s64 start_tick(struct tick *tick)
{
	return bpf_timer_start(&tick->timer, TICK_NS - bpf_ktime_get_ns() % TICK_NS, 0);
}

static int tick_all(void *map, u32 *key, struct tick *tick)
{
	u64 now = bpf_ktime_get_ns() / TICK_NS;
	int i;

	for_each_number(i, 0, nr_cpus)
		tick_of(i, now);
	start_tick(tick);
	return 0;
}

/* ---- What a policy calls, as balance.bpf.h has it ---- */

/* idle_balance(): a CPU whose task has gone. In `dispatch` only. */
static bool take_or_pull(s32 cpu, bool was_idle)
{
	u32 level;

	if (scx_bpf_dsq_move_to_local(cpu))
		return true;
	if (nr_cpus < 2)
		return false;
	if (was_idle)
		return receive(cpu) && scx_bpf_dsq_move_to_local(cpu);
	/* Nodes have no SD_BALANCE_NEWIDLE. */
	for (level = SIBLINGS; level < NODES; level++) {
		if (has_level(level) && balance(cpu, level, NEWLY_IDLE))
			return scx_bpf_dsq_move_to_local(cpu);
	}
	return false;
}

static __always_inline void end_tick(struct task_struct *p, u64 now)
{
	struct cpu_queue *cq = cpu_queue(scx_bpf_task_cpu(p));

	if (cq)
		look_around(p, cq, now, false);
}

static __always_inline bool is_idle_cpu(s32 cpu)
{
	return !nr_running(cpu);
}

/* Whether the waker's CPU draws the task to itself from `cpu`, where it ran. */
static bool draws(struct queued *q, s32 cpu, s32 this_cpu)
{
	u64 load = source_load(cpu), this_load = target_load(this_cpu), now = scx_bpf_now();
	u32 level;

	if (load < LOAD_SCALE / 2 && this_load > LOAD_SCALE / 2)
		return false;
	for (level = 0; level < NR_LEVELS; level++) {
		struct numbers *n = &numbers[level];
		u64 percent = n->imbalance_pct + (n->imbalance_pct - 100) / 2;
		/* Siblings do not look at loads, nodes not at caches. */
		bool is_cold = level != NODES && !is_hot(q, n->hot_ns, now);
		bool is_busier = level != SIBLINGS && percent * this_load <= 100 * load;

		if (has_level(level) && (is_cold || is_busier) &&
		    is_one_domain(level, cpu, this_cpu))
			return true;
	}
	return false;
}

/* wake_idle(): an idle CPU of the same core, if `cpu` is busy. */
static s32 idle_sibling(struct task_struct *p, s32 cpu)
{
	s32 first = cpu - cpu % max(smt_cpus, 1U);
	int i;

	if (smt_cpus < 2 || is_idle_cpu(cpu))
		return cpu;
	for_each_number(i, first, min(first + smt_cpus, nr_cpus)) {
		if (may_run_on(p, i) && is_idle_cpu(i))
			return i;
	}
	return cpu;
}

/* try_to_wake_up(): where a woken task goes. In `select_cpu`; a child stays at its parent. */
static __always_inline s32 woken_on(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
				    bool takes_along)
{
	s32 this_cpu = bpf_get_smp_processor_id();
	s32 cpu = prev_cpu;
	struct queued *q = queued(p);

	if (wake_idle)
		return choose_cpu(p, prev_cpu, wake_flags, takes_along);
	if (!q || nr_cpus < 2 || (wake_flags & SCX_WAKE_FORK))
		return prev_cpu;
	if (prev_cpu != this_cpu && may_run_on(p, this_cpu) && draws(q, prev_cpu, this_cpu)) {
		cpu = this_cpu;
		count(COUNT_WOKEN_HERE);
	}
	return idle_sibling(p, cpu);
}

/* What follows this header wakes by domains. */
#define choose_cpu woken_on

/* ---- Load ---- */

static void measure_domains(void)
{
	const struct cpumask *possible = scx_bpf_get_possible_cpumask();
	u64 now = bpf_ktime_get_ns() / TICK_NS;
	u32 cpu, level;

	for_each_number(cpu, 0, nr_cpus) {
		struct balanced *b = balanced(cpu);
		u32 node = 0;

		if (cpu >= NR_CPUS_MAX || !b)
			break;
		if (node_cpus)
			node = cpu / node_cpus;
		else if (bpf_cpumask_test_cpu(cpu, possible))
			node = scx_bpf_cpu_node(cpu);
		b->giver = -1;
		node_numbers[cpu] = min(node, 255U);
		has_nodes |= node > 0;
		for (level = 0; level < NR_LEVELS; level++) {
			u64 at = now + 1000 * cpu / max(nr_cpus, 1U);
			u64 busy = numbers[level].min_interval * numbers[level].busy_factor;

			/* As on a machine that has been up for long: nobody looks twice. */
			b->domains[level].looked = at - at % busy;
			b->domains[level].interval = numbers[level].min_interval;
		}
	}
	scx_bpf_put_cpumask(possible);
	for (cpu = nr_cpus; cpu > 1; cpu /= 2)
		numbers[NODES].max_interval += 256;
}

s32 OP_SLEEPABLE(balance_init)
{
	u32 row = 0;
	struct tick *tick = bpf_map_lookup_elem(&ticks, &row);
	s64 error = create_queues();

	if (error)
		return error;
	if (nr_cpus < 2 || !tick)
		return 0;
	nr_calling_cpus = 0;
	measure_domains();
	error = bpf_timer_init(&tick->timer, &ticks, CLOCK_MONOTONIC);
	if (!error)
		error = bpf_timer_set_callback(&tick->timer, tick_all);
	return error ?: start_tick(tick);
}

#define BALANCE_OPS								\
	.cpu_online	= (void *)percpu_cpu_online,				\
	.cpu_offline	= (void *)percpu_cpu_offline,				\
	.cpu_release	= (void *)percpu_cpu_release,				\
	.exit		= (void *)percpu_exit,					\
	.flags		= SCX_OPS_ENQ_EXITING | SCX_OPS_ENQ_LAST,		\
	.init		= (void *)balance_init

#endif /* RUNSLICE_DOMAINS_BPF_H */
