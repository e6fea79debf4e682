/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Creates dispatch queues without end. With `destroys` each is destroyed
 * before the next one: no kernel keeps it, the machine does.
 */
#include <scx.h>

BPF_LICENSE();

const volatile u32 destroys;

s32 OP_SLEEPABLE(queuer_init)
{
	u64 id = 0;

	while (id < 1 << 20 && !scx_bpf_create_dsq(id, -1)) {
		/* A number that is taken needs no room. */
		scx_bpf_create_dsq(id, -1);
		if (destroys)
			scx_bpf_destroy_dsq(id);
		id++;
	}
	bpf_printk("%d queues", (u32)id);
	return 0;
}

POLICY(queuer_ops,
       .init	= (void *)queuer_init,
       .name	= "queuer");
