/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Staircase 5 over scheduling domains, as it was announced: `staircase5:domains=1`.
 *
 * Tasks are chosen as under staircase5. Which CPU they wait at is decided by domains:
 * CPUs of a core, of a node, all.
 *
 * Source: Kolivas, "[PATCH]Staircase scheduler - experimental", 2004, and kernel/sched.c
 * of that spring for what domains do.
 * Differs from the source: as staircase5.bpf.c and domains.bpf.h say. It is compiled
 * apart, because asking at each wakeup whether there are domains would cost staircase5
 * instructions.
 */
#include <domains.bpf.h>

#include "../staircase5.bpf.c"

/* It has no expired array. */
static void note_expired(s32 cpu)
{
}
