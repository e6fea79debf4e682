/* SPDX-License-Identifier: GPL-2.0-only */
/* A watchdog of more than 30 s: -E2BIG. */
#define REFUSED .timeout_ms = 30001, .name = "refused"
#include "refused.h"
