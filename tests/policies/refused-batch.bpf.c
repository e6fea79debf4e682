/* SPDX-License-Identifier: GPL-2.0-only */
/* A dispatch buffer of more than INT_MAX inserts: -E2BIG. */
#define REFUSED .dispatch_max_batch = 0x80000000u, .name = "refused"
#include "refused.h"
