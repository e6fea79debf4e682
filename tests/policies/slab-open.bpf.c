/* SPDX-License-Identifier: GPL-2.0-only */
#define STEPS 200
#define ENTER()
#define LEAVE()
#include "slab.h"
