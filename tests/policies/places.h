/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps the pids of waiting tasks in places of its own, from which every CPU takes. Who finds a
 * pid in his place puts it into the queue. A task that finds an idle CPU when it wakes needs none
 * of that. The file that includes this one says how a place is
 * chosen: NEXT_PLACE().
 */
#include "design.h"

#define PLACES 64

static u32 places[PLACES];
static u32 tail;
/* Where the next search begins: who has waited longest is mostly near. */
static u32 head;

void OP(places_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 place = NEXT_PLACE() % PLACES;

	KEEP(place, p, enq_flags);
	tell_idle(p);
}

void OP(places_dispatch, s32 cpu, struct task_struct *prev)
{
	u32 first = __sync_fetch_and_add(&head, 0);
	struct task_struct *p;
	u32 place, pid;

	for (u32 step = 0; step < PLACES; step++) {
		place = (first + step) % PLACES;
		if (!*(volatile u32 *)&places[place])
			continue;
		pid = __sync_lock_test_and_set(&places[place], 0);
		p = pid ? bpf_task_from_pid(pid) : NULL;
		if (!p)
			continue;
		__sync_lock_test_and_set(&head, place + 1);
		scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SLICE_NS, 0);
		bpf_task_release(p);
		return;
	}
	scx_bpf_dsq_move_to_local(QUEUE);
}

INIT_QUEUE(places)

POLICY(places_ops,
       .enqueue		= (void *)places_enqueue,
       .dispatch	= (void *)places_dispatch,
       .init		= (void *)places_init,
       .name		= "places");
