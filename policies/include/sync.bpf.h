/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Synchronous wakeups as Linux 2.6 has them: a waker that is about to sleep says
 * so, and leaves its CPU to the task that it wakes without being preempted.
 *
 * Source: try_to_wake_up() in kernel/sched.c of Linux 2.6.3.
 * Differs from the source: the kernel of today flags the wakeups of sockets, too,
 * where the source flagged those of pipes only.
 */
#ifndef RUNSLICE_SYNC_BPF_H
#define RUNSLICE_SYNC_BPF_H

#include <knobs.bpf.h>
#include <percpu.bpf.h>

KNOB(bool, sync_wakeups, 1, "bool",
     "a synchronous waker leaves its CPU to its task, as at pipes of the source; 0: as at sockets",
     0, 1);

/* In `select_cpu`: notes whether the waker is about to sleep, and says so. */
static __always_inline bool note_sync(struct queued *q, u64 wake_flags)
{
	bool sync = sync_wakeups && (wake_flags & SCX_WAKE_SYNC);

	if (q)
		q->sync = sync;
	return sync;
}

/* Whether the waker is about to leave `cpu`, which it has, to the task. */
static __always_inline bool is_local_sync(struct queued *q, s32 cpu)
{
	return q->sync && cpu == (s32)bpf_get_smp_processor_id();
}

#endif /* RUNSLICE_SYNC_BPF_H */
