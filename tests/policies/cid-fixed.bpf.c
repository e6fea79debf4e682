/* SPDX-License-Identifier: GPL-2.0-only */
/* The policy in cid form for CPUs that stay, with shards of three CPUs. */
#define CID_OPS .cid_shard_size = 3,
#include "cids.h"
