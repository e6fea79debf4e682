/* SPDX-License-Identifier: GPL-2.0-only */
/* Under a lock that tells of a deadlock. There is none, however many CPUs want it at a time. */
#include "design.h"

struct bpf_res_spin_lock {
	u32 val;
};

int bpf_res_spin_lock(struct bpf_res_spin_lock *lock) __ksym;
void bpf_res_spin_unlock(struct bpf_res_spin_lock *lock) __ksym;

#define STEPS 20
#define LOCK struct bpf_res_spin_lock
#define ENTER()                                        \
	if (bpf_res_spin_lock(&slab.lock)) {           \
		scx_bpf_error("nobody waits for itself"); \
		return 0;                              \
	}
#define LEAVE() bpf_res_spin_unlock(&slab.lock)
#include "slab.h"
