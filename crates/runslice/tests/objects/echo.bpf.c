/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * First in, first out, and counts how often it finds the knob `word` at 7:
 * whether it sees a change while it runs. The constant `fixed` cannot change.
 */
#include <hotplug.bpf.h>
#include <knobs.bpf.h>
#include <report.bpf.h>

BPF_LICENSE();

KNOB(u32, word, 1, "count", "what is looked at", 0, 9);

const volatile u32 fixed = 3;

enum {
	COUNT_SEVENS,
	COUNT_OTHERS,
};

COUNTERS("sevens", "others");

void OP(echo_enqueue, struct task_struct *p, u64 enq_flags)
{
	count(word == 7 ? COUNT_SEVENS : COUNT_OTHERS);
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, fixed * 1000000ULL, enq_flags);
}

void OP_SLEEPABLE(echo_cpu_online, s32 cpu)
{
}

void OP_SLEEPABLE(echo_cpu_offline, s32 cpu)
{
}

void OP(echo_exit, struct scx_exit_info *info)
{
	report_exit(info);
}

POLICY(echo_ops,
       .enqueue		= (void *)echo_enqueue,
       .cpu_online	= (void *)echo_cpu_online,
       .cpu_offline	= (void *)echo_cpu_offline,
       .exit		= (void *)echo_exit,
       .name		= "echo");
