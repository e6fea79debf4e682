/* SPDX-License-Identifier: GPL-2.0-only */
/* One pair of idle masks for each NUMA node. */
#define NODES_FLAGS SCX_OPS_BUILTIN_IDLE_PER_NODE
#include "nodes.h"
