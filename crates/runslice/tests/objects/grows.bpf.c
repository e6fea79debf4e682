/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Adds an element to a map with every enqueue, and does not look at what comes
 * of it.
 */
#include <scx.h>

BPF_LICENSE();

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 22);
	__uint(map_flags, 1); /* BPF_F_NO_PREALLOC */
	__type(key, u64);
	__type(value, u64[512]);
} seen SEC(".maps");

static u64 key, zeros[512];

void OP(grows_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 next = key++;

	bpf_map_update_elem(&seen, &next, zeros, 0);
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}

POLICY(grows_ops,
       .enqueue		= (void *)grows_enqueue,
       .name		= "grows");
