/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "../types.h"

#define PROGRAM(name) u64 name(u64 *ctx)

struct map {
	u32 entries;
	u64 stride;
	u8 *values;
};

#define CPUS 4

#define PERCPU_ARRAY(name, value_type, count)			\
	static value_type name##_values[CPUS][count];		\
	struct map name = {					\
		.entries = count,				\
		.stride = sizeof(value_type),			\
		.values = (u8 *)name##_values,			\
	}

/* In another file, so that the compiler knows as little of them as of a kernel's. */
void *bpf_map_lookup_elem(struct map *map, const void *key);
s32 host_select_cpu(struct task *p, s32 prev, u64 flags, bool *is_idle);
void host_insert(struct task *p, u64 queue, u64 slice, u64 flags);
void host_insert_vtime(struct task *p, u64 queue, u64 slice, u64 vtime, u64 flags);
bool host_move_to_local(u64 queue);
