/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * First in, first out. Each CPU counts its inserts in a value of its own, and the CPU before it
 * takes them away: an insert in this moment is lost.
 */
#include "design.h"

struct total {
	u64 spare;
	u64 inserts;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct total);
} totals SEC(".maps");

static u64 taken;

SELECT_CPU_PREV(totals)

void OP(totals_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 key = 1;
	struct total *own = bpf_map_lookup_elem(&totals, &key);

	if (own)
		*(volatile u64 *)&own->inserts += 1;
	scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
	tell_idle(p);
}

void OP(totals_dispatch, s32 cpu, struct task_struct *prev)
{
	u32 key = 1;
	struct total *next = bpf_map_lookup_percpu_elem(&totals, &key, cpu + 1);

	if (next) {
		__sync_fetch_and_add(&taken, *(volatile u64 *)&next->inserts);
		*(volatile u64 *)&next->inserts = 0;
	}
	scx_bpf_dsq_move_to_local(QUEUE);
}

INIT_QUEUE(totals)
DESIGN(totals);
