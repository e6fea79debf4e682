/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Time slices of Linux 2.6, and what it remembers of sleep: the sleep average,
 * the bonus that follows from it, and who is interactive.
 *
 * Source: kernel/sched.c of Linux 2.6.3, with version 10 the slices and the
 * sleep limit of Linux 2.6.10. The constants are those of 2.6.3; a jiffy is
 * 1 ms, as it was on the PC.
 *
 * A policy keeps a struct sleep_avg for each of its tasks, and the task's
 * priority itself, which is computed anew only at certain points.
 */
#ifndef RUNSLICE_SLEEP_AVG_BPF_H
#define RUNSLICE_SLEEP_AVG_BPF_H

#include <knobs.bpf.h>
#include <scx.h>

KNOB(u32, version, 3, "2.6.x", "slices and sleep limit: 3 as Linux 2.6.3, 10 as 2.6.10", 3, 10);
KNOB(bool, disk_case, 1, "bool",
     "waits for a disk earn less than other sleep; 0: the same, as Torrey and others tried", 0, 1);

/* The kernel's scale: nice -20 is 100, nice 19 is 139. */
#define BEST_PRIO 100
#define WORST_PRIO 139

#define JIFFY NSEC_PER_MSEC
#define MIN_SLICE 10
#define MAX_SLICE 200
#define MAX_BONUS 10
#define INTERACTIVE_DELTA 2
#define ON_RUNQUEUE_WEIGHT 38	/* of 128 */
#define CHILD_PENALTY 95
#define CREDIT_LIMIT 100

/* Why the task is runnable (p->activated). */
enum activated {
	WOKEN_DEEP = -1,	/* from uninterruptible sleep */
	NOT_WOKEN,
	WOKEN_BY_TASK,
	WOKEN_BY_INTERRUPT,
};

struct sleep_avg {
	u64 timestamp_ns;	/* last switch, decision or wakeup */
	u64 avg_ns;		/* 0..max_sleep() */
	s32 activated;		/* enum activated */
	s32 credit;		/* interactive_credit */
	u32 static_prio;
	bool deep_sleep;	/* blocked uninterruptibly */
};

/* In jiffies. 2.6.3: nice -20 200, 0 102, 19 10. 2.6.10: 800, 100, 5. */
static u32 slice_jiffies(u32 static_prio)
{
	u32 scale = static_prio < 120 ? 400 : 100;

	static_prio = min(max(static_prio, (u32)BEST_PRIO), (u32)WORST_PRIO);
	if (version == 10)
		return max(scale * (140 - static_prio) / 20, 5U);
	return MIN_SLICE + (MAX_SLICE - MIN_SLICE) * (WORST_PRIO - static_prio) / 39;
}

static __always_inline s64 full_slice(struct sleep_avg *s)
{
	return slice_jiffies(s->static_prio) * JIFFY;
}

/* The sleep that earns the full bonus: ten slices of nice 0, in jiffies. */
static __always_inline u64 max_sleep(void)
{
	return MAX_BONUS * slice_jiffies(120);
}

/* CURRENT_BONUS: 0 to 10, of which 5 is neutral. */
static __always_inline u32 bonus(struct sleep_avg *s)
{
	return s->avg_ns / JIFFY * MAX_BONUS / max_sleep();
}

static u32 effective_prio(struct sleep_avg *s)
{
	u32 prio = s->static_prio + MAX_BONUS / 2 - bonus(s);

	return min(max(prio, (u32)BEST_PRIO), (u32)WORST_PRIO);
}

/* DELTA: by how much a task must be better than its nice level to be interactive. */
static s32 delta(struct sleep_avg *s)
{
	s32 nice = (s32)s->static_prio - 120;

	/* C rounds towards zero. */
	if (nice < 0)
		return INTERACTIVE_DELTA - (s32)((u32)-nice * MAX_BONUS / 40);
	return INTERACTIVE_DELTA + (u32)nice * MAX_BONUS / 40;
}

static __always_inline bool is_interactive(struct sleep_avg *s, u32 prio)
{
	return (s32)prio <= (s32)s->static_prio - delta(s);
}

/* INTERACTIVE_SLEEP: a longer sleep is idleness, and makes just interactive. */
static __always_inline u64 idle_sleep_ns(struct sleep_avg *s)
{
	return (max_sleep() * (u32)(MAX_BONUS / 2 + delta(s) + 1) / MAX_BONUS - 1) * JIFFY;
}

static __always_inline bool has_high_credit(struct sleep_avg *s)
{
	return s->credit > CREDIT_LIMIT;
}

static __always_inline bool has_low_credit(struct sleep_avg *s)
{
	return s->credit < -CREDIT_LIMIT;
}

static __always_inline void gain_credit(struct sleep_avg *s)
{
	if (!has_high_credit(s))
		s->credit++;
}

/* The sleep counts the more the less bonus there is; after a disk wait only up to a limit. */
static void add_sleep(struct sleep_avg *s, u64 slept, bool is_user)
{
	u64 most = max_sleep() * JIFFY, limit = idle_sleep_ns(s);

	slept *= max(MAX_BONUS - bonus(s), 1U);
	if (has_low_credit(s))
		slept = min(slept, (u64)full_slice(s));
	if (s->activated == WOKEN_DEEP && !has_high_credit(s) && is_user) {
		if (s->avg_ns >= limit) {
			slept = 0;
		} else if (s->avg_ns + slept >= limit) {
			s->avg_ns = limit;
			slept = 0;
		}
	}
	s->avg_ns += slept;
	if (s->avg_ns > most) {
		s->avg_ns = most;
		gain_credit(s);
	}
}

/* recalc_task_prio(): at a wakeup, and when a woken task first gets the CPU. */
static void credit_sleep(struct task_struct *p, struct sleep_avg *s, u64 slept)
{
	bool is_user = !(p->flags & PF_KTHREAD);

	slept = min(slept, max_sleep() * JIFFY);
	if (slept && is_user && s->activated != WOKEN_DEEP && slept > idle_sleep_ns(s)) {
		s->avg_ns = (max_sleep() - slice_jiffies(120)) * JIFFY;
		gain_credit(s);
	} else if (slept) {
		add_sleep(s, slept, is_user);
	}
}

/* schedule() takes the run off sleep_avg; those with much credit lose it slowly. */
static void charge_sleep_avg(struct sleep_avg *s, u64 now)
{
	u64 ran = min(now - s->timestamp_ns, max_sleep() * JIFFY);

	s->timestamp_ns = now;
	if (!ran)
		return;
	if (has_high_credit(s))
		ran /= max(bonus(s), 1U);
	if (s->avg_ns > ran) {
		s->avg_ns -= ran;
		return;
	}
	s->avg_ns = 0;
	if (!has_high_credit(s) && !has_low_credit(s))
		s->credit--;
}

/* Parent and child at a fork: the child has most of its parent's bonus, which is rounded down. */
static void fork_sleep_avg(struct sleep_avg *from, struct sleep_avg *s)
{
	u32 points = bonus(from);

	s->avg_ns = points * CHILD_PENALTY / 100 * max_sleep() / MAX_BONUS * JIFFY;
	from->avg_ns = points * max_sleep() / MAX_BONUS * JIFFY;
}

/* schedule() for a task that goes to sleep. */
static void begin_sleep(struct task_struct *p, struct sleep_avg *s)
{
	charge_sleep_avg(s, scx_bpf_now());
	s->deep_sleep = disk_case && (p->__state & TASK_UNINTERRUPTIBLE);
}

/* try_to_wake_up(). A `quiet` wakeup, by a waker that leaves its CPU to the task, earns nothing. */
static void end_sleep(struct task_struct *p, struct sleep_avg *s, bool quiet, u64 now)
{
	if (s->deep_sleep)
		s->activated = WOKEN_DEEP;
	s->deep_sleep = false;
	if (quiet)
		return;
	credit_sleep(p, s, now - s->timestamp_ns);
	/* Whoever interrupts the idle task is an interrupt. */
	if (s->activated == NOT_WOKEN)
		s->activated = bpf_get_current_task_btf()->pid ? WOKEN_BY_TASK :
								 WOKEN_BY_INTERRUPT;
	s->timestamp_ns = now;
}

/* The task gets the CPU. Whether it had been woken: then its wait was sleep too, in part. */
static bool end_wait(struct task_struct *p, struct sleep_avg *s, u64 now)
{
	u64 waited = now - s->timestamp_ns;
	bool woken = s->activated > NOT_WOKEN;

	if (s->activated == WOKEN_BY_TASK)
		waited = waited * ON_RUNQUEUE_WEIGHT / 128;
	if (woken)
		credit_sleep(p, s, waited);
	s->activated = NOT_WOKEN;
	s->timestamp_ns = now;
	return woken;
}

#endif /* RUNSLICE_SLEEP_AVG_BPF_H */
