/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Forgets every task that it is given, so the watchdog ejects it after a
 * second.
 */
#include <scx.h>

BPF_LICENSE();

void OP(loser_enqueue, struct task_struct *p, u64 enq_flags)
{
}

POLICY(loser_ops,
       .enqueue		= (void *)loser_enqueue,
       .timeout_ms	= 1000,
       .name		= "loser");
