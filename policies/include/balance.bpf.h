/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The balancer of Linux 2.6.3, over the queues of percpu.bpf.h.
 *
 * A CPU that runs out of work takes one task from the CPU of its node with the
 * most; every busy_ns a busy CPU takes half of the difference, if that is a
 * quarter of the other's load at least. A busy CPU compares the smaller of the
 * others' loads now and at its last look, and the greater of its own, so that
 * short peaks move nothing. Every idle_ns an idle CPU looks as one does that runs
 * out of work. More seldom, and before that, a CPU looks for the
 * node with the most tasks a CPU, to which half of what it saw there before is
 * added, and if that is a quarter more than at its own, does the same with the
 * CPUs of that node.
 *
 * Source: kernel/sched.c of Linux 2.6.3 (find_busiest_queue, load_balance,
 * find_busiest_node, balance_node).
 * Differs from the source: a new program is not moved to the idlest node when
 * it is executed, because no callback tells of that; CPUs look when they
 * dispatch, not in the tick, and idle ones when a busy one calls them unless
 * `idle_ns` lets them look each millisecond, as in the source; the
 * source's count of tasks to pull runs below zero when the difference is 1 and
 * then empties the other list, which `faithful_underflow` brings back. A CPU
 * that has gone offline counts as loaded, so that the tasks in its queue are
 * not left behind.
 *
 * Its counters stand behind those of percpu.bpf.h, and the policy's own behind
 * them. A policy has BALANCE_OPS in its table.
 */
#ifndef RUNSLICE_BALANCE_BPF_H
#define RUNSLICE_BALANCE_BPF_H

#include <percpu.bpf.h>
#include <knobs.bpf.h>

KNOB(u64, busy_ns, 200000000, "ns", "how often a busy CPU looks for work elsewhere; 0 never", 0,
     10000000000);
KNOB_AT_LOAD(u64, idle_ns, 0, "ns",
     "how often an idle CPU looks for work elsewhere (at load); 0: when a busy one calls it", 0,
     1000000000);
KNOB(u64, cache_hot_ns, 1000000, "ns", "a busy CPU leaves tasks alone that ran so recently", 0,
     1000000000);
KNOB(bool, faithful_underflow, 0, "bool",
     "a busy CPU that finds a difference of 1 pulls all tasks, as 2.6.3 did", 0, 1);

KNOB_AT_LOAD(u32, node_cpus, 0, "CPUs",
	     "CPUs of a node (at load); 0: as the machine has them", 0, 1024);

enum {
	COUNT_LB_RESCHED = NR_PERCPU_COUNTERS,	/* a CPU is about to go idle */
	COUNT_LB_IMBALANCE,
	COUNT_LB_NODE,		/* from balance_node(); neither idle, busy nor resched */
	COUNT_PULLED_NODE,	/* also in `pulled` */
	COUNT_PULLED_NODE_FROM,	/* of the CPU that loses */
	COUNT_NODE_LOOKS,
	COUNT_NODE_LOOKS_IDLE,
	NR_BALANCE_COUNTERS,
};

#define BALANCE_COUNTERS PERCPU_COUNTERS, "lb_resched", "lb_imbalance", "lb_node",	\
	"pulled_node", "pulled_node_from", "node_looks", "node_looks_idle"

/* ---- Nodes ---- */

/* CPUs of nodes beyond these count to the last. */
#define NODES_MAX 64
#define IDLE_NODE_NS (5 * NSEC_PER_MSEC)
/* A node that has less than this more than the own one is left alone. */
#define NODE_THRESHOLD_PERCENT 125

static u32 nr_nodes = 1;
static u8 node_numbers[NR_CPUS_MAX];
static u32 node_sizes[NODES_MAX];

/* What a CPU saw of the nodes at its last look at them. */
struct nodes {
	u64 looked_ns;
	u32 running[NODES_MAX];
	u32 load[NODES_MAX];	/* prev_node_load: 10 for a task a CPU, and half of before */
};

ARRAY(last_nodes, struct nodes, NR_CPUS_MAX);

static __always_inline u32 node_of(u32 cpu)
{
	return cpu < NR_CPUS_MAX ? node_numbers[cpu] % NODES_MAX : 0;
}

/* Which CPUs form a node. */
static void measure_nodes(void)
{
	const struct cpumask *possible = scx_bpf_get_possible_cpumask();
	u32 cpu;

	for_each_number(cpu, 0, nr_cpus) {
		u32 node = 0;

		if (cpu >= NR_CPUS_MAX)
			break;
		if (node_cpus)
			node = cpu / node_cpus;
		else if (bpf_cpumask_test_cpu(cpu, possible))
			node = scx_bpf_cpu_node(cpu);
		node = min(node, NODES_MAX - 1U);
		node_numbers[cpu] = node;
		node_sizes[node]++;
		nr_nodes = max(nr_nodes, node + 1);
	}
	scx_bpf_put_cpumask(possible);
}

/* ---- The clock of idle CPUs ---- */

/* However short idle_ns is, a machine does something else, too. */
#define IDLE_NS_MIN (100 * NSEC_PER_USEC)

/*
 * An idle CPU of 2.6 looks for work in its tick (rebalance_tick()). sched_ext has
 * no tick there, and no timer may be started under the lock of a run queue, where
 * a CPU hears that it goes idle: so one timer calls all that are idle, and each
 * looks on its own when it dispatches. What a timer costs an idle machine is why
 * a kernel's policy does without.
 */
struct idle_clock {
	struct bpf_timer timer;
};

ARRAY(idle_clocks, struct idle_clock, 1);

/* At multiples of idle_ns, as the source's jiffies % period. */
static __always_inline s64 start_idle_clock(struct idle_clock *clock)
{
	u64 period = max(idle_ns, IDLE_NS_MIN);

	return bpf_timer_start(&clock->timer, period - bpf_ktime_get_ns() % period, 0);
}

static int call_idle_cpus(void *map, u32 *key, struct idle_clock *clock)
{
	int i;

	if (!idle_ns) {
		nr_calling_cpus = nr_cpus;
		return 0;
	}
	for_each_number(i, 0, nr_cpus) {
		struct cpu_queue *cq = cpu_queue(i);

		if (cq && cq->prio == NO_PRIO && !cq->offline)
			kick(i, SCX_KICK_IDLE);
	}
	start_idle_clock(clock);
	return 0;
}

static s32 prepare_idle_clock(void)
{
	u32 row = 0;
	struct idle_clock *clock = bpf_map_lookup_elem(&idle_clocks, &row);
	s64 error;

	if (!idle_ns || nr_cpus < 2 || !clock)
		return 0;
	nr_calling_cpus = 0;
	error = bpf_timer_init(&clock->timer, &idle_clocks, CLOCK_MONOTONIC);
	if (!error)
		error = bpf_timer_set_callback(&clock->timer, call_idle_cpus);
	return error ?: start_idle_clock(clock);
}

/* ---- Loads ---- */

/* What a CPU saw of the others at its last look (prev_cpu_load). */
struct loads {
	u16 of[NR_CPUS_MAX];
};

ARRAY(last_loads, struct loads, NR_CPUS_MAX);

/* No more tasks are moved in one go; the source has no limit. */
#define PULLS_MAX 64

/* What `cpu` has to do: tasks that wait and the one that runs, whatever its class. */
static u32 load_of(s32 cpu)
{
	struct cpu_queue *cq = cpu_queue(cpu);
	s32 waiting = scx_bpf_dsq_nr_queued(cpu);

	if (waiting < 0 || !cq)
		return 0;
	return waiting + (cq->prio != NO_PRIO || (waiting && (cq->offline || is_outranked(cpu))));
}

struct found {
	s32 cpu;	/* -1: none */
	u32 imbalance;
};

/* find_busiest_queue(): the first CPU of `node` with the greatest load above 1. */
static struct found find_busiest(s32 this_cpu, u32 node, bool idle)
{
	u32 row = this_cpu, most = 1;
	u32 now_mine = load_of(this_cpu), mine = now_mine;
	struct loads *last = bpf_map_lookup_elem(&last_loads, &row);
	struct found found = { .cpu = -1 };
	int i;

	if (!last)
		return found;
	if (!idle && row < NR_CPUS_MAX)
		mine = max(mine, (u32)last->of[row]);
	for_each_number(i, 0, nr_cpus) {
		u32 cpu = i, now, load;

		if (cpu >= NR_CPUS_MAX)
			break;
		if (cpu != row && node_of(cpu) != node)
			continue;
		now = load_of(cpu);
		load = idle ? now : min(now, (u32)last->of[cpu]);
		last->of[cpu] = min(now, 0xffffU);
		if (cpu != row && load > most) {
			most = load;
			found.cpu = cpu;
		}
	}
	if (found.cpu < 0)
		return found;
	found.imbalance = most > mine ? most - mine : 0;
	if (!found.imbalance || (!idle && found.imbalance * 4 < most) ||
	    load_of(found.cpu) <= now_mine)
		found.cpu = -1;
	return found;
}

/*
 * find_busiest_node(): -1 if no other node has so much more. Not static, so that
 * a verifier follows it once.
 */
__noinline s32 find_busiest_node(u32 this_cpu)
{
	struct nodes *last = bpf_map_lookup_elem(&last_nodes, &this_cpu);
	u32 own = node_of(this_cpu), most;
	s32 busiest = -1;
	u32 i;

	if (!last || own >= NODES_MAX)
		return -1;
	for_each_number(i, 0, NODES_MAX) {
		if (i < NODES_MAX)
			last->running[i] = 0;
	}
	for_each_number(i, 0, nr_cpus) {
		last->running[node_of(i) % NODES_MAX] += load_of(i);
	}
	for_each_number(i, 0, nr_nodes) {
		if (i < NODES_MAX && node_sizes[i])
			last->load[i] = last->load[i] / 2 + 10 * last->running[i] / node_sizes[i];
	}
	most = last->load[own];
	for_each_number(i, 0, nr_nodes) {
		if (i >= NODES_MAX || i == own || last->load[i] <= most ||
		    100 * last->load[i] <= NODE_THRESHOLD_PERCENT * last->load[own])
			continue;
		most = last->load[i];
		busiest = i;
	}
	return busiest;
}

/* ---- Pulling ---- */

/*
 * The expired array is robbed first, because its tasks are not in the cache, and
 * the best list of it. A policy with one array has all in the active one.
 */
static __always_inline u64 pull_order(u64 key, struct cpu_queue *from)
{
	u64 prio = list_of(key) & ((1 << ARRAY_SHIFT) - 1);

	return is_active(from, key) ? prio + (1 << ARRAY_SHIFT) : prio;
}

static bool may_pull(struct task_struct *p, struct queued *q, s32 to, bool idle, u64 now)
{
	return may_run_on(p, to) && (idle || now - q->left_cpu_ns > cache_hot_ns);
}

/* Pulls one task: best rank first, the last of its list first. It comes to the active array. */
static bool pull_one(s32 from, s32 to, bool idle)
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

		if (q && rank <= best && may_pull(p, q, to, idle, now)) {
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
		to_tail(q, target);
		scx_bpf_dsq_move_set_vtime(&again, q->key);
		pulled = scx_bpf_dsq_move_vtime(&again, p, to, 0);
		break;
	}
	if (pulled) {
		count(COUNT_PULLED);
		count_for(from, COUNT_PULLED_FROM);
	}
	return pulled;
}

/* load_balance(): whether something was pulled from `node` to `cpu`; `why` counts it. */
static bool load_balance(s32 cpu, u32 node, bool idle, u32 why)
{
	struct found found = find_busiest(cpu, node, idle);
	bool pulled = false;
	u32 pulls = 1;
	int i;

	count(why);
	if (found.cpu < 0) {
		count(COUNT_LB_NOT_FOUND);
		return false;
	}
	count_by(COUNT_LB_IMBALANCE, found.imbalance);
	if (!idle)
		pulls = found.imbalance / 2;
	if (!pulls)
		pulls = faithful_underflow ? PULLS_MAX : 1;
	for_each_number(i, 0, min(pulls, PULLS_MAX)) {
		if (!pull_one(found.cpu, cpu, idle))
			break;
		pulled = true;
		if (why == COUNT_LB_NODE) {
			count(COUNT_PULLED_NODE);
			count_for(found.cpu, COUNT_PULLED_NODE_FROM);
		}
	}
	return pulled;
}

/* balance_node(): once in a `period`, at the same times on all CPUs. */
static bool balance_node(s32 cpu, u64 period, bool idle)
{
	u64 now = scx_bpf_now();
	u32 row = cpu;
	struct nodes *last = bpf_map_lookup_elem(&last_nodes, &row);
	s32 node;

	if (nr_nodes < 2 || !last || now / period == last->looked_ns / period)
		return false;
	last->looked_ns = now;
	count(COUNT_NODE_LOOKS);
	if (idle)
		count(COUNT_NODE_LOOKS_IDLE);
	node = find_busiest_node(cpu);
	return node >= 0 && load_balance(cpu, node, idle, COUNT_LB_NODE);
}

/*
 * A CPU whose task has gone: the head of its queue, or what another CPU has too
 * much of. In `dispatch` only.
 */
static bool take_or_pull(s32 cpu, bool was_idle)
{
	bool pulled = false;

	if (scx_bpf_dsq_move_to_local(cpu))
		return true;
	if (was_idle)
		pulled = balance_node(cpu, IDLE_NODE_NS, true);
	pulled |= load_balance(cpu, node_of(cpu), true,
			       was_idle ? COUNT_LB_IDLE : COUNT_LB_RESCHED);
	return pulled && scx_bpf_dsq_move_to_local(cpu);
}

static __always_inline bool balance_is_due(struct cpu_queue *cq, u64 now)
{
	return busy_ns && nr_cpus > 1 && now >= cq->busy_at_ns;
}

/* In `dispatch`. Every busy_ns, other nodes every second time; as the source's jiffies % period. */
static void balance_busy(struct cpu_queue *cq, s32 cpu)
{
	u64 period = max(busy_ns, 1ULL), now = choice_ns(cq);

	if (!balance_is_due(cq, now))
		return;
	cq->busy_at_ns = (now / period + 1) * period;
	balance_node(cpu, 2 * period, false);
	load_balance(cpu, node_of(cpu), false, COUNT_LB_BUSY);
}

/* In `tick`, at its end. */
static __always_inline void end_tick(struct task_struct *p, u64 now)
{
	struct cpu_queue *cq = cpu_queue(scx_bpf_task_cpu(p));

	if (cq)
		look_around(p, cq, now, balance_is_due(cq, now));
}

/* ---- Load ---- */

s32 OP_SLEEPABLE(balance_init)
{
	s32 error = create_queues();

	if (error)
		return error;
	measure_nodes();
	return prepare_idle_clock();
}

#define BALANCE_OPS PERCPU_OPS, .init = (void *)balance_init

#endif /* RUNSLICE_BALANCE_BPF_H */
