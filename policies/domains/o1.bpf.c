/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The O(1) scheduler of Linux 2.6 with scheduling domains: `o1:domains=1`.
 *
 * Tasks are chosen as under o1. Which CPU they wait at is decided by domains: CPUs of a
 * core, of a node, all.
 *
 * Source: kernel/sched.c of Linux 2.6.3, and of the spring of 2004 for what domains do.
 * Differs from the source: as o1.bpf.c and domains.bpf.h say. It is compiled apart,
 * because asking at each wakeup whether there are domains would cost o1 instructions.
 */
#include <domains.bpf.h>

#include "../o1.bpf.c"

static void note_expired(s32 cpu)
{
	struct cpu_ctx *cctx = cpu_ctx(cpu);

	if (cctx)
		cctx->expired = true;
}
