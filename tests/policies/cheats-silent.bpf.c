/* SPDX-License-Identifier: GPL-2.0-only */
/* The same cheats, which say nothing of what they promise. */
#include "cheats.h"
