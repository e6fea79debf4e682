/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A policy whose table the kernel refuses to attach, or ends at once. The
 * including file gives the faulty members as REFUSED.
 */
#include <scx.h>

BPF_LICENSE();

void OP(refused_dispatch, s32 cpu, struct task_struct *prev)
{
}

POLICY(refused_ops,
       .dispatch	= (void *)refused_dispatch,
       REFUSED);
