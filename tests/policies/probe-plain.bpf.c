/* SPDX-License-Identifier: GPL-2.0-only */
/* The probe without yield, hotplug and CPU callbacks: the kernel's own ways. */
#define PROBE_FLAGS 0
#define PROBE_PLAIN
#include "probe.h"
