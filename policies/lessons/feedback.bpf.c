/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Feedback: the textbook's multi-level feedback queue, with allotments and a boost.
 *
 * A few levels, 0 the best. A CPU takes the first task of the best level and lets it
 * run for a quantum. A task that has used up its allotment in a level sinks by one,
 * however often it slept meanwhile; all rise to the best level every `boost_ns`.
 *
 * What it shows: interactive tasks stay fast without anybody knowing their length,
 * nobody can cheat by sleeping just before the end, and nobody starves.
 *
 * Source: Arpaci-Dusseau, "Operating Systems: Three Easy Pieces", chapter 8, rules 1
 * to 5.
 * Differs from the source: a woken task takes an idle CPU first; whoever is displaced
 * stays first of its level with the rest of its quantum; at a boost those who wait keep
 * their order, and whoever runs ends its quantum.
 */
#include <lesson.bpf.h>

#define LEVELS_MAX 8
#define PLACE_BITS 40

KNOB(u32, queues, 3, "count", "number of levels", 1, 8);
KNOB(u64, quantum_ns, 10000000, "ns", "time on the CPU before others of the level come", 1000,
     10000000000);
KNOB(u32, factor, 1, "count", "how often a level's quantum has that of the level above", 1, 10);
KNOB(u32, allotment, 1, "count", "quanta in a level before a task sinks", 1, 1000);
KNOB(u64, boost_ns, 0, "ns", "how often all rise to the best level; 0 never", 0, 100000000000);
KNOB(bool, stay, 0, "bool", "a task that sleeps gets a new allotment, so that it can cheat", 0, 1);

struct rung {
	u64 since_ns;	/* it runs since then; 0: it does not run */
	u64 left_ns;	/* of its quantum */
	u64 boosts;	/* it knows of so many */
	u32 level;
	u32 quanta;	/* left of its allotment, this one included */
	bool behind;	/* its quantum is over: others of its level come first */
};

TASK_STORAGE(rungs, struct rung);

static volatile u64 begin_ns, first = 1ULL << (PLACE_BITS - 1), last = 1ULL << (PLACE_BITS - 1);
/* By CPU: the level of what runs, plus 1 (0: not ours), and the boosts that it knows of. */
static volatile u32 runs_in[CPUS_MAX];
static volatile u64 runs_with[CPUS_MAX];

static __always_inline struct rung *rung_of(struct task_struct *p)
{
	return bpf_task_storage_get(&rungs, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

static __always_inline u64 boosts(void)
{
	return boost_ns ? (bpf_ktime_get_ns() - begin_ns) / boost_ns : 0;
}

static u64 quantum(u32 level)
{
	u64 quantum = quantum_ns;
	s32 i;

	for_each_number(i, 0, min(level, LEVELS_MAX))
		quantum *= factor;
	return quantum;
}

static void begin(struct rung *rung, u32 level)
{
	rung->level = level;
	rung->quanta = allotment;
	rung->left_ns = quantum(level);
}

/* Rules 3 and 5: a new task, and after a boost every one, begins in the best level. */
static bool rise(struct rung *rung)
{
	if (rung->quanta && rung->boosts == boosts())
		return false;
	begin(rung, 0);
	rung->boosts = boosts();
	return true;
}

/* Rule 4: what it has run is taken off its quantum, and that off its allotment. */
static void charge(struct rung *rung, bool sleeps)
{
	u64 now = bpf_ktime_get_ns(), ran = rung->since_ns ? now - rung->since_ns : 0;

	rung->since_ns = now;
	rung->left_ns -= min(ran, rung->left_ns);
	if (sleeps && stay)
		begin(rung, rung->level);
	if (rung->left_ns)
		return;
	rung->behind = true;
	if (rise(rung))
		return;
	if (rung->quanta > 1) {
		rung->quanta--;
		rung->left_ns = quantum(rung->level);
	} else {
		begin(rung, min(rung->level + 1, queues - 1));
	}
}

/* Later boosts come behind earlier ones, worse levels behind better ones. */
static __always_inline u64 key_of(struct rung *rung, u64 place)
{
	return (rung->boosts * LEVELS_MAX + rung->level) << PLACE_BITS | place;
}

/* Rule 1: takes the CPU of the worst level, if that is worse. */
static void displace(struct task_struct *p, u32 level)
{
	s32 cpu, victim = -1;
	u32 worst = level + 1;

	for_each_number(cpu, 0, min(scx_bpf_nr_cpu_ids(), CPUS_MAX)) {
		if ((u32)cpu >= CPUS_MAX || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		if (runs_in[cpu] > worst && runs_with[cpu] == boosts()) {
			worst = runs_in[cpu];
			victim = cpu;
		}
	}
	if (victim >= 0)
		kick(victim, SCX_KICK_PREEMPT);
}

s32 OP(feedback_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct rung *rung = rung_of(p);

	if (rung)
		rise(rung);
	return take_idle(p, prev_cpu, wake_flags, rung ? rung->left_ns : quantum_ns);
}

void OP(feedback_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct rung *rung = rung_of(p);
	bool comes = enq_flags & SCX_ENQ_WAKEUP;

	if (!rung)
		return put(p, quantum_ns, 0, enq_flags);
	rung->behind |= comes | rise(rung);
	put(p, rung->left_ns, key_of(rung, rung->behind ? ++last : --first), enq_flags);
	rung->behind = false;
	if (comes)
		displace(p, rung->level);
}

/* Rules 1 and 2. A kernel asks while `prev` is in no queue yet: it goes on if it is the first. */
void OP(feedback_dispatch, s32 cpu, struct task_struct *prev)
{
	struct rung *rung = prev ? rung_of(prev) : NULL;

	if (rung) {
		charge(rung, false);
		if (goes_on(prev, cpu, key_of(rung, rung->behind ? last + 1 : 0), rung->left_ns)) {
			rung->behind = false;
			return;
		}
	}
	scx_bpf_dsq_move_to_local(QUEUE);
}

void OP(feedback_running, struct task_struct *p)
{
	struct rung *rung = rung_of(p);
	u32 cpu = scx_bpf_task_cpu(p);

	if (!rung || cpu >= CPUS_MAX)
		return;
	if (rise(rung))
		set_slice(p, rung->left_ns);
	rung->since_ns = bpf_ktime_get_ns();
	runs_in[cpu] = rung->level + 1;
	runs_with[cpu] = rung->boosts;
	report_task(p, rung->level, rung->level, 0);
}

void OP(feedback_stopping, struct task_struct *p, bool runnable)
{
	struct rung *rung = rung_of(p);
	u32 cpu = scx_bpf_task_cpu(p);

	if (!rung || cpu >= CPUS_MAX)
		return;
	charge(rung, !runnable);
	rung->since_ns = 0;
	runs_in[cpu] = 0;
}

void OP(feedback_enable, struct task_struct *p)
{
	if (!begin_ns)
		begin_ns = bpf_ktime_get_ns();
}

POLICY_RIGHT("rank");
LESSON(feedback,
       .enable		= (void *)feedback_enable,
       .select_cpu	= (void *)feedback_select_cpu,
       .enqueue		= (void *)feedback_enqueue,
       .dispatch	= (void *)feedback_dispatch,
       .running		= (void *)feedback_running,
       .stopping	= (void *)feedback_stopping);
