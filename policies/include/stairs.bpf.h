/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What both Staircases do alike: a full slice that is used in intervals, one a
 * stair, and charged in nanoseconds; over the queues of percpu.bpf.h.
 */
#ifndef RUNSLICE_STAIRS_BPF_H
#define RUNSLICE_STAIRS_BPF_H

#include <balance.bpf.h>
#include <knobs.bpf.h>
#include <life.bpf.h>

KNOB(u64, jiffy_ns, 1000000, "ns", "the source's tick: shorter runs may continue a slice", 1,
     10000000);

/* The kernel's scale: nice -20 is 100, and nice 19 the last stair. */
#define LAST_STAIR 139

struct slices {
	s64 slice_ns;		/* left of the full slice */
	s64 interval_ns;	/* left of the time on this stair; below 0 when overrun */
	u64 run_ns;		/* length of the last run, since it came to its CPU */
	u32 static_prio;	/* its best stair */
};

enum {
	COUNT_EXPIRED = NR_BALANCE_COUNTERS,
	COUNT_PREEMPTED,
	COUNT_YIELDS,
	COUNT_YIELDS_ALONE,
};

#define STAIRS_COUNTERS BALANCE_COUNTERS, "expired", "preempted", "yields", "yields_alone"

/* Takes what the task has run since the last call off its slices. */
static void charge(struct task_struct *p, struct queued *q, struct slices *s)
{
	u64 ran = p->se.sum_exec_runtime - q->charged_ns;

	q->charged_ns += ran;
	s->slice_ns -= ran;
	s->interval_ns -= ran;
	s->run_ns += ran;
}

static __always_inline bool has_expired(struct slices *s)
{
	return s->slice_ns <= 0 || s->interval_ns <= 0;
}

/* How long the task may run at once. */
static __always_inline u64 turn(struct slices *s)
{
	return max(min(s->slice_ns, s->interval_ns), 1LL);
}

/* In `running`: whether a turn begins, and not one goes on that a change has interrupted. */
static __always_inline bool begins_turn(struct queued *q, struct slices *s, s32 cpu)
{
	bool begins = !q->changing;

	q->changing = false;
	if (begins) {
		s->run_ns = 0;
		note_cpu(q, cpu);
	}
	return begins;
}

/* In `dispatch`, of a task that could go on and is settled: whether another one gets the CPU. */
static bool gives_way(struct queued *q, struct cpu_queue *cq)
{
	u64 first = 0;

	if (!first_key(cq->cpu, &first) || !is_before(first, q->key) ||
	    !scx_bpf_dsq_move_to_local(cq->cpu))
		return false;
	cq->chosen = list_of(first);
	return true;
}

static __always_inline void count_yield(s32 cpu)
{
	count(COUNT_YIELDS);
	if (!scx_bpf_dsq_nr_queued(cpu))
		count(COUNT_YIELDS_ALONE);
}

#endif /* RUNSLICE_STAIRS_BPF_H */
