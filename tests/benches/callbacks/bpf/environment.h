/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "../types.h"

#define SEC(name) __attribute__((section(name), used))
#define __ksym __attribute__((section(".ksyms")))

#define PROGRAM(name) SEC("syscall") u64 name(u64 *ctx)

#define PERCPU_ARRAY(name, value_type, entries)	\
	struct {				\
		int (*type)[6];			\
		int (*max_entries)[entries];	\
		u32 *key;			\
		value_type *value;		\
	} name SEC(".maps")

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;

extern s32 host_select_cpu(struct task *p, s32 prev, u64 flags, bool *is_idle) __ksym;
extern void host_insert(struct task *p, u64 queue, u64 slice, u64 flags) __ksym;
extern void host_insert_vtime(struct task *p, u64 queue, u64 slice, u64 vtime,
			      u64 flags) __ksym;
extern bool host_move_to_local(u64 queue) __ksym;

char _license[] SEC("license") = "Dual MIT/GPL";
