/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Earliest deadline first: a job begins when its task wakes, and is due 10 ms later for nice 0, a
 * millisecond later for each nice value above. In overload whoever is late stays in front.
 *
 * Keeps: no CPU idles beside a task that may use it.
 */
#include "design.h"

SELECT_CPU_PREV(deadline)

void OP(deadline_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (enq_flags & SCX_ENQ_WAKEUP || !p->scx.dsq_vtime)
		p->scx.dsq_vtime = bpf_ktime_get_ns() + (p->static_prio - 110) * NSEC_PER_MSEC;
	scx_bpf_dsq_insert_vtime(p, QUEUE, SLICE_NS, p->scx.dsq_vtime, enq_flags);
	tell_idle(p);
}

DISPATCH_QUEUE(deadline)
INIT_QUEUE(deadline)
DESIGN(deadline);
