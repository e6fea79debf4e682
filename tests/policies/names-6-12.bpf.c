/* SPDX-License-Identifier: GPL-2.0-only */
/* As objects were made for 6.12; 6.13 to 6.16 take them too. */
#define INSERT scx_bpf_dispatch
#define INSERT_VTIME scx_bpf_dispatch_vtime
#define MOVE_TO_LOCAL scx_bpf_consume
#define MOVE_SET_SLICE scx_bpf_dispatch_from_dsq_set_slice
#define MOVE_SET_VTIME scx_bpf_dispatch_from_dsq_set_vtime
#define MOVE scx_bpf_dispatch_from_dsq
#define MOVE_VTIME scx_bpf_dispatch_vtime_from_dsq
#include "renamed.h"
