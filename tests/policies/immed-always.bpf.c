/* SPDX-License-Identifier: GPL-2.0-only */
/* The table says it for all inserts: SCX_OPS_ALWAYS_ENQ_IMMED. */
#define INSERT_FLAGS 0
#define TABLE_FLAGS (1 << 7)
#include "immed.h"
