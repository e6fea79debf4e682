/* SPDX-License-Identifier: GPL-2.0-only */
/* The same cheats, which promise nothing to anybody. */
#include "cheats.h"

POLICY_RIGHT("none");
