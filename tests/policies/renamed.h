/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A policy that calls every function which had another name until 6.12: two
 * queues, one in order of arrival and one in order of keys; whoever waits in
 * the first for a CPU is moved to the second now and then. The file that
 * includes this one gives the names.
 */
#include <scx.h>

BPF_LICENSE();

__kfunc void INSERT(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags);
__kfunc void INSERT_VTIME(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime, u64 enq_flags);
__kfunc bool MOVE_TO_LOCAL(u64 dsq_id);
__kfunc void MOVE_SET_SLICE(struct bpf_iter_scx_dsq *it, u64 slice);
__kfunc void MOVE_SET_VTIME(struct bpf_iter_scx_dsq *it, u64 vtime);
__kfunc bool MOVE(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id, u64 enq_flags);
__kfunc bool MOVE_VTIME(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id,
			u64 enq_flags);

#define ARRIVED 1
#define KEYED 2

static u64 key, rounds;

void OP(renamed_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (p->pid & 1)
		INSERT(p, ARRIVED, 3 * NSEC_PER_MSEC, enq_flags);
	else
		INSERT_VTIME(p, KEYED, 2 * NSEC_PER_MSEC, key++ ^ 5, enq_flags);
	scx_bpf_kick_cpu(scx_bpf_task_cpu(p), SCX_KICK_IDLE);
}

static void move_first(s32 cpu)
{
	struct task_struct *p;

	for_each_queued(it, p, ARRIVED, 0) {
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		MOVE_SET_SLICE(&it, NSEC_PER_MSEC);
		if (rounds & 1) {
			MOVE(&it, p, SCX_DSQ_LOCAL, 0);
		} else {
			MOVE_SET_VTIME(&it, key++);
			MOVE_VTIME(&it, p, KEYED, 0);
		}
		break;
	}
}

void OP(renamed_dispatch, s32 cpu, struct task_struct *prev)
{
	if (++rounds % 3 == 0)
		move_first(cpu);
	if (!MOVE_TO_LOCAL(KEYED))
		MOVE_TO_LOCAL(ARRIVED);
}

s32 OP_SLEEPABLE(renamed_init)
{
	s32 error = scx_bpf_create_dsq(ARRIVED, -1);

	return error ? error : scx_bpf_create_dsq(KEYED, -1);
}

POLICY(renamed_ops,
       .enqueue		= (void *)renamed_enqueue,
       .dispatch	= (void *)renamed_dispatch,
       .init		= (void *)renamed_init,
       .name		= "renamed");
