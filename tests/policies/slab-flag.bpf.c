/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Under a flag that is looked at before it is set. One CPU that stops in between does no harm,
 * because the others have set it and cleared it by then. It takes another one that stops, too.
 */
static unsigned int is_taken;

#define STEPS 20
#define ENTER()						\
	if (*(volatile unsigned int *)&is_taken)	\
		return 0;				\
	*(volatile unsigned int *)&is_taken = 1
#define LEAVE() *(volatile unsigned int *)&is_taken = 0
#include "slab.h"
