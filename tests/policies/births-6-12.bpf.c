/* SPDX-License-Identifier: GPL-2.0-only */
#define INSERT scx_bpf_dispatch
#define FLAGS 0
#include "births.h"
