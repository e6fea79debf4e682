/* SPDX-License-Identifier: GPL-2.0-only */
/* With SCX_OPS_HAS_CGROUP_WEIGHT, which means nothing in 6.18 and is unknown since 7.1. */
#define CGROUPS_FLAGS (1 << 16)
#include "cgroups.h"
