/* SPDX-License-Identifier: GPL-2.0-only */
/* A flag that no kernel knows: -EINVAL. */
#define REFUSED .flags = 1ULL << 40, .name = "refused"
#include "refused.h"
