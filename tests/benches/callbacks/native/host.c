/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The host's functions, reduced to nothing. */
#include "environment.h"

u32 this_cpu;

static s32 select_cpu(struct task *p, s32 prev, u64 flags, bool *is_idle)
{
	*is_idle = 1;
	return prev;
}

static void insert(struct task *p, u64 queue, u64 slice, u64 flags)
{
}

static void insert_vtime(struct task *p, u64 queue, u64 slice, u64 vtime, u64 flags)
{
}

static bool move_to_local(u64 queue)
{
	return 0;
}

#ifndef LOOKUP_INLINE
void *(*bpf_map_lookup_elem)(struct map *map, const void *key) = look_up;
#endif
s32 (*host_select_cpu)(struct task *p, s32 prev, u64 flags, bool *is_idle) = select_cpu;
void (*host_insert)(struct task *p, u64 queue, u64 slice, u64 flags) = insert;
void (*host_insert_vtime)(struct task *p, u64 queue, u64 slice, u64 vtime, u64 flags) =
	insert_vtime;
bool (*host_move_to_local)(u64 queue) = move_to_local;
