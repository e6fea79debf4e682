/* SPDX-License-Identifier: GPL-2.0-only */
/* Cheats that promise shares by weight. */
#include "cheats.h"

POLICY_RIGHT("weight");
