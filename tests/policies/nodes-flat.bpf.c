/* SPDX-License-Identifier: GPL-2.0-only */
/* One pair of idle masks for all NUMA nodes. */
#define NODES_FLAGS 0
#include "nodes.h"
