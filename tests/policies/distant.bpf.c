/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A policy whose order is user space's: what becomes runnable is written to a
 * ring buffer, and what user space writes to another one is dispatched. Only
 * the threads of that program itself run without being asked for.
 */
#include <scx.h>

BPF_LICENSE();

/* enum bpf_map_type (uapi/linux/bpf.h). */
#define BPF_MAP_TYPE_RINGBUF 27
#define BPF_MAP_TYPE_USER_RINGBUF 31

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
} queued SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_USER_RINGBUF);
	__uint(max_entries, 65536);
} chosen SEC(".maps");

u64 nr_queued, nr_chosen, nr_lost;

static long (*const ringbuf_output)(void *map, void *data, u64 size, u64 flags) = (void *)130;
static void *(*const dynptr_data)(const void *from, u32 offset, u32 len) = (void *)203;
static long (*const user_ringbuf_drain)(void *map, void *callback, void *context, u64 flags) =
	(void *)209;

static bool is_user_half(const struct task_struct *p)
{
	return *(const u32 *)p->comm == 0x64616f6c;	/* "load" */
}

void OP(distant_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 pid = p->pid;

	if (is_user_half(p)) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, enq_flags);
		return;
	}
	if (ringbuf_output(&queued, &pid, sizeof(pid), 0))
		nr_lost++;
	nr_queued++;
}

static __noinline long take(void *sample, void *context)
{
	const s32 *pid = dynptr_data(sample, 0, sizeof(*pid));
	struct task_struct *p;

	if (!pid)
		return 1;
	p = bpf_task_from_pid(*pid);
	if (!p)
		return 0;
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, 0);
	bpf_task_release(p);
	nr_chosen++;
	return 0;
}

void OP(distant_dispatch, s32 cpu, struct task_struct *prev)
{
	user_ringbuf_drain(&chosen, take, NULL, 0);
}

/* Does nothing: tests count how often it is called. */
s32 OP_SLEEPABLE(distant_init)
{
	return 0;
}

POLICY(distant_ops,
       .enqueue		= (void *)distant_enqueue,
       .dispatch	= (void *)distant_dispatch,
       .init		= (void *)distant_init,
       .flags		= SCX_OPS_ENQ_LAST,
       .timeout_ms	= 2000,
       .name		= "distant");
