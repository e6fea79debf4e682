/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A policy to test a machine with, not to run under: it defines every callback
 * of a task's life, so that a machine has something to call, and does in them
 * what the variables below say. As they stand it is the plain FIFO of the test
 * vectors: one queue, slice 20 ms, a woken task stays on its CPU, nobody is
 * kicked.
 *
 * The recordings of real kernels were made with these settings:
 *
 *	a, n, m	kick = 1
 *	b	select = 1
 *	c	kick = 1, in probe-last
 *	k	kick = 2
 *
 * The file that includes this one gives the table's flags as PROBE_FLAGS, and
 * may give PROBE_TIMEOUT_MS, PROBE_PLAIN (no callback whose mere presence
 * changes what the kernel does) and PROBE_RECORDS (every callback writes what
 * it was called with into the kernel's trace).
 *
 * Tasks that are to be treated differently are told by the last letter of
 * their names: A is number 0.
 */
#include <scx.h>

BPF_LICENSE();

/* ---- What to do: set before load ---- */

/* Granted with every insert into the queue, ns. */
const volatile u64 slice_ns = 20000000;

/* select_cpu: 0 answers prev_cpu; 1 takes an idle CPU, and inserts there directly. */
const volatile u32 select = 0;

/* enqueue kicks its target: 0 never; 1 KICK_IDLE; 2 the same, but PREEMPT on a wakeup. */
const volatile u32 kick = 0;

/* enqueue: 0 FIFO; 1 by vtime, with the key of the task's letter. */
const volatile u32 vtime = 0;
const volatile u64 vtime_a = 0;
const volatile u64 vtime_b = 0;
const volatile u64 vtime_c = 0;
const volatile u64 vtime_d = 0;

/* The letter whose inserts also say HEAD; '\0' for none. */
const volatile char head_letter = 0;

/* enqueue keeps the task in a map, and dispatch inserts so many into the local queue at once. */
const volatile u32 batch = 0;

/* The letter that enqueue forgets; '?' forgets every task. */
const volatile char starve_letter = 0;

/* dispatch lets the running task go on for so long, ns, whatever else it does; 0: not. */
const volatile u64 keep_ns = 0;

/*
 * dispatch, before it takes the head of the queue:
 * 1 moves the first queued task to this CPU without looking at its affinity;
 * 2 inserts the first queued task again, with a slice of 7 ms, if it may run
 *   here: else no dispatch would ever be without result, and the CPU would
 *   not get to rest;
 * 3 walks the queue and changes it meanwhile: after the first task it takes A
 *   out and puts every task of letter D, which enqueue kept, in.
 */
const volatile u32 walk = 0;

/*
 * yield: 0 ends the slice, as the kernel does without the callback; 1 does
 * nothing; 2 kicks CPU yield_cpu with yield_flags; 3 picks three idle CPUs; 4
 * kicks yield_cpu with 0, PREEMPT and IDLE in turn.
 */
const volatile u32 yield_does = 0;
const volatile s32 yield_cpu = 1;
const volatile u64 yield_flags = 0;

/* cpu_release takes the tasks of the local queue back. */
const volatile bool reenqueue = 0;

/*
 * enqueue says for whom and with which flags it is called, running what slice the task has, and
 * walk = 3 where a walk begins and what it changes.
 */
const volatile bool tell = 0;

/* init_task answers this to a fork; 0 or a negative error. */
const volatile s32 fork_error = 0;

/* ---- State ---- */

#define QUEUE 0
#define ASIDE 1		/* where walk = 3 puts what it takes out */
#define EMPTY 2		/* always empty: taking from it only empties the dispatch buffer */

/* Tasks that enqueue kept, by number. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 1024);
	__type(value, s32);
} kept SEC(".maps");

static u32 yields;

/* Calls of each callback without a task of its own, so that none is empty. */
static u64 calls;

#ifdef PROBE_RECORDS
/*
 * dispatch is written at its end: set for kernels that tell the policy of the
 * end of a custody, which comes before it.
 */
const volatile bool late_dispatch = 0;

static long (*const bpf_get_current_comm)(void *buffer, u32 size) = (void *)16;

/*
 * Writes `@ NUMBER NAME CALLBACK NUMBER NAME A B`: the task that runs on this
 * CPU, then the callback's own, 0 and `-` if it has none.
 */
#define record(op, p, a, b) ({							\
	static const char line_[] = "@ %d %s " op " %d %s %llu %llu";		\
	struct task_struct *p_ = p;						\
	char own_[16] = "", other_[16] = "-";					\
	u64 words_[6] = { (u32)bpf_get_current_pid_tgid(), (u64)own_, 0,	\
			  (u64)other_, (u64)(a), (u64)(b) };			\
	bpf_get_current_comm(own_, sizeof(own_));				\
	if (p_) {								\
		words_[2] = p_->pid;						\
		bpf_probe_read_kernel_str(other_, sizeof(other_), p_->comm);	\
	}									\
	bpf_trace_vprintk(line_, sizeof(line_), words_, sizeof(words_));	\
})

/* CPUs 0 and 1, which is all that recordings have. */
static u64 first_word(const struct cpumask *mask)
{
	return bpf_cpumask_test_cpu(0, mask) | bpf_cpumask_test_cpu(1, mask) << 1;
}
#else
#define late_dispatch 0
#define record(op, p, a, b) ((void)0)
#endif

/* The last letter of the task's name. */
static char letter(struct task_struct *p)
{
	char last = 0;
	u32 i;

	for (i = 0; i < sizeof(p->comm) && p->comm[i]; i++)
		last = p->comm[i];
	return last;
}

static u64 key_of(char letter)
{
	switch (letter) {
	case 'A':
		return vtime_a;
	case 'B':
		return vtime_b;
	case 'C':
		return vtime_c;
	}
	return vtime_d;
}

/* ---- Callbacks, in the order of a task's life ---- */

s32 OP_SLEEPABLE(probe_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	record("init_task", p, args->fork, 0);
	return args->fork ? fork_error : 0;
}

void OP(probe_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	record("exit_task", p, args->cancelled, 0);
	calls++;
}

void OP(probe_enable, struct task_struct *p)
{
	record("enable", p, p->scx.weight, 0);
	calls++;
}

void OP(probe_disable, struct task_struct *p)
{
	record("disable", p, 0, 0);
	calls++;
}

s32 OP(probe_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;
	s32 cpu = prev_cpu;

	record("select_cpu", p, wake_flags, prev_cpu);
	if (select == 1) {
		cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);
		if (is_idle)
			scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, 0);
	}
	return cpu;
}

static void kick_target(struct task_struct *p, u64 enq_flags)
{
	u64 flags = SCX_KICK_IDLE;

	if (kick == 2 && (enq_flags & SCX_ENQ_WAKEUP))
		flags = SCX_KICK_PREEMPT;
	if (kick)
		scx_bpf_kick_cpu(scx_bpf_task_cpu(p), flags);
}

void OP(probe_enqueue, struct task_struct *p, u64 enq_flags)
{
	char name = letter(p);
	s32 pid = p->pid;

	record("enqueue", p, enq_flags, scx_bpf_task_cpu(p));
	if (tell)
		bpf_printk("enqueue %c 0x%llx", name, enq_flags);
	if (starve_letter && (starve_letter == '?' || starve_letter == name))
		return;
	if (batch || (walk == 3 && name == 'D')) {
		if (bpf_map_push_elem(&kept, &pid, 0))
			scx_bpf_error("cannot keep task %d", (u64)pid);
		return;
	}
	if (head_letter && head_letter == name)
		enq_flags |= SCX_ENQ_HEAD;
	if (vtime)
		scx_bpf_dsq_insert_vtime(p, QUEUE, slice_ns, key_of(name), enq_flags);
	else
		scx_bpf_dsq_insert(p, QUEUE, slice_ns, enq_flags);
	kick_target(p, enq_flags);
}

void OP(probe_dequeue, struct task_struct *p, u64 deq_flags)
{
	record("dequeue", p, deq_flags, 0);
	calls++;
}

/* Inserts the task that enqueue kept longest; false if there is none. */
static bool insert_kept(u64 dsq)
{
	struct task_struct *p;
	s32 pid;

	if (bpf_map_pop_elem(&kept, &pid))
		return false;
	p = bpf_task_from_pid(pid);
	if (!p)
		return true;
	scx_bpf_dsq_insert(p, dsq, slice_ns, 0);
	if (tell)
		bpf_printk("in %c", letter(p));
	bpf_task_release(p);
	return true;
}

/* Puts what is kept into the queue, now rather than when dispatch returns. */
static void flush_kept(void)
{
	u32 i;

	for (i = 0; i < 8 && insert_kept(QUEUE); i++)
		;
	scx_bpf_dsq_move_to_local(EMPTY);
}

static void take_out(char name)
{
	struct task_struct *p;

	for_each_queued(it, p, QUEUE, 0) {
		if (letter(p) == name) {
			scx_bpf_dsq_move(&it, p, ASIDE, 0);
			if (tell)
				bpf_printk("out %c", name);
			break;
		}
	}
}

static void walk_and_change(void)
{
	struct task_struct *p;
	bool changed = false;

	if (tell)
		bpf_printk("walk");
	for_each_queued(it, p, QUEUE, 0) {
		bpf_printk("seen %c", letter(p));
		if (!changed) {
			changed = true;
			take_out('A');
			flush_kept();
		}
	}
}

static void walk_first(s32 cpu)
{
	struct task_struct *p;

	for_each_queued(it, p, QUEUE, 0) {
		if (walk == 1)
			scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL, 0);
		else if (bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, 7 * NSEC_PER_MSEC, 0);
		break;
	}
}

static void record_dispatch(s32 cpu, struct task_struct *prev)
{
	record("dispatch", prev, cpu, prev && (prev->scx.flags & SCX_TASK_QUEUED));
}

void OP(probe_dispatch, s32 cpu, struct task_struct *prev)
{
	u32 i;

	if (!late_dispatch)
		record_dispatch(cpu, prev);
	if (keep_ns && prev && (prev->scx.flags & SCX_TASK_QUEUED))
		prev->scx.slice = keep_ns;
	for (i = 0; i < batch && i < 32; i++) {
		if (!insert_kept(SCX_DSQ_LOCAL))
			break;
	}
	if (walk == 3)
		walk_and_change();
	else if (walk)
		walk_first(cpu);
	if (!scx_bpf_dsq_move_to_local(QUEUE) && walk == 3)
		scx_bpf_dsq_move_to_local(ASIDE);
	if (late_dispatch)
		record_dispatch(cpu, prev);
}

void OP(probe_runnable, struct task_struct *p, u64 enq_flags)
{
	record("runnable", p, enq_flags, 0);
	calls++;
}

void OP(probe_running, struct task_struct *p)
{
	record("running", p, p->scx.slice, scx_bpf_task_cpu(p));
	if (tell)
		bpf_printk("running %c %llu", letter(p), p->scx.slice);
	calls++;
}

void OP(probe_tick, struct task_struct *p)
{
	record("tick", p, p->scx.slice, 0);
	calls++;
}

static void pick_three(struct task_struct *p)
{
	s32 first = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	s32 second = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	s32 third = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);

	bpf_printk("picks %d %d %d", first, second, third);
}

static void kick_in_turn(void)
{
	switch (yields++ % 3) {
	case 0:
		scx_bpf_kick_cpu(yield_cpu, 0);
		break;
	case 1:
		scx_bpf_kick_cpu(yield_cpu, SCX_KICK_PREEMPT);
		break;
	case 2:
		scx_bpf_kick_cpu(yield_cpu, SCX_KICK_IDLE);
		break;
	}
}

bool OP(probe_yield, struct task_struct *from, struct task_struct *to)
{
	record("yield", from, ~0U, 0);
	switch (yield_does) {
	case 0:
		from->scx.slice = 0;
		break;
	case 2:
		scx_bpf_kick_cpu(yield_cpu, yield_flags);
		break;
	case 3:
		pick_three(from);
		break;
	case 4:
		kick_in_turn();
		break;
	}
	return false;
}

void OP(probe_stopping, struct task_struct *p, bool runnable)
{
	record("stopping", p, runnable, p->scx.slice);
	calls++;
}

void OP(probe_quiescent, struct task_struct *p, u64 deq_flags)
{
	record("quiescent", p, deq_flags, 0);
	calls++;
}

void OP(probe_set_weight, struct task_struct *p, u32 weight)
{
	record("set_weight", p, weight, 0);
	calls++;
}

void OP(probe_set_cpumask, struct task_struct *p, const struct cpumask *cpumask)
{
	record("set_cpumask", p, bpf_cpumask_weight(cpumask), first_word(cpumask));
	calls++;
}

/* ---- Machine, load and unload ---- */

void OP(probe_update_idle, s32 cpu, bool idle)
{
	record("update_idle", NULL, idle, cpu);
	calls++;
}

void OP(probe_cpu_acquire, s32 cpu, struct scx_cpu_acquire_args *args)
{
	record("cpu_acquire", NULL, cpu, 0);
	calls++;
}

void OP(probe_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	record("cpu_release", args->task, cpu, args->reason);
	if (reenqueue)
		bpf_printk("reenqueued %d", scx_bpf_reenqueue_local());
}

void OP_SLEEPABLE(probe_cpu_online, s32 cpu)
{
	calls++;
}

void OP_SLEEPABLE(probe_cpu_offline, s32 cpu)
{
	calls++;
}

s32 OP_SLEEPABLE(probe_init)
{
	u64 dsq;

	for (dsq = QUEUE; dsq <= EMPTY; dsq++) {
		s32 error = scx_bpf_create_dsq(dsq, -1);

		if (error)
			return error;
	}
	return 0;
}

void OP(probe_exit, struct scx_exit_info *info)
{
	calls++;
}

#ifndef PROBE_TIMEOUT_MS
#define PROBE_TIMEOUT_MS 0
#endif

POLICY(probe_ops,
       .init_task	= (void *)probe_init_task,
       .exit_task	= (void *)probe_exit_task,
       .enable		= (void *)probe_enable,
       .disable		= (void *)probe_disable,
       .select_cpu	= (void *)probe_select_cpu,
       .enqueue		= (void *)probe_enqueue,
       .dequeue		= (void *)probe_dequeue,
       .dispatch	= (void *)probe_dispatch,
       .runnable	= (void *)probe_runnable,
       .running		= (void *)probe_running,
       .tick		= (void *)probe_tick,
       .stopping	= (void *)probe_stopping,
       .quiescent	= (void *)probe_quiescent,
       .set_weight	= (void *)probe_set_weight,
       .set_cpumask	= (void *)probe_set_cpumask,
#ifndef PROBE_PLAIN
       .yield		= (void *)probe_yield,
       .update_idle	= (void *)probe_update_idle,
       .cpu_acquire	= (void *)probe_cpu_acquire,
       .cpu_release	= (void *)probe_cpu_release,
       .cpu_online	= (void *)probe_cpu_online,
       .cpu_offline	= (void *)probe_cpu_offline,
#endif
       .init		= (void *)probe_init,
       .exit		= (void *)probe_exit,
       .flags		= PROBE_FLAGS,
       .timeout_ms	= PROBE_TIMEOUT_MS,
       .name		= "probe");
