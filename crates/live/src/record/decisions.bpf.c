/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records what an attached policy decides, and what the kernel makes of it, beside
 * what record.bpf.c records. Each program stands at one function of the kernel, which
 * need not be there: without it, its decisions are missing. The number at the end of
 * a program's name says which argument is the queue, or the end, where kernels differ.
 *
 * The records are read by decided.rs beside this file.
 *
 * Source: kernel/sched/ext.c and ext_idle.c of Linux 6.18, kernel/sched/ext/ext.c and
 * idle.c of 7.2.
 */
#include <bpf.h>

/* ---- The kernel's types, with the fields in use ---- */

struct thread_info {
	u32 cpu;
} __core;

struct cpumask {
	unsigned long bits[1];
} __core;

struct scx_dispatch_q {
	u64 id;
	u32 nr;
} __core;

typedef struct {
	s64 counter;
} atomic_long_t;

struct sched_ext_entity {
	struct scx_dispatch_q *dsq;
	u32 flags;
	atomic_long_t ops_state;
	u64 slice;
} __core;

struct task_struct {
	struct thread_info thread_info;
	int pid;
	int nr_cpus_allowed;
	const struct cpumask *cpus_ptr;
	struct sched_ext_entity scx;
} __core;

struct bpf_iter_scx_dsq_kern {
	struct scx_dispatch_q *dsq;
} __core;

enum scx_exit_kind {
	SCX_EXIT_NONE,
};

struct scx_exit_info {
	enum scx_exit_kind kind;
	s64 exit_code;
} __core;

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} __core;

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} __core;

enum scx_enq_flags {
	SCX_ENQ_HEAD = 0x10,
	SCX_ENQ_PREEMPT = 1ULL << 32,
	SCX_ENQ_DSQ_PRIQ = 1ULL << 57,
};

#define SCX_ENQ_HEAD core_enum(scx_enq_flags, SCX_ENQ_HEAD)
#define SCX_ENQ_PREEMPT core_enum(scx_enq_flags, SCX_ENQ_PREEMPT)
#define SCX_ENQ_DSQ_PRIQ core_enum(scx_enq_flags, SCX_ENQ_DSQ_PRIQ)

/* The policy has the task; it is on a run queue (kernel 6.18, ext_internal.h and ext.h). */
#define SCX_OPSS_STATE_MASK 3
#define SCX_OPSS_QUEUED 2
#define SCX_TASK_QUEUED 1

/* ---- Helpers that policies do not use ---- */

#define BPF_MAP_TYPE_RINGBUF 27
#define BPF_RB_NO_WAKEUP 1
static long (*const bpf_get_stack)(void *ctx, void *frames, u32 size, u64 flags) = (void *)67;
static long (*const bpf_seq_write)(struct seq_file *to, const void *data, u32 size) = (void *)127;
static void *(*const bpf_ringbuf_reserve)(void *map, u64 size, u64 flags) = (void *)131;
static void (*const bpf_ringbuf_submit)(void *data, u64 flags) = (void *)132;
static long (*const bpf_get_func_ret)(void *ctx, u64 *value) = (void *)184;

char runslice_license[] SEC("license") = "GPL";

/* ---- What is asked and what is said ---- */

/* Set while the recording lasts. */
volatile u32 recording;

/* `Decision` in decided.rs, by name and number: a test compares them. */
enum kind {
	DISPATCH,	/* `dispatch` begins; DISPATCHED: it ends */
	DISPATCHED,
	REQUEST,	/* the policy inserts: queue; slice */
	INSERT,		/* a task comes into a queue: queue; depth, CPU, flags */
	KEPT,		/* the policy keeps a task */
	CONSUME,	/* a CPU looks: queue; depth */
	CONSUMED,	/* ...and is done: took */
	MOVE,		/* the policy moves a task by name, out of: queue; depth */
	MOVED,
	ITERATE,	/* an iterator began: queue */
	REMOVE,		/* a task leaves: queue; depth before, CPU, runs */
	KICK,		/* cpu; flags */
	CLAIM,		/* cpu */
	IDLE,		/* the CPU idles, or leaves idle: is idle */
	SLICE,		/* the policy sets it: slice */
	ALLOWED,	/* mask; how many CPUs */
	DESTROY,	/* queue */
	EXIT,		/* the policy's time ends: kind; code */
};

struct decision {
	u64 time;	/* CLOCK_MONOTONIC, ns */
	u32 pid;
	u16 cpu;	/* where it happens */
	u8 kind;
	u8 unused;
	u64 a;		/* queue, slice or mask */
	u64 b;		/* the second word that a kind names */
};

#define FRAMES 12

/* With who called, the innermost first. */
struct traced {
	struct decision decision;
	u64 frames[FRAMES];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 25);
} decisions SEC(".maps");

/* BTF has the types of variables alone. By this one, a test of decided.rs can see them. */
struct types {
	enum kind kind;
	struct traced traced;
};
const struct types *types;

/* Records for which there was no room. */
volatile u64 lost;

/* Tracing programs get the function's arguments as an array of words. */
#define ARGUMENT(ctx, n, type) ((type)(ctx)[n])

static __always_inline void fill(struct decision *to, enum kind kind, u32 pid, u64 a, u64 b)
{
	to->time = bpf_ktime_get_ns();
	to->pid = pid;
	to->cpu = bpf_get_smp_processor_id();
	to->kind = kind;
	to->unused = 0;
	to->a = a;
	to->b = b;
}

static __always_inline int tell(enum kind kind, u32 pid, u64 a, u64 b)
{
	struct decision *decision;

	if (!recording)
		return 0;
	decision = bpf_ringbuf_reserve(&decisions, sizeof(*decision), 0);
	if (!decision) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	fill(decision, kind, pid, a, b);
	bpf_ringbuf_submit(decision, BPF_RB_NO_WAKEUP);
	return 0;
}

/* What a program of the policy decides, with the place in it. */
static __always_inline int tell_traced(void *ctx, enum kind kind, u32 pid, u64 a, u64 b)
{
	struct traced *traced;
	long size;

	if (!recording)
		return 0;
	traced = bpf_ringbuf_reserve(&decisions, sizeof(*traced), 0);
	if (!traced) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	fill(&traced->decision, kind, pid, a, b);
	size = bpf_get_stack(ctx, traced->frames, sizeof(traced->frames), 0);
	for (u32 i = 0; i < FRAMES; i++) {
		if (size < 0 || (i + 1) * sizeof(u64) > size)
			traced->frames[i] = 0;
	}
	bpf_ringbuf_submit(traced, BPF_RB_NO_WAKEUP);
	return 0;
}

/* ---- Queues ---- */

/*
 * Before the task is in it, so that no other CPU tells first that it has taken it. A
 * local queue is told by the CPU of the task.
 */
static __always_inline int tell_insert(struct scx_dispatch_q *dsq, struct task_struct *p,
				       u64 enq_flags, u32 depth)
{
	u64 flags = (enq_flags & SCX_ENQ_DSQ_PRIQ ? 1 : 0) | (enq_flags & SCX_ENQ_HEAD ? 2 : 0) |
		    (enq_flags & SCX_ENQ_PREEMPT ? 4 : 0);

	return tell(INSERT, p->pid, dsq->id,
		    depth | (u64)(p->thread_info.cpu & 0xffff) << 32 | flags << 48);
}

/* Of two arguments behind each other, the queue and the task. */
#define DSQ(ctx, n) ARGUMENT(ctx, n, struct scx_dispatch_q *)
#define TASK(ctx, n) ARGUMENT(ctx, n, struct task_struct *)

SEC("fentry/dispatch_enqueue")
int decide_insert_1(u64 *ctx)
{
	return tell_insert(DSQ(ctx, 1), TASK(ctx, 2), ARGUMENT(ctx, 3, u64), DSQ(ctx, 1)->nr + 1);
}

SEC("fentry/dispatch_enqueue")
int decide_insert_2(u64 *ctx)
{
	return tell_insert(DSQ(ctx, 2), TASK(ctx, 3), ARGUMENT(ctx, 4, u64), DSQ(ctx, 2)->nr + 1);
}

/* A task that a CPU takes out of another queue comes into its local one without the above. */
SEC("fentry/local_dsq_post_enq")
int decide_local_0(u64 *ctx)
{
	return tell_insert(DSQ(ctx, 0), TASK(ctx, 1), ARGUMENT(ctx, 2, u64), DSQ(ctx, 0)->nr);
}

SEC("fentry/local_dsq_post_enq")
int decide_local_1(u64 *ctx)
{
	return tell_insert(DSQ(ctx, 1), TASK(ctx, 2), ARGUMENT(ctx, 3, u64), DSQ(ctx, 1)->nr);
}

SEC("fexit/do_enqueue_task")
int decide_kept(u64 *ctx)
{
	struct task_struct *p = ARGUMENT(ctx, 1, struct task_struct *);

	if ((p->scx.ops_state.counter & SCX_OPSS_STATE_MASK) != SCX_OPSS_QUEUED)
		return 0;
	return tell(KEPT, p->pid, 0, 0);
}

SEC("fentry/scx_dsq_insert_commit")
int decide_request(u64 *ctx)
{
	struct task_struct *p = ARGUMENT(ctx, 1, struct task_struct *);

	return tell_traced(ctx, REQUEST, p->pid, ARGUMENT(ctx, 2, u64), p->scx.slice);
}

SEC("fentry/consume_dispatch_q")
int decide_consume(u64 *ctx)
{
	struct scx_dispatch_q *dsq = ARGUMENT(ctx, 2, struct scx_dispatch_q *);

	return tell_traced(ctx, CONSUME, 0, dsq->id, dsq->nr);
}

SEC("fexit/consume_dispatch_q")
int decide_consumed(u64 *ctx)
{
	struct scx_dispatch_q *dsq = ARGUMENT(ctx, 2, struct scx_dispatch_q *);
	u64 took = 0;

	bpf_get_func_ret(ctx, &took);
	return tell(CONSUMED, 0, dsq->id, took & 1);
}

SEC("fentry/scx_dsq_move")
int decide_move(u64 *ctx)
{
	struct bpf_iter_scx_dsq_kern *it = ARGUMENT(ctx, 0, struct bpf_iter_scx_dsq_kern *);
	struct task_struct *p = ARGUMENT(ctx, 1, struct task_struct *);
	struct scx_dispatch_q *dsq = it->dsq;

	if (!dsq)
		return 0;
	return tell_traced(ctx, MOVE, p->pid, dsq->id, dsq->nr);
}

SEC("fexit/scx_dsq_move")
int decide_moved(u64 *ctx)
{
	struct task_struct *p = ARGUMENT(ctx, 1, struct task_struct *);
	u64 moved = 0;

	bpf_get_func_ret(ctx, &moved);
	return tell(MOVED, p->pid, 0, moved & 1);
}

SEC("fentry/bpf_iter_scx_dsq_new")
int decide_iterate(u64 *ctx)
{
	return tell_traced(ctx, ITERATE, 0, ARGUMENT(ctx, 1, u64), 0);
}

SEC("fentry/dispatch_dequeue")
int decide_remove(u64 *ctx)
{
	struct task_struct *p = ARGUMENT(ctx, 1, struct task_struct *);
	struct scx_dispatch_q *dsq = p->scx.dsq;
	u64 runs = p->scx.flags & SCX_TASK_QUEUED;

	if (!dsq)
		return 0;
	return tell(REMOVE, p->pid, dsq->id, dsq->nr | (u64)p->thread_info.cpu << 32 | runs << 48);
}

SEC("fentry/scx_bpf_destroy_dsq")
int decide_destroy(u64 *ctx)
{
	return tell(DESTROY, 0, ARGUMENT(ctx, 0, u64), 0);
}

SEC("fentry/scx_vexit")
int decide_exit(u64 *ctx)
{
	return tell(EXIT, 0, ARGUMENT(ctx, 1, u32), ARGUMENT(ctx, 2, u64));
}

/* Where that is built into others: what an error leads to. */
SEC("fentry/scx_dump_state")
int decide_exit_0(u64 *ctx)
{
	struct scx_exit_info *ei = ARGUMENT(ctx, 0, struct scx_exit_info *);

	return tell(EXIT, 0, ei->kind, ei->exit_code);
}

/* ---- CPUs ---- */

SEC("fentry/scx_bpf_kick_cpu")
int decide_kick(u64 *ctx)
{
	return tell_traced(ctx, KICK, 0, ARGUMENT(ctx, 0, u32), ARGUMENT(ctx, 1, u64));
}

SEC("fexit/scx_idle_test_and_clear_cpu")
int decide_claim(u64 *ctx)
{
	u64 got = 0;

	bpf_get_func_ret(ctx, &got);
	if (!(got & 1))
		return 0;
	return tell_traced(ctx, CLAIM, 0, ARGUMENT(ctx, 0, u32), 0);
}

SEC("fentry/__scx_update_idle")
int decide_idle(u64 *ctx)
{
	/* Else it is no change. */
	if (!(ARGUMENT(ctx, 2, u64) & 1))
		return 0;
	return tell(IDLE, 0, ARGUMENT(ctx, 1, u64) & 1, 0);
}

/* ---- Tasks ---- */

SEC("fentry/scx_bpf_task_set_slice")
int decide_slice(u64 *ctx)
{
	struct task_struct *p = ARGUMENT(ctx, 0, struct task_struct *);

	return tell_traced(ctx, SLICE, p->pid, ARGUMENT(ctx, 1, u64), 0);
}

SEC("fexit/set_cpus_allowed_scx")
int decide_allowed(u64 *ctx)
{
	struct task_struct *p = ARGUMENT(ctx, 0, struct task_struct *);

	return tell(ALLOWED, p->pid, p->cpus_ptr->bits[0], p->nr_cpus_allowed);
}

SEC("iter/task")
int decide_snapshot(struct bpf_iter__task *ctx)
{
	struct task_struct *p = ctx->task;
	struct decision allowed = {};

	if (!p)
		return 0;
	fill(&allowed, ALLOWED, p->pid, p->cpus_ptr->bits[0], p->nr_cpus_allowed);
	bpf_seq_write(ctx->meta->seq, &allowed, sizeof(allowed));
	return 0;
}

/* ---- The policy's own programs; what they stand at is said when they are loaded ---- */

SEC("fentry")
int policy_dispatch(u64 *ctx)
{
	return tell(DISPATCH, 0, 0, 0);
}

SEC("fexit")
int policy_dispatched(u64 *ctx)
{
	return tell(DISPATCHED, 0, 0, 0);
}
