/* SPDX-License-Identifier: GPL-2.0-only */
#define STEPS 20
#define ENTER() bpf_spin_lock(&slab.lock)
#define LEAVE() bpf_spin_unlock(&slab.lock)
#include "slab.h"
