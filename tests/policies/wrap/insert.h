/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A wrapper of a kernel's function, as scx's headers have some, which stays a function of its own.
 */
#ifndef WRAP_INSERT_H
#define WRAP_INSERT_H

static __attribute__((noinline)) bool wrapped_insert(struct task_struct *p, u64 dsq_id,
						     u64 slice, u64 enq_flags)
{
	if (!slice)
		slice = 1;
	scx_bpf_dsq_insert(p, dsq_id, slice, enq_flags);
	return slice > 1;
}

#endif
