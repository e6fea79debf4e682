/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The kernel that the measured policy is linked against. */
#include "types.h"

struct task *root_task;

s32 host_select_cpu(struct task *p, s32 prev, u64 flags, bool *is_idle)
{
	return 0;
}

void host_insert(struct task *p, u64 queue, u64 slice, u64 flags)
{
}

void host_insert_vtime(struct task *p, u64 queue, u64 slice, u64 vtime, u64 flags)
{
}

bool host_move_to_local(u64 queue)
{
	return 0;
}
