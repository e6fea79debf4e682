/* SPDX-License-Identifier: GPL-2.0-only */
/* Calls functions that no kernel has: behind a test for one, and behind a setting. */
#include <scx.h>

BPF_LICENSE();

static long (*const bpf_ringbuf_output)(void *map, void *data, u64 size, u64 flags) = (void *)130;

extern u64 scx_bpf_ask_mirror(void) __ksym __weak;
extern u64 scx_bpf_ask_oracle(void) __ksym __weak;

const volatile bool asks;
const volatile bool zero_is_fine;
const volatile u32 nr_cpu_ids;
const volatile u32 cpu_of_slot[8];
u64 written;

struct {
	__uint(type, 27);		/* BPF_MAP_TYPE_RINGBUF */
	__uint(max_entries, 4096);
} told SEC(".maps");

void OP(absent_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 slice = SCX_SLICE_DFL;

	if (scx_bpf_ask_mirror)
		slice = scx_bpf_ask_mirror();
	if (asks)
		slice = scx_bpf_ask_oracle();
	if (!zero_is_fine)
		written += nr_cpu_ids + cpu_of_slot[written % 8];
	bpf_ringbuf_output(&told, &slice, sizeof(slice), 0);
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, slice, enq_flags);
}

POLICY(absent_ops,
       .enqueue		= (void *)absent_enqueue,
       .name		= "absent");
