/* SPDX-License-Identifier: GPL-2.0-only */
/* The probe, asked about exiting tasks too. */
#define PROBE_FLAGS (SCX_OPS_KEEP_BUILTIN_IDLE | SCX_OPS_ENQ_EXITING)
#include "probe.h"
