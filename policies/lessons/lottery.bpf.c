/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lottery: for each slice a ticket is drawn, and its owner gets the CPU.
 *
 * A task has as many tickets as its weight: 100 at nice 0.
 *
 * What it shows: shares follow the tickets, roughly at once and closely in the long
 * run; nobody starves, because every ticket can win.
 *
 * Source: Waldspurger and Weihl, "Lottery Scheduling: Flexible Proportional-Share
 * Resource Management", OSDI 1994.
 * Differs from the source: no currencies, no transfers, and no compensation for a
 * task that sleeps before its slice is over; a woken task takes an idle CPU first.
 */
#include <lesson.bpf.h>

KNOB(u64, slice_ns, 10000000, "ns", "time on the CPU that a ticket wins", 1000000, 1000000000);

s32 OP(lottery_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return take_idle(p, prev_cpu, wake_flags, slice_ns);
}

void OP(lottery_enqueue, struct task_struct *p, u64 enq_flags)
{
	put(p, slice_ns, 0, enq_flags);
}

/* Whether a ticket of the last `weight` of `all` is drawn. */
static __always_inline bool wins(u32 weight, u32 all)
{
	return all && bpf_get_prandom_u32() % all < weight;
}

void OP(lottery_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_struct *p;
	u32 all = 0;
	s32 winner = 0;

	/* The one that runs takes part: it is in no queue yet. */
	if (prev && prev->scx.flags & SCX_TASK_QUEUED)
		all = prev->scx.weight;

	/* One pass: each takes the lead with the chance of its tickets among those so far. */
	for_each_queued(it, p, QUEUE, 0) {
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		all += p->scx.weight;
		if (wins(p->scx.weight, all))
			winner = p->pid;
	}
	if (!winner) {
		if (prev && prev->scx.flags & SCX_TASK_QUEUED)
			set_slice(prev, slice_ns);
		return;
	}
	for_each_queued(it, p, QUEUE, 0) {
		/* Its affinity may have changed since the draw. */
		if (p->pid == winner && bpf_cpumask_test_cpu(cpu, p->cpus_ptr)) {
			scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL, 0);
			return;
		}
	}
}

POLICY_RIGHT("none");
LESSON(lottery,
       .select_cpu	= (void *)lottery_select_cpu,
       .enqueue		= (void *)lottery_enqueue,
       .dispatch	= (void *)lottery_dispatch);
