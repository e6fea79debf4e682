/* SPDX-License-Identifier: GPL-2.0-only */
/* The same policy with the names that functions have since 6.13. */
#define INSERT scx_bpf_dsq_insert
#define INSERT_VTIME scx_bpf_dsq_insert_vtime
#define MOVE_TO_LOCAL scx_bpf_dsq_move_to_local
#define MOVE_SET_SLICE scx_bpf_dsq_move_set_slice
#define MOVE_SET_VTIME scx_bpf_dsq_move_set_vtime
#define MOVE scx_bpf_dsq_move
#define MOVE_VTIME scx_bpf_dsq_move_vtime
#include "renamed.h"
