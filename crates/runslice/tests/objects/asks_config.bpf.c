/* SPDX-License-Identifier: GPL-2.0-only */
/* Asks for two values of the kernel's configuration. */
#include <scx.h>

BPF_LICENSE();

#ifndef __kconfig
#define __kconfig __attribute__((section(".kconfig")))
#endif

extern int CONFIG_HZ __kconfig;
extern int CONFIG_NR_CPUS __kconfig;

void OP(asks_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL,
			   1000000000u / (u32)(CONFIG_HZ + CONFIG_NR_CPUS), enq_flags);
}

POLICY(asks_ops,
       .enqueue		= (void *)asks_enqueue,
       .name		= "asks");
