/* SPDX-License-Identifier: GPL-2.0-only */
/* The probe under a watchdog of one second. */
#define PROBE_FLAGS SCX_OPS_KEEP_BUILTIN_IDLE
#define PROBE_TIMEOUT_MS 1000
#include "probe.h"
