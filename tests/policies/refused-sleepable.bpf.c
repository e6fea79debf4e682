/* SPDX-License-Identifier: GPL-2.0-only */
/* A callback that may sleep where none may: the object is refused (-EINVAL). */
#define REFUSED .cgroup_set_weight = (void *)refused_set_weight, .name = "refused"
#include <scx.h>

void OP_SLEEPABLE(refused_set_weight, struct cgroup *cgrp, u32 weight)
{
}

#include "refused.h"
