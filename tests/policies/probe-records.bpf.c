/* SPDX-License-Identifier: GPL-2.0-only */
/* The probe, writing every callback into the kernel's trace: what scripts/traces.sh loads. */
#define PROBE_FLAGS SCX_OPS_KEEP_BUILTIN_IDLE
#define PROBE_RECORDS
#include "probe.h"
