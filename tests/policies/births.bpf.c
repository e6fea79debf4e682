/* SPDX-License-Identifier: GPL-2.0-only */
#define INSERT scx_bpf_dsq_insert
#define FLAGS 16 /* SCX_OPS_ENQ_MIGRATION_DISABLED */
#include "births.h"
