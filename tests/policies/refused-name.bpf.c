/* SPDX-License-Identifier: GPL-2.0-only */
/* No name: -EINVAL. */
#define REFUSED .timeout_ms = 1000
#include "refused.h"
