/* SPDX-License-Identifier: GPL-2.0-only */
/* No two CPUs get one place, and a place that is taken is left to who has it. */
#define NEXT_PLACE() __sync_fetch_and_add(&tail, 1)
#define KEEP(place, p, flags)								\
	do {										\
		if (__sync_val_compare_and_swap(&places[place], 0, (p)->pid))		\
			scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, flags);			\
	} while (0)
#include "places.h"
