/* SPDX-License-Identifier: GPL-2.0-only */
/* The policy in cid form with a callback for all that a task goes through. */
#define CID_OPS								\
	.dequeue = (void *)cid_dequeue,					\
	.runnable = (void *)cid_runnable,				\
	.stopping = (void *)cid_stopping,				\
	.quiescent = (void *)cid_quiescent,				\
	.exit_task = (void *)cid_exit_task,				\
	.cpuctl_prep_move = (void *)cid_prep_move,			\
	.cpuctl_move = (void *)cid_move,
#define CID_RECORDS
#include "cids.h"
