/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The simulated kernel 6.16 as a policy sees it; see 6.18.h, which says how
 * such a header is made. Source: BTF of Debian's 6.16.12.
 */
#define SIMULATED_KERNEL 6016
#include "6.18/types.h"
#include "6.18/ops.h"
#include "6.18/constants.h"
#include "6.18/functions.h"
#include "6.18/loader.h"

#define EMITTED_BY_THIS_VERSION			\
	enum scx_task_state scx_task_state;	\
	enum scx_kf_mask scx_kf_mask;
#include "emitted.h"
