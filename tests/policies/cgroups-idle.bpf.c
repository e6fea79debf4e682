/* SPDX-License-Identifier: GPL-2.0-only */
/* With cpu.idle, which kernels tell of since 6.19. */
#define CGROUPS_FLAGS 0
#define WITH_IDLE
#include "cgroups.h"
