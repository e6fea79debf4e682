/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One queue for the whole machine, ordered by virtual time, as small as such a
 * policy can be: what speed is measured with. A woken task takes an idle CPU
 * if there is one, else it waits in the queue; who runs pays in virtual time
 * by its weight, and who sleeps saves at most one slice.
 */
#include <scx.h>

BPF_LICENSE();

#define QUEUE 0

/* Granted with every insert, ns. */
const volatile u64 slice_ns = 20000000;

enum {
	DIRECT,
	QUEUED,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, u64);
} inserts SEC(".maps");

/* The greatest virtual time of a task that ran. */
static u64 vtime_now;

/* Keys compare as the kernel compares them: as a signed difference. */
static bool is_before(u64 key, u64 other)
{
	return (s64)(key - other) < 0;
}

static void count_insert(u32 which)
{
	u64 *counter = bpf_map_lookup_elem(&inserts, &which);

	if (counter)
		(*counter)++;
}

s32 OP(vtime_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);

	if (is_idle) {
		count_insert(DIRECT);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, 0);
	}
	return cpu;
}

void OP(vtime_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 vtime = p->scx.dsq_vtime;

	count_insert(QUEUED);
	if (is_before(vtime, vtime_now - slice_ns))
		vtime = vtime_now - slice_ns;
	scx_bpf_dsq_insert_vtime(p, QUEUE, slice_ns, vtime, enq_flags);
}

void OP(vtime_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(QUEUE);
}

void OP(vtime_running, struct task_struct *p)
{
	if (is_before(vtime_now, p->scx.dsq_vtime))
		vtime_now = p->scx.dsq_vtime;
}

void OP(vtime_stopping, struct task_struct *p, bool runnable)
{
	p->scx.dsq_vtime += (slice_ns - p->scx.slice) * 100 / p->scx.weight;
}

void OP(vtime_enable, struct task_struct *p)
{
	p->scx.dsq_vtime = vtime_now;
}

s32 OP_SLEEPABLE(vtime_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

POLICY(vtime_ops,
       .select_cpu	= (void *)vtime_select_cpu,
       .enqueue		= (void *)vtime_enqueue,
       .dispatch	= (void *)vtime_dispatch,
       .running		= (void *)vtime_running,
       .stopping	= (void *)vtime_stopping,
       .enable		= (void *)vtime_enable,
       .init		= (void *)vtime_init,
       .name		= "vtime");
