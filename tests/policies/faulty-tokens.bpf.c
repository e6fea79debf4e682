/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lets ten turns begin for each tick. A CPU that idles has no ticks: when the last token
 * is gone while all idle, no more come.
 *
 * Breaks: no CPU idles while a task waits that it may run.
 */
#include "faulty.h"

#define TOKENS 10

static s64 tokens = TOKENS;

SELECT_CPU_PREV(tokens)

void OP(tokens_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
}

void OP(tokens_dispatch, s32 cpu, struct task_struct *prev)
{
	if (tokens <= 0) /* the fault */
		return;
	if (scx_bpf_dsq_move_to_local(QUEUE))
		tokens--;
}

void OP(tokens_tick, struct task_struct *p)
{
	tokens = TOKENS;
}

INIT_QUEUE(tokens)
FAULTY(tokens, .tick = (void *)tokens_tick);
