/* SPDX-License-Identifier: GPL-2.0-only */
/* The probe, asked too when a CPU has nothing but the task whose slice ended. */
#define PROBE_FLAGS (SCX_OPS_KEEP_BUILTIN_IDLE | SCX_OPS_ENQ_LAST)
#include "probe.h"
