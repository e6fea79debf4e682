/* SPDX-License-Identifier: GPL-2.0-only */
/* The policy in cid form that follows CPUs which come and go. */
#define CID_OPS .cid_online = (void *)cid_online, .cid_offline = (void *)cid_offline,
#include "cids.h"
