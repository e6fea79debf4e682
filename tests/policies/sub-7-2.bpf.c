/* SPDX-License-Identifier: GPL-2.0-only */
/* `sub` as the root of a kernel 7.2, which has no rights and calls its callbacks of cgroups so. */
#define cpuctl_init cgroup_init
#define cpuctl_exit cgroup_exit
#define cpuctl_prep_move cgroup_prep_move
#define cpuctl_move cgroup_move
#define cpuctl_set_weight cgroup_set_weight
#define ROOT_OF_7_2
#include "sub.bpf.c"
