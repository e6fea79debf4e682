/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The simulated kernel 6.18 as a policy sees it: types, constants, functions.
 *
 * Compiled to BTF by the build; the loader relocates policies against it, as
 * a kernel's loader does against /sys/kernel/btf/vmlinux. Names, the order of
 * struct sched_ext_ops, values of enums and prototypes are those of Linux
 * 6.18 (Debian 6.18.15, its configuration). Layouts are ours: objects are
 * relocated by field name, so a task is as small as the fields that policies
 * use. What a field means and when it changes is the simulator's business;
 * a field that it never writes reads as zero.
 *
 * Four parts: types that policies read, the table of callbacks, constants,
 * functions. The last lines make the compiler emit every type, used or not.
 */
#define SIMULATED_KERNEL 6018
#include "6.18/types.h"
#include "6.18/ops.h"
#include "6.18/constants.h"
#include "6.18/functions.h"
#include "6.18/loader.h"

#define EMITTED_BY_THIS_VERSION			\
	enum scx_task_state scx_task_state;	\
	enum scx_kf_mask scx_kf_mask;
#include "emitted.h"
