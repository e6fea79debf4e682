/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * First in, first out, with an allocator that hands out numbered elements: its cursor is read, and
 * written some instructions later. Who gets an element that another one got is told so. The file
 * that includes this one says what keeps the two apart: ENTER() and LEAVE().
 */
#include "design.h"

#ifndef LOCK
#define LOCK struct bpf_spin_lock
#endif

struct slab {
	LOCK lock;
	u64 next;
};

static struct slab slab SEC(".data.slab");

/* Elements handed out, counted without a race. */
static u64 given;

static __noinline int take_element(void)
{
	volatile u64 work = 0;
	u64 element, count;

	ENTER();
	element = *(volatile u64 *)&slab.next;
	for (u64 step = 0; step < STEPS; step++)
		work += step;
	*(volatile u64 *)&slab.next = element + 1;
	count = __sync_fetch_and_add(&given, 1);
	LEAVE();
	if (element != count)
		scx_bpf_error("element %llu was given to two", element);
	return 0;
}

SELECT_CPU_PREV(slab)

void OP(slab_enqueue, struct task_struct *p, u64 enq_flags)
{
	take_element();
	scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
	tell_idle(p);
}

DISPATCH_QUEUE(slab)
INIT_QUEUE(slab)
DESIGN(slab);
