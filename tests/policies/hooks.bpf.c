/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A policy of one queue, with programs at all places of the kernel that the
 * simulated machine has. All write what they see into one list.
 */
#include <scx.h>

BPF_LICENSE();

enum what {
	SWITCH = 1, WAKING, WAKEUP, WAKEUP_NEW, FORK, PROCESS_EXIT, FREE, NEWTASK,
	RENAME, ATTACH, TICK_ENTERED, TICK_LEFT, REG_ENTERED, REG_LEFT, RAW_SWITCH,
	RUNNING, STOPPING, ENQUEUE, TICK, EXIT_TASK, FIRST_ENTRY,
};

struct entry {
	u32 what, cpu;
	s32 current;
	u32 moves;	/* migration_disabled of the current task */
	u64 a, b, c, d;
};

#define MOST 16384

u32 nr_entries;
struct entry entries[MOST];

static __attribute__((noinline)) int note(u32 what, u64 a, u64 b, u64 c, u64 d)
{
	struct task_struct *p = (void *)bpf_get_current_task_btf();
	struct entry *entry;
	u32 at = nr_entries;

	if (at >= MOST)
		return 0;
	nr_entries = at + 1;
	entry = &entries[at];
	entry->what = what;
	entry->cpu = bpf_get_smp_processor_id();
	entry->current = p->pid;
	entry->moves = p->migration_disabled;
	entry->a = a;
	entry->b = b;
	entry->c = c;
	entry->d = d;
	return 0;
}

static u64 pid_of(u64 address)
{
	return (u32)((struct task_struct *)address)->pid;
}

/* The first bytes of a text. */
static u64 text_of(u64 address)
{
	return *(u64 *)address;
}

SEC("tp_btf/sched_switch") int on_switch(u64 *ctx)
{
	struct task_struct *next = (void *)ctx[2];

	return note(SWITCH, pid_of(ctx[1]), pid_of(ctx[2]), ctx[3] << 8 | ctx[0], next->prio);
}

SEC("raw_tp/sched_switch") int on_switch_raw(u64 *ctx)
{
	return note(RAW_SWITCH, pid_of(ctx[1]), pid_of(ctx[2]), ctx[3] << 8 | ctx[0], 0);
}

SEC("tp_btf/sched_waking") int on_waking(u64 *ctx)
{
	return note(WAKING, pid_of(ctx[0]), ((struct task_struct *)ctx[0])->__state, 0, 0);
}

SEC("tp_btf/sched_wakeup") int on_wakeup(u64 *ctx)
{
	return note(WAKEUP, pid_of(ctx[0]), ((struct task_struct *)ctx[0])->__state, 0, 0);
}

SEC("tp_btf/sched_wakeup_new") int on_wakeup_new(u64 *ctx)
{
	return note(WAKEUP_NEW, pid_of(ctx[0]), 0, 0, 0);
}

SEC("tp_btf/sched_process_fork") int on_fork(u64 *ctx)
{
	return note(FORK, pid_of(ctx[0]), pid_of(ctx[1]), 0, 0);
}

SEC("tp_btf/sched_process_exit") int on_exit(u64 *ctx)
{
	struct task_struct *p = (void *)ctx[0];

	return note(PROCESS_EXIT, p->pid, ctx[1], p->flags & PF_EXITING, 0);
}

SEC("tp_btf/sched_process_free") int on_free(u64 *ctx)
{
	return note(FREE, pid_of(ctx[0]), 0, 0, 0);
}

SEC("tp_btf/task_newtask") int on_newtask(u64 *ctx)
{
	return note(NEWTASK, pid_of(ctx[0]), ctx[1], 0, 0);
}

SEC("tp_btf/task_rename") int on_rename(u64 *ctx)
{
	struct task_struct *p = (void *)ctx[0];

	return note(RENAME, p->pid, text_of(ctx[1]), *(u64 *)p->comm, 0);
}

SEC("tp_btf/cgroup_attach_task") int on_attach(u64 *ctx)
{
	return note(ATTACH, ((struct cgroup *)ctx[0])->kn->id, text_of(ctx[1]),
		    pid_of(ctx[2]), ctx[3]);
}

SEC("tp_btf/cpu_frequency") int on_frequency(u64 *ctx)
{
	return note(FIRST_ENTRY, 0, 0, 0, 0);
}

SEC("fentry/scx_tick") int on_tick(u64 *ctx)
{
	return note(TICK_ENTERED, ((struct rq *)ctx[0])->cpu, 1, 0, 0);
}

SEC("fentry/scx_tick") int on_tick_too(u64 *ctx)
{
	return note(TICK_ENTERED, ((struct rq *)ctx[0])->cpu, 2, 0, 0);
}

SEC("fexit/scx_tick") int on_tick_end(u64 *ctx)
{
	return note(TICK_LEFT, ((struct rq *)ctx[0])->cpu, 0, 0, 0);
}

SEC("fentry/bpf_scx_reg") int on_reg(u64 *ctx)
{
	return note(REG_ENTERED, 0, 0, 0, 0);
}

SEC("fexit/bpf_scx_reg") int on_reg_end(u64 *ctx)
{
	return note(REG_LEFT, ctx[2], 0, 0, 0);
}

SEC("tp_btf/sched_waking") int faulty(u64 *ctx)
{
	*(volatile u64 *)ctx[0] = 1;
	return note(FIRST_ENTRY, 0, 0, 0, 0);
}

static long (*const bpf_seq_write)(void *seq, const void *data, u32 len) = (void *)127;

/* Its context: what every iterator has, and the task; none at the end. */
struct iterator {
	struct { void *seq; } *meta;
	struct task_struct *task;
};

SEC("iter/task") int on_task(struct iterator *ctx)
{
	s32 pid = ctx->task ? ctx->task->pid : -1;

	bpf_seq_write(ctx->meta->seq, &pid, sizeof(pid));
	return 0;
}

void OP(hooks_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_struct *waker = (void *)bpf_get_current_task_btf();

	/* Allowed of any task; of the idle task it is of no consequence. */
	if (!waker->pid)
		waker->scx.slice = 1;
	note(ENQUEUE, (u32)p->pid, 0, 0, 0);
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}

void OP(hooks_running, struct task_struct *p)
{
	note(RUNNING, (u32)p->pid, scx_bpf_task_running(p), 0, 0);
}

void OP(hooks_stopping, struct task_struct *p, bool runnable)
{
	note(STOPPING, (u32)p->pid, runnable, 0, 0);
}

void OP(hooks_tick, struct task_struct *p)
{
	note(TICK, (u32)p->pid, 0, 0, 0);
}

void OP(hooks_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	note(EXIT_TASK, (u32)p->pid, 0, 0, 0);
}

POLICY(hooks_ops,
       .enqueue		= (void *)hooks_enqueue,
       .running		= (void *)hooks_running,
       .stopping	= (void *)hooks_stopping,
       .tick		= (void *)hooks_tick,
       .exit_task	= (void *)hooks_exit_task,
       .name		= "hooks");
