/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * First in, first out. Before each insert a CPU takes two locks that tell of a deadlock, those with
 * odd numbers in the other order. Who would wait in a circle is told so, and lets go.
 */
#include "design.h"

struct bpf_res_spin_lock {
	u32 val;
};

int bpf_res_spin_lock(struct bpf_res_spin_lock *lock) __ksym;
void bpf_res_spin_unlock(struct bpf_res_spin_lock *lock) __ksym;

#define ROUNDS 10

struct guarded {
	struct bpf_res_spin_lock lock;
	u64 count;
};

static struct guarded left SEC(".data.left");
static struct guarded right SEC(".data.right");

static __always_inline void take_both(struct guarded *outer, struct guarded *inner)
{
	if (bpf_res_spin_lock(&outer->lock))
		return;
	outer->count++;
	if (!bpf_res_spin_lock(&inner->lock)) {
		inner->count++;
		bpf_res_spin_unlock(&inner->lock);
	}
	bpf_res_spin_unlock(&outer->lock);
}

SELECT_CPU_PREV(crossed)

void OP(crossed_enqueue, struct task_struct *p, u64 enq_flags)
{
	for (u32 round = 0; round < ROUNDS; round++) {
		if (bpf_get_smp_processor_id() % 2)
			take_both(&left, &right);
		else
			take_both(&right, &left);
	}
	scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
	tell_idle(p);
}

DISPATCH_QUEUE(crossed)
INIT_QUEUE(crossed)
DESIGN(crossed);
