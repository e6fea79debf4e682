/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A first-in-first-out policy ordered by virtual time, to be measured. Compiled twice: to a BPF
 * object, and to native code. `environment.h` is what differs.
 */
#include "environment.h"

#define SHARED 0
#define LOCAL 0x8000000000000002ULL
#define SLICE 20000000ULL

enum { DIRECT, QUEUED };

PERCPU_ARRAY(stats, u64, 2);

u64 vtime_now;

static inline int before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

static inline void count(u32 which)
{
	u64 *counter = bpf_map_lookup_elem(&stats, &which);

	if (counter)
		(*counter)++;
}

PROGRAM(empty)
{
	return 0;
}

PROGRAM(select_cpu)
{
	struct task *p = (struct task *)ctx[0];
	bool is_idle = 0;
	s32 cpu = host_select_cpu(p, ctx[1], ctx[2], &is_idle);

	if (is_idle) {
		count(DIRECT);
		host_insert(p, LOCAL, SLICE, 0);
	}
	return cpu;
}

PROGRAM(enqueue)
{
	struct task *p = (struct task *)ctx[0];
	u64 vtime = p->vtime;

	count(QUEUED);
	/* Who slept gets at most one slice of credit. */
	if (before(vtime, vtime_now - SLICE))
		vtime = vtime_now - SLICE;
	host_insert_vtime(p, SHARED, SLICE, vtime, ctx[1]);
	return 0;
}

PROGRAM(dispatch)
{
	host_move_to_local(SHARED);
	return 0;
}

PROGRAM(running)
{
	struct task *p = (struct task *)ctx[0];

	if (before(vtime_now, p->vtime))
		vtime_now = p->vtime;
	return 0;
}

PROGRAM(stopping)
{
	struct task *p = (struct task *)ctx[0];

	p->vtime += (SLICE - p->slice) * 100 / p->weight;
	return 0;
}

PROGRAM(enable)
{
	struct task *p = (struct task *)ctx[0];

	p->vtime = vtime_now;
	return 0;
}
