/* SPDX-License-Identifier: GPL-2.0-only */
/* ENQ_LAST without enqueue: an error, kind 1024. */
#define REFUSED .flags = SCX_OPS_ENQ_LAST, .name = "refused"
#include "refused.h"
