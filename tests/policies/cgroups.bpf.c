/* SPDX-License-Identifier: GPL-2.0-only */
/* What every kernel from 6.18 on tells of cgroups. */
#define CGROUPS_FLAGS 0
#include "cgroups.h"
