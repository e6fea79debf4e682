/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Does some work under one spin lock whenever a task is enqueued, and leaves
 * it on its CPU: nothing is shared but that lock.
 */
#include <scx.h>

BPF_LICENSE();

#define SLICE_NS 1000000
#define TURNS 500

struct shared {
	struct bpf_spin_lock lock;
	u64 state;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct shared);
} shared SEC(".maps");

s32 OP(spinner_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu;
}

void OP(spinner_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 key = 0, turn;
	struct shared *own = bpf_map_lookup_elem(&shared, &key);

	if (!own)
		return;
	bpf_spin_lock(&own->lock);
	for (turn = 0; turn < TURNS; turn++)
		own->state = own->state * 6364136223846793005ULL + turn;
	bpf_spin_unlock(&own->lock);
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SLICE_NS, enq_flags);
}

POLICY(spinner_ops,
       .select_cpu	= (void *)spinner_select_cpu,
       .enqueue		= (void *)spinner_enqueue,
       .name		= "spinner");
