/* SPDX-License-Identifier: GPL-2.0-only */
/* The probe without the kernel's tracking of idle CPUs: asking for one is an error. */
#define PROBE_FLAGS 0
#include "probe.h"
