/* SPDX-License-Identifier: GPL-2.0-only */
/* Each insert into a local queue says that it is to run at once. */
#define INSERT_FLAGS ENQ_IMMED
#define TABLE_FLAGS 0
#include "immed.h"
