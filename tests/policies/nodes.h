/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A policy that asks for everything that has to do with NUMA nodes; the
 * including file gives its flags as NODES_FLAGS. `init` prints the
 * topology; a woken task gets an idle CPU by the function that `how` names,
 * and otherwise waits in the global queue of its node.
 */
#include <scx.h>

BPF_LICENSE();

/* ---- Tunables: set before load, constant afterwards ---- */

enum {
	NOWHERE = 0,		/* stays where it was, waits in the global queue */
	PICK_NODE = 1,		/* pick_idle_cpu_node from the node of its last CPU */
	PICK_ANY_NODE = 2,	/* pick_any_cpu_node likewise */
	DEFAULT = 3,		/* the built-in choice */
};

const volatile u32 how = NOWHERE;
const volatile u64 pick_flags = 0;

/* Node that `init` asks the idle mask of; 99: none. */
const volatile s32 mask_of = 99;

#define SLICE_NS (4 * NSEC_PER_MSEC)

/* ---- Functions that scx.h does not declare ---- */

__kfunc s32 scx_bpf_pick_any_cpu_node(const struct cpumask *cpus_allowed, int node, u64 flags);
__kfunc const struct cpumask *scx_bpf_get_idle_cpumask_node(int node);
__kfunc int scx_bpf_cpu_node(s32 cpu);
__kfunc u32 scx_bpf_nr_node_ids(void);

/* ---- Callbacks, in the order of a task's life ---- */

static s32 pick(struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;
	s32 cpu;

	switch (how) {
	case PICK_NODE:
		return scx_bpf_pick_idle_cpu_node(p->cpus_ptr, scx_bpf_cpu_node(prev_cpu),
						  pick_flags);
	case PICK_ANY_NODE:
		return scx_bpf_pick_any_cpu_node(p->cpus_ptr, scx_bpf_cpu_node(prev_cpu),
						 pick_flags);
	case DEFAULT:
		cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);
		return is_idle ? cpu : -1;
	}
	return -1;
}

s32 OP(nodes_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	s32 cpu = pick(p, prev_cpu, wake_flags);

	if (cpu < 0)
		return prev_cpu;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SLICE_NS, 0);
	return cpu;
}

void OP(nodes_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SLICE_NS, enq_flags);
}

s32 OP_SLEEPABLE(nodes_init)
{
	s32 cpu, bound = scx_bpf_nr_cpu_ids();
	s32 nodes = scx_bpf_nr_node_ids();
	s32 inside, beyond;

	bpf_printk("%d nodes", nodes);
	for (cpu = 0; cpu < bound && cpu < 64; cpu++)
		bpf_printk("cpu %d node %d", cpu, scx_bpf_cpu_node(cpu));
	inside = scx_bpf_create_dsq(1, nodes - 1);
	beyond = scx_bpf_create_dsq(2, nodes);
	bpf_printk("queues %d %d", inside, beyond);
	if (mask_of != 99) {
		const struct cpumask *idle = scx_bpf_get_idle_cpumask_node(mask_of);

		for (cpu = 0; cpu < bound && cpu < 64; cpu++) {
			if (bpf_cpumask_test_cpu(cpu, idle))
				bpf_printk("idle %d", cpu);
		}
		scx_bpf_put_idle_cpumask(idle);
	}
	return 0;
}

POLICY(nodes_ops,
       .select_cpu	= (void *)nodes_select_cpu,
       .enqueue		= (void *)nodes_enqueue,
       .init		= (void *)nodes_init,
       .flags		= NODES_FLAGS,
       .name		= "nodes");
