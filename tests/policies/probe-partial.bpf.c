/* SPDX-License-Identifier: GPL-2.0-only */
/* The probe for tasks of the class SCHED_EXT only; the others stay with the kernel. */
#define PROBE_FLAGS (SCX_OPS_KEEP_BUILTIN_IDLE | SCX_OPS_SWITCH_PARTIAL)
#include "probe.h"
