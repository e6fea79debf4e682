/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A policy that does one thing wrong: what `misuse_case` says, at the first
 * opportunity. Otherwise a FIFO. What a kernel does about each case is the
 * machine's business; the last group is quietly tolerated.
 *
 * Some cases need a workload to match: LOCAL_ON_FORBIDDEN a task that may not
 * run on CPU 0; MIXED_* and DESTROY_IN_USE two runnable tasks on one CPU;
 * CPUPERF_OTHER two CPUs; OTHER_DIRECT and FOREIGN_CGROUP a task that wakes
 * another; INIT_TASK_* a fork, or a task at load. NULL_TASK and the cases from
 * WILD_STORE on need a machine that has no verifier.
 */
#include <scx.h>

BPF_LICENSE();

/* ---- What to do wrong: set before load ---- */

const volatile u32 misuse_case = 0;

enum {
	NOTHING = 0,

	/* Inserts, from enqueue unless said. */
	UNKNOWN_DSQ = 1,
	LOCAL_ON_BAD_CPU = 2,
	TWICE_DIRECT = 3,		/* from select_cpu */
	OTHER_DIRECT = 4,		/* the waker, from select_cpu */
	VTIME_LOCAL = 5,
	MIXED_FIFO_FIRST = 6,
	MIXED_VTIME_FIRST = 7,
	LOCAL_ON_FORBIDDEN = 8,		/* from dispatch */
	INTERNAL_FLAGS = 9,
	NULL_TASK = 10,

	/* Functions with bad arguments or in the wrong place. */
	SELECT_BAD_CPU = 20,
	KICK_BAD_CPU = 21,
	KICK_IDLE_PREEMPT = 22,
	BUFFER_OVERFLOW = 23,		/* from dispatch */
	CANCEL_EMPTY = 24,		/* from dispatch */
	MOVE_UNKNOWN = 25,		/* from dispatch */
	MOVE_IN_ENQUEUE = 26,
	REENQUEUE_IN_ENQUEUE = 27,
	FOREIGN_CGROUP = 28,
	CPUPERF_TOO_HIGH = 29,
	CPUPERF_OTHER = 30,		/* from running */
	DESTROY_IN_USE = 31,		/* from dispatch */
	NODE_PICK = 32,
	LOCKED_RQ_UNLOCKED = 33,	/* from init */
	DUMP_IN_ENQUEUE = 34,

	/* What callbacks answer. */
	INIT_EINVAL = 40,
	INIT_POSITIVE = 41,
	INIT_TASK_ENOMEM = 42,		/* at load only */
	INIT_TASK_EIO = 43,		/* at fork only */
	INIT_TASK_DISALLOW = 44,	/* at fork only */
	INIT_DSQ_TWICE = 45,		/* and answers what that returns */
	INIT_DSQ_BUILTIN = 46,		/* likewise */

	/* The policy ends itself. */
	ERROR_BOOM = 50,
	EXIT_BOOM = 51,			/* with code 5 */

	/* Too late or never. */
	NEVER_DISPATCH = 60,

	/* What a verifier would have refused. */
	WILD_STORE = 70,
	ENDLESS_LOOP = 71,
	STORE_PID = 72,

	/* No error, in any kernel. */
	SELECT_FORBIDDEN_CPU = 80,
	SPURIOUS_INSERT = 81,		/* of a running task, from dispatch */
	ITER_UNKNOWN = 82,
	DESTROY_UNKNOWN = 83,
};

/* ---- State ---- */

#define QUEUE 0
#define NO_SUCH_DSQ 0xdead
#define SLICE_NS (20 * NSEC_PER_MSEC)

/* The task that enqueue kept for dispatch, 0 if none. */
static s32 kept;

/* Whether there was a run queue where there should be none. */
static bool locked;

/* ---- Callbacks, in the order of a task's life ---- */

s32 OP_SLEEPABLE(misuse_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	if (misuse_case == INIT_TASK_ENOMEM && !args->fork)
		return -ENOMEM;
	if (misuse_case == INIT_TASK_EIO && args->fork)
		return -EIO;
	if (misuse_case == INIT_TASK_DISALLOW && args->fork)
		p->scx.disallow = true;
	return 0;
}

/* The task that runs on this CPU, if it is another one than `p` and not the idle task. */
static struct task_struct *waker(struct task_struct *p)
{
	struct task_struct *current = bpf_get_current_task_btf();

	return current->pid && current->pid != p->pid ? current : NULL;
}

/* A CPU below 64 that the task may not use, or prev_cpu. */
static s32 forbidden_cpu(struct task_struct *p, s32 prev_cpu)
{
	u32 cpu;

	for (cpu = 0; cpu < scx_bpf_nr_cpu_ids() && cpu < 64; cpu++) {
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			return cpu;
	}
	return prev_cpu;
}

s32 OP(misuse_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_struct *other;

	switch (misuse_case) {
	case SELECT_BAD_CPU:
		return 9999;
	case TWICE_DIRECT:
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SLICE_NS, 0);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SLICE_NS, 0);
		break;
	case OTHER_DIRECT:
		other = waker(p);
		if (other)
			scx_bpf_dsq_insert(other, SCX_DSQ_LOCAL, SLICE_NS, 0);
		break;
	case SELECT_FORBIDDEN_CPU:
		return forbidden_cpu(p, prev_cpu);
	}
	return prev_cpu;
}

/* A wrong insert of `p` in the place of the right one; false if the case is none. */
static bool insert_wrongly(struct task_struct *p, u64 enq_flags)
{
	/* The kind that comes first into an empty queue, and the other into one that is not. */
	bool vtime = (misuse_case == MIXED_VTIME_FIRST) != (scx_bpf_dsq_nr_queued(QUEUE) > 0);

	switch (misuse_case) {
	case UNKNOWN_DSQ:
		scx_bpf_dsq_insert(p, NO_SUCH_DSQ, SLICE_NS, enq_flags);
		return true;
	case LOCAL_ON_BAD_CPU:
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | 4000, SLICE_NS, enq_flags);
		return true;
	case VTIME_LOCAL:
		scx_bpf_dsq_insert_vtime(p, SCX_DSQ_LOCAL, SLICE_NS, 0, enq_flags);
		return true;
	case INTERNAL_FLAGS:
		scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags | 1ULL << 57);
		return true;
	case NULL_TASK:
		scx_bpf_dsq_insert(NULL, QUEUE, SLICE_NS, enq_flags);
		return false;
	case MIXED_FIFO_FIRST:
	case MIXED_VTIME_FIRST:
		if (vtime)
			scx_bpf_dsq_insert_vtime(p, QUEUE, SLICE_NS, 0, enq_flags);
		else
			scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
		return true;
	case LOCAL_ON_FORBIDDEN:
	case BUFFER_OVERFLOW:
		kept = p->pid;
		return true;
	case NEVER_DISPATCH:
		return true;
	}
	return false;
}

/* A wrong call from enqueue, besides the right insert. */
static void call_wrongly(struct task_struct *p)
{
	struct task_struct *other;

	switch (misuse_case) {
	case KICK_BAD_CPU:
		scx_bpf_kick_cpu(777, 0);
		break;
	case KICK_IDLE_PREEMPT:
		scx_bpf_kick_cpu(0, SCX_KICK_IDLE | SCX_KICK_PREEMPT);
		break;
	case MOVE_IN_ENQUEUE:
		scx_bpf_dsq_move_to_local(QUEUE);
		break;
	case REENQUEUE_IN_ENQUEUE:
		scx_bpf_reenqueue_local();
		break;
	case FOREIGN_CGROUP:
		other = waker(p);
		if (other)
			bpf_cgroup_release(scx_bpf_task_cgroup(other));
		break;
	case CPUPERF_TOO_HIGH:
		scx_bpf_cpuperf_set(0, 2000);
		break;
	case NODE_PICK:
		scx_bpf_pick_idle_cpu_node(p->cpus_ptr, 0, 0);
		break;
	case DUMP_IN_ENQUEUE:
		scx_bpf_dump("out of place");
		break;
	case DESTROY_UNKNOWN:
		scx_bpf_destroy_dsq(NO_SUCH_DSQ);
		break;
	case ERROR_BOOM:
		scx_bpf_error("boom");
		break;
	case EXIT_BOOM:
		scx_bpf_exit(5, "boom");
		break;
	}
}

/* What only a machine without a verifier gets to see. */
static void run_wild(struct task_struct *p)
{
	switch (misuse_case) {
	case WILD_STORE:
		*(volatile u64 *)0xdead0000beefULL = 1;
		break;
	case ENDLESS_LOOP:
		for (;;)
			*(volatile s32 *)&kept = 1;
		break;
	case STORE_PID:
		p->pid = 1;
		break;
	}
}

void OP(misuse_enqueue, struct task_struct *p, u64 enq_flags)
{
	call_wrongly(p);
	run_wild(p);
	if (insert_wrongly(p, enq_flags))
		return;
	scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
}

/* Inserts the kept task so often, and forgets it. */
static void insert_kept(u64 dsq_id, u32 times)
{
	struct task_struct *p;
	u32 i;

	if (!kept)
		return;
	p = bpf_task_from_pid(kept);
	kept = 0;
	if (!p)
		return;
	for (i = 0; i < times; i++)
		scx_bpf_dsq_insert(p, dsq_id, SLICE_NS, 0);
	bpf_task_release(p);
}

static void walk_unknown(void)
{
	struct task_struct *p;

	for_each_queued(it, p, NO_SUCH_DSQ, 0)
		scx_bpf_error("a queue that does not exist holds task %d", (u64)p->pid);
}

void OP(misuse_dispatch, s32 cpu, struct task_struct *prev)
{
	switch (misuse_case) {
	case LOCAL_ON_FORBIDDEN:
		insert_kept(SCX_DSQ_LOCAL_ON | 0, 1);
		return;
	case BUFFER_OVERFLOW:
		/* One more than the buffer of the kernel's default size holds. */
		insert_kept(SCX_DSQ_LOCAL, 33);
		return;
	case CANCEL_EMPTY:
		scx_bpf_dispatch_cancel();
		break;
	case MOVE_UNKNOWN:
		scx_bpf_dsq_move_to_local(0xbeef);
		break;
	case DESTROY_IN_USE:
		if (scx_bpf_dsq_nr_queued(QUEUE) > 0)
			scx_bpf_destroy_dsq(QUEUE);
		break;
	case SPURIOUS_INSERT:
		if (prev)
			scx_bpf_dsq_insert(prev, SCX_DSQ_LOCAL, SLICE_NS, 0);
		break;
	case ITER_UNKNOWN:
		walk_unknown();
		break;
	}
	scx_bpf_dsq_move_to_local(QUEUE);
}

void OP(misuse_running, struct task_struct *p)
{
	if (misuse_case == CPUPERF_OTHER)
		scx_bpf_cpuperf_set(scx_bpf_task_cpu(p) ? 0 : 1, 512);
}

/* ---- Load and unload ---- */

s32 OP_SLEEPABLE(misuse_init)
{
	s32 error = scx_bpf_create_dsq(QUEUE, -1);

	if (error)
		return error;
	switch (misuse_case) {
	case INIT_EINVAL:
		return -EINVAL;
	case INIT_POSITIVE:
		return 5;
	case INIT_DSQ_TWICE:
		return scx_bpf_create_dsq(QUEUE, -1);
	case INIT_DSQ_BUILTIN:
		return scx_bpf_create_dsq(SCX_DSQ_GLOBAL, -1);
	case LOCKED_RQ_UNLOCKED:
		locked = scx_bpf_locked_rq() != NULL;
		break;
	}
	return 0;
}

POLICY(misuse_ops,
       .init_task	= (void *)misuse_init_task,
       .select_cpu	= (void *)misuse_select_cpu,
       .enqueue		= (void *)misuse_enqueue,
       .dispatch	= (void *)misuse_dispatch,
       .running		= (void *)misuse_running,
       .init		= (void *)misuse_init,
       .timeout_ms	= 1000,
       .name		= "misuse");
