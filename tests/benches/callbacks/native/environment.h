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

extern u32 this_cpu;

static inline void *look_up(struct map *map, const void *key)
{
	u32 index = *(const u32 *)key;

	if (index >= map->entries)
		return 0;
	return map->values + (this_cpu * (u64)map->entries + index) * map->stride;
}

/*
 * Pointers in another file, so that the compiler knows as little of the functions as of a
 * kernel's.
 */
#ifdef LOOKUP_INLINE
#define bpf_map_lookup_elem look_up
#else
extern void *(*bpf_map_lookup_elem)(struct map *map, const void *key);
#endif
extern s32 (*host_select_cpu)(struct task *p, s32 prev, u64 flags, bool *is_idle);
extern void (*host_insert)(struct task *p, u64 queue, u64 slice, u64 flags);
extern void (*host_insert_vtime)(struct task *p, u64 queue, u64 slice, u64 vtime, u64 flags);
extern bool (*host_move_to_local)(u64 queue);
