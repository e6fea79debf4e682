/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The simulated kernel 7.3 as a policy sees it; see 6.18.h, which says how
 * such a header is made. Source: BTF of Debian's 7.3.4.
 */
#define SIMULATED_KERNEL 7003
#include "6.18/types.h"
#include "7.2/ops.h"
#include "7.2/cid.h"
#include "7.2/constants.h"
#include "6.18/functions.h"
#include "7.2/functions.h"
#include "6.18/loader.h"

#define EMITTED_BY_THIS_VERSION						\
	struct scx_bpf_dsq_insert_vtime_args insert_vtime_args;		\
	struct scx_bpf_select_cpu_and_args select_cpu_and_args;		\
	enum scx_reenq_flags scx_reenq_flags;
#include "emitted.h"
