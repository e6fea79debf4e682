/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records what a kernel's scheduler does, at three depths. One of them is loaded:
 *
 *	count_*		numbers of switches, wakeups, forks, ...: one array a CPU
 *	measure_*	those, and histograms of wakeup latency, preemption wait and
 *			runslice for each task name
 *	event_*		every event, into a ring buffer; plain_waking stands for
 *			event_waking where that cannot be loaded
 *
 * The layout of the records and of the histograms is read by raw.rs and
 * measured.rs beside this file.
 *
 * Source: the tracepoints of include/trace/events/sched.h and task.h, Linux
 * 6.18 and 7.2.
 */
#include <bpf.h>

/* ---- The kernel's types, with the fields in use ---- */

struct thread_info {
	u32 cpu;
} __core;

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	unsigned int flags;		/* PF_* */
	/* Signed in 6.18 and a byte in 7.2: only an unsigned field may change its size. */
	unsigned int on_cpu;
	unsigned int on_rq;
	int static_prio;
	unsigned int policy;		/* SCHED_* */
	int nr_cpus_allowed;
	int pid;
	int tgid;
	struct task_struct *real_parent;
	char comm[16];
} __core;

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} __core;

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} __core;

/* How deep in interrupts a CPU is; x86 of 6.15 and later has it as a variable of its own. */
extern const int __preempt_count __ksym __weak;
#define HARDIRQ_MASK 0x000f0000	/* include/linux/preempt.h, 6.18 */
#define NMI_MASK 0x00f00000
#define SERVING_SOFTIRQ 0x00000100

/* ---- Helpers that policies do not use ---- */

#define BPF_MAP_TYPE_RINGBUF 27
#define BPF_RB_NO_WAKEUP 1
static void *(*const bpf_ringbuf_reserve)(void *map, u64 size, u64 flags) = (void *)131;
static void (*const bpf_ringbuf_submit)(void *data, u64 flags) = (void *)132;
static long (*const bpf_seq_write)(struct seq_file *to, const void *data, u32 size) = (void *)127;
static void *(*const bpf_this_cpu_ptr)(const void *variable) = (void *)154;

char runslice_license[] SEC("license") = "GPL";

/* ---- What is asked and what is said ---- */

/* Set while the recording lasts. */
volatile u32 recording;

/* Counted on every CPU: `Totals` in measured.rs, by name and number. A test compares them. */
enum total {
	SWITCHES,
	WAKEUPS,
	STARTS,
	MIGRATIONS,
	FORKS,
	EXECS,
	EXITS,
	PREEMPTED,	/* switches away from a task that was runnable */
	LOST,		/* events for which the ring buffer had no room */
	UNKNOWN,	/* tasks whose name could not be kept */
	NR_TOTALS,
};

struct totals {
	u64 of[NR_TOTALS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct totals);
} totals SEC(".maps");

static __always_inline void count(enum total which)
{
	u32 zero = 0;
	struct totals *mine = bpf_map_lookup_elem(&totals, &zero);

	if (mine)
		mine->of[which]++;
}

/* Tracepoints of BTF pass their arguments as an array of words. */
#define ARGUMENT(ctx, n, type) ((type)(ctx)[n])

/* TASK_DEAD of include/linux/sched.h, 6.18. */
#define TASK_DEAD 0x80

/* ---- Counters ---- */

static __always_inline void count_switch_of(u64 *ctx)
{
	struct task_struct *prev = ARGUMENT(ctx, 1, struct task_struct *);
	u32 prev_state = ARGUMENT(ctx, 3, u32);
	bool preempted = ARGUMENT(ctx, 0, u64) & 1 || !prev_state;
	u32 zero = 0;
	struct totals *mine = bpf_map_lookup_elem(&totals, &zero);

	if (!mine)
		return;
	mine->of[SWITCHES]++;
	if (!prev->pid)
		return;
	if (preempted)
		mine->of[PREEMPTED]++;
	else if (prev_state & TASK_DEAD)
		mine->of[EXITS]++;
}

SEC("tp_btf/sched_switch")
int count_switch(u64 *ctx)
{
	if (recording)
		count_switch_of(ctx);
	return 0;
}

#define COUNTS(name, tracepoint, which)		\
	SEC("tp_btf/" tracepoint)		\
	int name(u64 *ctx)			\
	{					\
		if (recording)			\
			count(which);		\
		return 0;			\
	}

COUNTS(count_wakeup, "sched_wakeup", WAKEUPS)
COUNTS(count_start, "sched_wakeup_new", STARTS)
COUNTS(count_migrate, "sched_migrate_task", MIGRATIONS)
COUNTS(count_fork, "sched_process_fork", FORKS)
COUNTS(count_exec, "sched_process_exec", EXECS)

/* ---- Histograms ---- */

/*
 * Values below 16 have a bucket each; every power of two above has 16. The
 * last bucket begins at 15/16 of 2^41 ns, 34 minutes, and holds all that is longer.
 */
#define BUCKET_BITS 4
#define BUCKETS (38 << BUCKET_BITS)

struct histogram {
	u64 count;
	u64 sum;
	u64 max;
	u32 buckets[BUCKETS];
};

struct measured {
	struct histogram wakeup;
	struct histogram preempt;
	struct histogram runslice;
	u64 starts;
	u64 migrations;
};

/* Task names that are told apart; the first slot is for the rest. */
#define SLOTS 128

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, u32);
	__type(value, struct measured);
} measured SEC(".maps");

struct name {
	char text[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SLOTS);
	__type(key, struct name);
	__type(value, u32);
} slots SEC(".maps");

/* Slots that are taken. */
volatile u32 slots_used = 1;

enum state {
	ASLEEP,		/* or not seen yet */
	WOKEN,
	STARTED,
	PREEMPTED_AT,
	RUNNING,
};

struct seen {
	u64 since;
	u32 state;
	u32 slot;
};

TASK_STORAGE(tasks, struct seen);

/* The slot of a name: its part before a dot, a slash or a colon. */
static u32 slot_of(const char *comm)
{
	struct name name = {};
	u32 *known, mine;

	bpf_probe_read_kernel(&name, sizeof(name), comm);
	bool over = false;
	for (u32 i = 0; i < sizeof(name.text); i++) {
		char c = name.text[i];

		over = over || !c || c == '.' || c == '/' || c == ':';
		if (over)
			name.text[i] = 0;
	}
	known = bpf_map_lookup_elem(&slots, &name);
	if (known)
		return *known;
	mine = __sync_fetch_and_add(&slots_used, 1);
	if (mine >= SLOTS)
		return 0;
	/* Another CPU may have named it meanwhile; then this slot stays empty. */
	if (!bpf_map_update_elem(&slots, &name, &mine, BPF_NOEXIST))
		return mine;
	known = bpf_map_lookup_elem(&slots, &name);
	return known ? *known : 0;
}

static __noinline int name_task(struct task_struct *p, const char *comm)
{
	struct seen *seen = bpf_task_storage_get(&tasks, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!seen) {
		count(UNKNOWN);
		return 0;
	}
	seen->slot = slot_of(comm);
	return 0;
}

static __always_inline u32 bucket_of(u64 value)
{
	u64 rest = value;
	u32 log = 0;

	if (rest >> 32) { rest >>= 32; log += 32; }
	if (rest >> 16) { rest >>= 16; log += 16; }
	if (rest >> 8) { rest >>= 8; log += 8; }
	if (rest >> 4) { rest >>= 4; log += 4; }
	if (rest >> 2) { rest >>= 2; log += 2; }
	if (rest >> 1) { log += 1; }
	if (log < BUCKET_BITS)
		return value;
	u32 shift = log - BUCKET_BITS;
	u32 bucket = ((shift + 1) << BUCKET_BITS) + ((value >> shift) & ((1 << BUCKET_BITS) - 1));

	return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

static __always_inline void enter(struct histogram *histogram, u64 value)
{
	u32 bucket = bucket_of(value);

	histogram->count++;
	histogram->sum += value;
	if (value > histogram->max)
		histogram->max = value;
	if (bucket < BUCKETS)
		histogram->buckets[bucket]++;
}

static __always_inline void runnable(struct task_struct *p, u32 state)
{
	struct seen *seen = bpf_task_storage_get(&tasks, p, NULL, 0);

	/* A wakeup may meet a task that has not left its CPU yet. */
	if (!seen || seen->state != ASLEEP)
		return;
	seen->since = bpf_ktime_get_ns();
	seen->state = state;
}

SEC("tp_btf/sched_switch")
int measure_switch(u64 *ctx)
{
	struct task_struct *prev = ARGUMENT(ctx, 1, struct task_struct *);
	struct task_struct *next = ARGUMENT(ctx, 2, struct task_struct *);
	u64 now;

	if (!recording)
		return 0;
	count_switch_of(ctx);
	now = bpf_ktime_get_ns();
	if (prev->pid) {
		struct seen *seen = bpf_task_storage_get(&tasks, prev, NULL, 0);

		if (seen) {
			struct measured *mine = bpf_map_lookup_elem(&measured, &seen->slot);
			bool preempted = ARGUMENT(ctx, 0, u64) & 1 || !ARGUMENT(ctx, 3, u32);

			if (mine && seen->state == RUNNING)
				enter(&mine->runslice, now - seen->since);
			seen->state = preempted ? PREEMPTED_AT : ASLEEP;
			seen->since = now;
		}
	}
	if (next->pid) {
		struct seen *seen = bpf_task_storage_get(&tasks, next, NULL, 0);

		if (seen) {
			struct measured *mine = bpf_map_lookup_elem(&measured, &seen->slot);

			if (mine && seen->state == WOKEN)
				enter(&mine->wakeup, now - seen->since);
			else if (mine && seen->state == PREEMPTED_AT)
				enter(&mine->preempt, now - seen->since);
			else if (mine && seen->state == STARTED)
				mine->starts++;
			seen->state = RUNNING;
			seen->since = now;
		}
	}
	return 0;
}

SEC("tp_btf/sched_wakeup")
int measure_wakeup(u64 *ctx)
{
	if (recording) {
		count(WAKEUPS);
		runnable(ARGUMENT(ctx, 0, struct task_struct *), WOKEN);
	}
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int measure_start(u64 *ctx)
{
	if (recording) {
		count(STARTS);
		runnable(ARGUMENT(ctx, 0, struct task_struct *), STARTED);
	}
	return 0;
}

SEC("tp_btf/sched_migrate_task")
int measure_migrate(u64 *ctx)
{
	struct task_struct *p = ARGUMENT(ctx, 0, struct task_struct *);
	struct measured *mine;
	struct seen *seen;

	if (!recording)
		return 0;
	count(MIGRATIONS);
	seen = bpf_task_storage_get(&tasks, p, NULL, 0);
	mine = seen ? bpf_map_lookup_elem(&measured, &seen->slot) : NULL;
	if (mine)
		mine->migrations++;
	return 0;
}

/* Names are kept whether the recording has begun or not: it begins with all of them known. */
SEC("tp_btf/sched_process_fork")
int measure_fork(u64 *ctx)
{
	struct task_struct *child = ARGUMENT(ctx, 1, struct task_struct *);

	if (recording)
		count(FORKS);
	name_task(child, child->comm);
	return 0;
}

SEC("tp_btf/task_rename")
int measure_rename(u64 *ctx)
{
	name_task(ARGUMENT(ctx, 0, struct task_struct *), ARGUMENT(ctx, 1, const char *));
	return 0;
}

SEC("tp_btf/sched_process_exec")
int measure_exec(u64 *ctx)
{
	if (recording)
		count(EXECS);
	return 0;
}

SEC("iter/task")
int measure_snapshot(struct bpf_iter__task *ctx)
{
	struct task_struct *p = ctx->task;

	if (p)
		name_task(p, p->comm);
	return 0;
}

/* ---- Events ---- */

/* `Kind` in raw.rs, by name and number: a test compares them. */
enum kind {
	SWITCH,
	WAKING,
	WAKEUP,
	START,
	MIGRATE,
	FORK,
	RENAME,
	SNAPSHOT,
	CHANGE,
	REPORT,
};

/* Of SWITCH: the kernel took the CPU away. Of WAKING: in which context the waker was. */
#define FLAG_PREEMPT 1
#define FLAG_HARDIRQ 2
#define FLAG_SOFTIRQ 4
#define FLAG_SYNC 32
/* Of SNAPSHOT: on a run queue, on a CPU. */
#define FLAG_QUEUED 8
#define FLAG_ON_CPU 16

struct event {
	u64 time;	/* CLOCK_MONOTONIC, ns */
	u32 pid;	/* whom it is about; of SWITCH the next task, 0 for idle */
	u16 cpu;
	u8 kind;
	u8 flags;
	u64 c;		/* REPORT: flags */
	/* SWITCH: previous pid; wakeups: CPU; MIGRATE: new CPU; CHANGE: what */
	u32 a;
	/* SWITCH: its state; WAKING: waker's pid; MIGRATE: old CPU; CHANGE: value */
	u32 b;
};

struct task_event {
	struct event event;	/* a: parent's pid; b: thread group */
	u32 static_prio;
	u32 policy;
	u32 flags;
	u32 nr_cpus_allowed;
	char comm[16];
};

/* BTF has the types of variables alone. By this one, tests of raw.rs and measured.rs see them. */
const struct { enum kind kind; enum total total; struct task_event task; } *types;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} events SEC(".maps");

/* The policy's own report.bpf.h map, when there is one. */
struct report {
	u32 prio;
	u32 level;
	u64 flags;
};

TASK_STORAGE(runslice_report, struct report);
const volatile bool has_report = false;

/* What was told last on this CPU: of the task that runs. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct report);
} told SEC(".maps");

static __always_inline void fill(struct event *event, enum kind kind, u32 pid)
{
	event->time = bpf_ktime_get_ns();
	event->pid = pid;
	event->cpu = bpf_get_smp_processor_id();
	event->kind = kind;
	event->flags = 0;
	event->c = 0;
}

static __always_inline struct event *begin(enum kind kind, u32 pid)
{
	struct event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (event)
		fill(event, kind, pid);
	else
		count(LOST);
	return event;
}

/* The reader looks by itself; waking it would change what is recorded. */
static __always_inline void end(void *event)
{
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

/* What the policy says of a task; 0, or when that was told. Of one that `goes_on` only news. */
static __always_inline u64 tell_report(struct task_struct *p, bool goes_on)
{
	struct report *report, *before;
	struct event *event;
	u32 zero = 0;
	u64 now;

	if (!has_report || !p->pid)
		return 0;
	report = bpf_task_storage_get(&runslice_report, p, NULL, 0);
	before = bpf_map_lookup_elem(&told, &zero);
	if (!report || !before)
		return 0;
	if (goes_on && report->prio == before->prio && report->level == before->level &&
	    report->flags == before->flags)
		return 0;
	*before = *report;
	event = begin(REPORT, p->pid);
	if (!event)
		return 0;
	now = event->time;
	event->a = before->prio;
	event->b = before->level;
	event->c = before->flags;
	end(event);
	return now;
}

SEC("tp_btf/sched_switch")
int event_switch(u64 *ctx)
{
	struct task_struct *prev = ARGUMENT(ctx, 1, struct task_struct *);
	struct task_struct *next = ARGUMENT(ctx, 2, struct task_struct *);
	struct event *event;
	u64 now;

	if (!recording)
		return 0;
	/*
	 * First, and at the same moment: `running` was called before the switch, so it speaks of
	 * the turn that the switch begins.
	 */
	now = tell_report(next, false);
	event = begin(SWITCH, next->pid);
	if (event) {
		if (now)
			event->time = now;
		event->flags = ARGUMENT(ctx, 0, u64) & 1 ? FLAG_PREEMPT : 0;
		event->a = prev->pid;
		event->b = ARGUMENT(ctx, 3, u32);
		end(event);
	}
	return 0;
}

/* The scheduler was asked and has left the CPU to whom it had: its policy may see it otherwise. */
SEC("tp_btf/sched_exit_tp")
int event_goes_on(u64 *ctx)
{
	if (recording && !(ARGUMENT(ctx, 0, u64) & 1))
		tell_report(bpf_get_current_task_btf(), true);
	return 0;
}

static __always_inline u8 context_flags(void)
{
	if (!exists(__preempt_count))
		return 0;
	int depth = *(int *)bpf_this_cpu_ptr(&__preempt_count);

	return (depth & (HARDIRQ_MASK | NMI_MASK) ? FLAG_HARDIRQ : 0) |
	       (depth & SERVING_SOFTIRQ ? FLAG_SOFTIRQ : 0);
}

/*
 * The flags of a wakeup, which no tracepoint has. The function that does the wakeup gets them and
 * then comes to sched_waking. An interrupt between the two may wake another task.
 */
struct wakeup {
	u64 task;
	u64 flags;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct wakeup);
} wakeup SEC(".maps");

/* WF_SYNC of kernel/sched/sched.h, 6.18. */
#define WF_SYNC 0x10

SEC("fentry/try_to_wake_up")
int event_flags(u64 *ctx)
{
	u32 zero = 0;
	struct wakeup *mine = recording ? bpf_map_lookup_elem(&wakeup, &zero) : NULL;

	if (!mine)
		return 0;
	mine->task = ctx[0];
	mine->flags = ctx[2];
	return 0;
}

static __always_inline u8 sync_flag(struct task_struct *p)
{
	u32 zero = 0;
	struct wakeup *mine = bpf_map_lookup_elem(&wakeup, &zero);

	return mine && mine->task == (u64)p && mine->flags & WF_SYNC ? FLAG_SYNC : 0;
}

static __always_inline int waking(struct task_struct *p, u8 flags)
{
	struct event *event = recording ? begin(WAKING, p->pid) : NULL;

	if (!event)
		return 0;
	event->flags = flags | sync_flag(p);
	event->a = p->thread_info.cpu;
	event->b = (u32)bpf_get_current_pid_tgid();
	end(event);
	return 0;
}

SEC("tp_btf/sched_waking")
int event_waking(u64 *ctx)
{
	return waking(ARGUMENT(ctx, 0, struct task_struct *), context_flags());
}

/* For kernels that do not say where __preempt_count is. */
SEC("tp_btf/sched_waking")
int plain_waking(u64 *ctx)
{
	return waking(ARGUMENT(ctx, 0, struct task_struct *), 0);
}

static __always_inline int event_woken(struct task_struct *p, enum kind kind)
{
	struct event *event = recording ? begin(kind, p->pid) : NULL;

	if (!event)
		return 0;
	event->a = p->thread_info.cpu;
	event->b = (u32)bpf_get_current_pid_tgid();
	end(event);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int event_wakeup(u64 *ctx)
{
	return event_woken(ARGUMENT(ctx, 0, struct task_struct *), WAKEUP);
}

SEC("tp_btf/sched_wakeup_new")
int event_start(u64 *ctx)
{
	return event_woken(ARGUMENT(ctx, 0, struct task_struct *), START);
}

SEC("tp_btf/sched_migrate_task")
int event_migrate(u64 *ctx)
{
	struct task_struct *p = ARGUMENT(ctx, 0, struct task_struct *);
	struct event *event = recording ? begin(MIGRATE, p->pid) : NULL;

	if (!event)
		return 0;
	event->a = ARGUMENT(ctx, 1, u32);
	event->b = p->thread_info.cpu;
	end(event);
	return 0;
}

static __always_inline void describe(struct task_event *to, struct task_struct *p,
				     const char *comm)
{
	to->event.b = p->tgid;
	to->static_prio = p->static_prio;
	to->policy = p->policy;
	to->flags = p->flags;
	to->nr_cpus_allowed = p->nr_cpus_allowed;
	bpf_probe_read_kernel(to->comm, sizeof(to->comm), comm);
}

static __always_inline int event_task(struct task_struct *p, u32 parent, const char *comm,
				      enum kind kind)
{
	struct task_event *task = bpf_ringbuf_reserve(&events, sizeof(*task), 0);

	if (!task) {
		count(LOST);
		return 0;
	}
	fill(&task->event, kind, p->pid);
	task->event.a = parent;
	describe(task, p, comm);
	end(task);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int event_fork(u64 *ctx)
{
	struct task_struct *parent = ARGUMENT(ctx, 0, struct task_struct *);
	struct task_struct *child = ARGUMENT(ctx, 1, struct task_struct *);

	if (recording)
		event_task(child, parent->pid, child->comm, FORK);
	return 0;
}

/* An exec renames, too. */
SEC("tp_btf/task_rename")
int event_rename(u64 *ctx)
{
	struct task_struct *p = ARGUMENT(ctx, 0, struct task_struct *);

	if (recording)
		event_task(p, 0, ARGUMENT(ctx, 1, const char *), RENAME);
	return 0;
}

SEC("iter/task")
int event_snapshot(struct bpf_iter__task *ctx)
{
	struct task_struct *p = ctx->task;
	struct task_event task = {};

	if (!p)
		return 0;
	/* A fair task may stay on its queue for a while after it has fallen asleep. */
	bool queued = p->on_rq == 1 && !p->__state;

	fill(&task.event, SNAPSHOT, p->pid);
	task.event.cpu = p->thread_info.cpu;
	task.event.flags = (queued ? FLAG_QUEUED : 0) | (p->on_cpu ? FLAG_ON_CPU : 0);
	task.event.a = p->real_parent->pid;
	describe(&task, p, p->comm);
	bpf_seq_write(ctx->meta->seq, &task, sizeof(task));
	return 0;
}

/* CHANGE: `what` of docs/events.md. */
#define CHANGE_NICE 0
#define CHANGE_AFFINITY 1

SEC("fexit/set_user_nice")
int event_nice(u64 *ctx)
{
	struct task_struct *p = ARGUMENT(ctx, 0, struct task_struct *);
	struct event *event = recording ? begin(CHANGE, p->pid) : NULL;

	if (!event)
		return 0;
	event->a = CHANGE_NICE;
	event->b = p->static_prio - 120;
	end(event);
	return 0;
}

SEC("fexit/__set_cpus_allowed_ptr")
int event_affinity(u64 *ctx)
{
	struct task_struct *p = ARGUMENT(ctx, 0, struct task_struct *);
	struct event *event = recording ? begin(CHANGE, p->pid) : NULL;

	if (!event)
		return 0;
	event->a = CHANGE_AFFINITY;
	event->b = p->nr_cpus_allowed;
	end(event);
	return 0;
}
