/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a policy tells what it thinks. Simulator and kernel tools read the same
 * three things, found by name:
 *
 *	runslice_counters	per-CPU array of u64, one entry a counter;
 *				what counts is the sum over CPUs
 *	runslice_counter_names	their names, RUNSLICE_NAME_LEN bytes each,
 *				padded with zeros, in .rodata
 *	runslice_report		task storage: where the policy has put the
 *				task, read when `running` or `dispatch` has run
 *	runslice_exit		how the policy ended (kernel only: the
 *				simulator knows)
 */
#ifndef RUNSLICE_REPORT_BPF_H
#define RUNSLICE_REPORT_BPF_H

#include <scx.h>

#define RUNSLICE_NAME_LEN 32

/* One task as its policy sees it. */
struct runslice_task {
	u32 prio;	/* on the kernel's scale, 0..139, lower is better */
	u32 level;	/* queue or level in the policy's own numbers */
	u64 flags;	/* RUNSLICE_TASK_* */
};

#define RUNSLICE_TASK_INTERACTIVE (1ULL << 0)
#define RUNSLICE_TASK_EXPIRED (1ULL << 1)

TASK_STORAGE(runslice_report, struct runslice_task);

/* Makes the entry; in init_task, which may allocate. */
static __always_inline bool report_init(struct task_struct *p)
{
	return bpf_task_storage_get(&runslice_report, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* Says where the task stands; in `running`, and in `dispatch` when it keeps the CPU. */
static __always_inline void report_task(struct task_struct *p, u32 prio, u32 level, u64 flags)
{
	struct runslice_task *report = bpf_task_storage_get(&runslice_report, p, NULL, 0);

	if (!report)
		return;
	report->prio = prio;
	report->level = level;
	report->flags = flags;
}

/* Raises a counter, by its number in the list that COUNTERS takes. */
static __always_inline void count_by(u32 which, u64 more);
static __always_inline void count(u32 which);

/* The same on another CPU. Atomic, because any CPU may: a counter is counted this way only. */
static __always_inline void count_for(s32 cpu, u32 which);

/* Declares the counters: their names, in the order of the policy's enum. */
#define COUNTERS(names...)							\
	const char runslice_counter_names[][RUNSLICE_NAME_LEN] SEC(".rodata") = { names };	\
	struct {								\
		__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);			\
		__uint(max_entries, sizeof(runslice_counter_names) / RUNSLICE_NAME_LEN);	\
		__type(key, u32);						\
		__type(value, u64);						\
	} runslice_counters SEC(".maps");					\
										\
	static __always_inline void count_by(u32 which, u64 more)		\
	{									\
		u64 *counter = bpf_map_lookup_elem(&runslice_counters, &which);	\
										\
		if (counter)							\
			*counter += more;					\
	}									\
	static __always_inline __maybe_unused void count(u32 which)		\
	{									\
		count_by(which, 1);						\
	}									\
	static __always_inline __maybe_unused void count_for(s32 cpu, u32 which)	\
	{									\
		u64 *counter;							\
										\
		counter = bpf_map_lookup_percpu_elem(&runslice_counters, &which, cpu);	\
		if (counter)							\
			__sync_fetch_and_add(counter, 1);			\
	}									\
	_Static_assert(sizeof(runslice_counter_names) > 0, "a policy without counters needs none")

/* How it ended: kind is 0 until the policy's exit callback has run. */
struct {
	s64 kind;
	s64 code;
	char reason[128];
	char message[1024];
} runslice_exit SEC(".data");

/* The body of a policy's exit callback. */
static __always_inline void report_exit(const struct scx_exit_info *info)
{
	bpf_probe_read_kernel_str(runslice_exit.reason, sizeof(runslice_exit.reason),
				  info->reason);
	bpf_probe_read_kernel_str(runslice_exit.message, sizeof(runslice_exit.message),
				  info->msg);
	runslice_exit.code = info->exit_code;
	runslice_exit.kind = info->kind;
}

#endif /* RUNSLICE_REPORT_BPF_H */
