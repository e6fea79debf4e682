/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Time slices of Linux 2.6, and what it remembers of sleep: the sleep average,
 * the bonus that follows from it, and who is interactive.
 *
 * Source: kernel/sched.c of Linux 2.6.3, with version 10 the slices and the
 * sleep limit of Linux 2.6.10. The constants are those of 2.6.3; a jiffy is
 * 1 ms, as it was on the PC.
 *
 * A policy includes this file behind percpu.bpf.h. It defines `version`, and in
 * struct task_ctx
 *
 *	u64 timestamp_ns	last switch, decision or wakeup
 *	u64 sleep_avg_ns	0..max_sleep()
 *	s32 activated		enum activated
 *	s32 credit		interactive_credit
 *	u32 prio, static_prio
 */
#ifndef RUNSLICE_SLEEP_AVG_BPF_H
#define RUNSLICE_SLEEP_AVG_BPF_H

#include <scx.h>

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

/* In jiffies. 2.6.3: nice -20 200, 0 102, 19 10. 2.6.10: 800, 100, 5. */
static u32 slice_jiffies(u32 static_prio)
{
	u32 scale = static_prio < 120 ? 400 : 100;

	static_prio = min(max(static_prio, (u32)BEST_PRIO), (u32)WORST_PRIO);
	if (version == 10)
		return max(scale * (140 - static_prio) / 20, 5U);
	return MIN_SLICE + (MAX_SLICE - MIN_SLICE) * (WORST_PRIO - static_prio) / 39;
}

static __always_inline s64 full_slice(struct task_ctx *tctx)
{
	return slice_jiffies(tctx->static_prio) * JIFFY;
}

/* The sleep that earns the full bonus: ten slices of nice 0, in jiffies. */
static __always_inline u64 max_sleep(void)
{
	return MAX_BONUS * slice_jiffies(120);
}

/* CURRENT_BONUS: 0 to 10, of which 5 is neutral. */
static __always_inline u32 bonus(struct task_ctx *tctx)
{
	return tctx->sleep_avg_ns / JIFFY * MAX_BONUS / max_sleep();
}

static u32 effective_prio(struct task_ctx *tctx)
{
	u32 prio = tctx->static_prio + MAX_BONUS / 2 - bonus(tctx);

	return min(max(prio, (u32)BEST_PRIO), (u32)WORST_PRIO);
}

/* DELTA: by how much a task must be better than its nice level to be interactive. */
static s32 delta(struct task_ctx *tctx)
{
	s32 nice = (s32)tctx->static_prio - 120;

	/* C rounds towards zero. */
	if (nice < 0)
		return INTERACTIVE_DELTA - (s32)((u32)-nice * MAX_BONUS / 40);
	return INTERACTIVE_DELTA + (u32)nice * MAX_BONUS / 40;
}

static __always_inline bool is_interactive(struct task_ctx *tctx)
{
	return (s32)tctx->prio <= (s32)tctx->static_prio - delta(tctx);
}

/* INTERACTIVE_SLEEP: a longer sleep is idleness, and makes just interactive. */
static __always_inline u64 idle_sleep_ns(struct task_ctx *tctx)
{
	return (max_sleep() * (u32)(MAX_BONUS / 2 + delta(tctx) + 1) / MAX_BONUS - 1) * JIFFY;
}

static __always_inline bool has_high_credit(struct task_ctx *tctx)
{
	return tctx->credit > CREDIT_LIMIT;
}

static __always_inline bool has_low_credit(struct task_ctx *tctx)
{
	return tctx->credit < -CREDIT_LIMIT;
}

static __always_inline void gain_credit(struct task_ctx *tctx)
{
	if (!has_high_credit(tctx))
		tctx->credit++;
}

/* The sleep counts the more the less bonus there is; after a disk wait only up to a limit. */
static void add_sleep(struct task_ctx *tctx, u64 slept, bool is_user)
{
	u64 most = max_sleep() * JIFFY, limit = idle_sleep_ns(tctx);

	slept *= max(MAX_BONUS - bonus(tctx), 1U);
	if (has_low_credit(tctx))
		slept = min(slept, (u64)full_slice(tctx));
	if (tctx->activated == WOKEN_DEEP && !has_high_credit(tctx) && is_user) {
		if (tctx->sleep_avg_ns >= limit) {
			slept = 0;
		} else if (tctx->sleep_avg_ns + slept >= limit) {
			tctx->sleep_avg_ns = limit;
			slept = 0;
		}
	}
	tctx->sleep_avg_ns += slept;
	if (tctx->sleep_avg_ns > most) {
		tctx->sleep_avg_ns = most;
		gain_credit(tctx);
	}
}

/* recalc_task_prio(): at a wakeup, and when a woken task first gets the CPU. */
static void credit_sleep(struct task_struct *p, struct task_ctx *tctx, u64 slept)
{
	bool is_user = !(p->flags & PF_KTHREAD);

	slept = min(slept, max_sleep() * JIFFY);
	if (slept && is_user && tctx->activated != WOKEN_DEEP && slept > idle_sleep_ns(tctx)) {
		tctx->sleep_avg_ns = (max_sleep() - slice_jiffies(120)) * JIFFY;
		gain_credit(tctx);
	} else if (slept) {
		add_sleep(tctx, slept, is_user);
	}
	tctx->prio = effective_prio(tctx);
}

/* schedule() takes the run off sleep_avg; those with much credit lose it slowly. */
static void charge_sleep_avg(struct task_ctx *tctx)
{
	u64 now = scx_bpf_now();
	u64 ran = min(now - tctx->timestamp_ns, max_sleep() * JIFFY);

	tctx->timestamp_ns = now;
	if (!ran)
		return;
	if (has_high_credit(tctx))
		ran /= max(bonus(tctx), 1U);
	if (tctx->sleep_avg_ns > ran) {
		tctx->sleep_avg_ns -= ran;
		return;
	}
	tctx->sleep_avg_ns = 0;
	if (!has_high_credit(tctx) && !has_low_credit(tctx))
		tctx->credit--;
}

#endif /* RUNSLICE_SLEEP_AVG_BPF_H */
