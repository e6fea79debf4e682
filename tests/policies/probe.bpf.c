/* SPDX-License-Identifier: GPL-2.0-only */
/* The probe as recorded: the kernel tracks idle CPUs although update_idle is there. */
#define PROBE_FLAGS SCX_OPS_KEEP_BUILTIN_IDLE
#include "probe.h"
