/* SPDX-License-Identifier: GPL-2.0-only */
/* The probe, asked about tasks with migration disabled too. */
#define PROBE_FLAGS (SCX_OPS_KEEP_BUILTIN_IDLE | SCX_OPS_ENQ_MIGRATION_DISABLED)
#include "probe.h"
