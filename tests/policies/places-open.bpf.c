/* SPDX-License-Identifier: GPL-2.0-only */
/* Two CPUs can get one place: the pid that comes second replaces the first. */
#define NEXT_PLACE() (*(volatile u32 *)&tail)++
#define KEEP(place, p, flags) __sync_lock_test_and_set(&places[place], (p)->pid)
#include "places.h"
