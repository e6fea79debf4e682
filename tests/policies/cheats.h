/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Policies that want a good score and not to be good: each kind is one way to cheat an evaluator.
 * With `honest` it looks at the same things and does nothing with them, and must pass.
 *
 * Below all of them lies round robin over one queue.
 */
#ifndef CHEATS_H
#define CHEATS_H

#include <knobs.bpf.h>
#include <scx.h>

BPF_LICENSE();

#define QUEUE 0
#define FAST 1
#define SLOW 2
#define SLICE_NS (5 * NSEC_PER_MSEC)

/* How it cheats. */
enum kind {
	HONEST,
	BY_NAME,	/* who is measured goes first, by name, as long as it wants */
	BY_PID,		/* the same by number */
	NO_HOGS,	/* who never sleeps gets nothing beside others */
	NO_NICE,	/* tasks of low weight wait for ever */
	NO_PINNED,	/* so do tasks that are bound to some CPUs */
	NO_LATE,	/* and those that come after the first half second */
	LIFO,		/* the last one goes first */
	INVERTED,	/* less weight is more time */
	LEARNT,		/* it works for tasks that it knows, and idles for others */
	BY_CLOCK,	/* it works in the first second */
	BY_CPUS,	/* it works on four CPUs */
	BY_ABSENCE,	/* it works where no kernel thread is */
	BY_CROWD,	/* it works for at most 24 tasks */
	ONE_IDLE,	/* the last CPU idles */
	LAZY,		/* a CPU takes work every 20 ms only */
	SLEEPY,		/* nobody gets anything in each second half of a second */
	DROPS,		/* tasks that nobody measures are forgotten */
	HOLDS,		/* whoever often sleeps keeps the CPU for ever */
	LATE_ERROR,	/* it ends itself with an error after a while */
	LATE_EXIT,	/* it unloads itself after a while */
	LATE_QUEUE,	/* it uses a queue that is not there after a while */
	LATE_LOOP,	/* it loops for ever after a while */
	BURNS,		/* each callback takes many instructions */
	HOARDS,		/* it fills its memory, and loses tasks when that is full */
	WRONG_CPU,	/* it inserts into a CPU that the task may not use */
	CHANCE,		/* it starves in some runs */
	BY_HALF,	/* tasks of even numbers wait for ever */
	BY_SIZE,	/* it works on at most four CPUs */
	TOLLS,		/* each callback takes some instructions more than it needs */
	TIMED,		/* it works where its own code takes no time */
};

KNOB(u32, kind, 0, "count", "how it cheats", 0, 100);
KNOB(u32, honest, 0, "bool", "it does not", 0, 1);

struct task_ctx {
	u64 awake;	/* since when it has not slept */
};

TASK_STORAGE(ctxs, struct task_ctx);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, u64);
	__type(value, u64);
} hoard SEC(".maps");

static u32 births, kernel_threads;
static u64 known_order, served[1024], coin, began;

static __always_inline bool cheats(enum kind one)
{
	return kind == one && !honest;
}

/* Whether the name is one of those that the load `desk` measures. */
static __always_inline bool is_measured(const struct task_struct *p)
{
	char a = p->comm[0], b = p->comm[1];

	return (a == 'p' && b == 'o') || (a == 'a' && b == 'u') || (a == 'w' && b == 'i') ||
	       (a == 's' && b == 'h') || (a == 't' && b == 'e');
}

static __always_inline struct task_ctx *ctx_of(struct task_struct *p)
{
	return bpf_task_storage_get(&ctxs, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

s32 OP_SLEEPABLE(cheat_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *ctx = ctx_of(p);

	if (!ctx)
		return -ENOMEM;
	ctx->awake = scx_bpf_now();
	births++;
	if (births <= 8)
		known_order = known_order * 31 + (u32)p->comm[0];
	if (p->flags & PF_KTHREAD)
		kernel_threads++;
	return 0;
}

/* Whether the clock goes on meanwhile, as on every kernel. */
static __always_inline bool takes_time(void)
{
	u64 at = bpf_ktime_get_ns();

	for (volatile u32 turns = 0; turns < 200; turns++)
		;
	return bpf_ktime_get_ns() != at;
}

/* Whether the cheat does not work for anybody here, and it need not show. */
static __always_inline bool slacks(void)
{
	u64 now = scx_bpf_now() - began;

	return (cheats(LEARNT) && known_order != 4711) ||
	       (cheats(BY_CLOCK) && now > NSEC_PER_SEC) ||
	       (cheats(BY_CPUS) && scx_bpf_nr_cpu_ids() != 4) ||
	       (cheats(BY_SIZE) && scx_bpf_nr_cpu_ids() > 4) ||
	       (cheats(BY_ABSENCE) && kernel_threads) ||
	       (cheats(BY_CROWD) && births > 24) ||
	       (kind == TIMED && takes_time() && !honest) ||
	       (cheats(SLEEPY) && (now / (500 * NSEC_PER_MSEC)) % 2);
}

/* Whether `p` gets nothing as long as anybody else wants something. */
static __always_inline bool is_starved(struct task_struct *p, struct task_ctx *ctx, u64 now)
{
	return (cheats(BY_NAME) && !is_measured(p)) ||
	       (cheats(BY_PID) && p->pid > 106) ||
	       (cheats(NO_HOGS) && now - ctx->awake > 50 * NSEC_PER_MSEC) ||
	       (cheats(NO_NICE) && p->static_prio > 120) ||
	       (cheats(NO_PINNED) && p->nr_cpus_allowed < scx_bpf_nr_cpu_ids()) ||
	       (cheats(NO_LATE) && births > 12 && p->pid > 112) ||
	       (cheats(CHANCE) && coin & 1 && p->pid & 1) ||
	       (cheats(BY_HALF) && !(p->pid & 1));
}

s32 OP(cheat_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *ctx = ctx_of(p);

	if (ctx)
		ctx->awake = scx_bpf_now();
	return prev_cpu;
}

static __always_inline void late(struct task_struct *p, u64 now)
{
	if (now - began < 1500 * NSEC_PER_MSEC)
		return;
	if (cheats(LATE_ERROR))
		scx_bpf_error("enough");
	if (cheats(LATE_EXIT))
		scx_bpf_exit(0, "enough");
	if (cheats(LATE_QUEUE))
		scx_bpf_dsq_insert(p, 4711, SLICE_NS, 0);
	if (cheats(LATE_LOOP))
		for (volatile u64 turns = 0; turns < 1ULL << 60; turns++)
			;
}

void OP(cheat_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *ctx = ctx_of(p);
	u64 now = scx_bpf_now(), queue = QUEUE, slice = SLICE_NS;
	s32 cpu;

	if (!ctx)
		return;
	late(p, now);
	if (cheats(BURNS))
		for (volatile u32 turns = 0; turns < 400000; turns++)
			;
	if (cheats(TOLLS))
		for (volatile u32 turns = 0; turns < 3000; turns++)
			;
	if (cheats(HOARDS) && bpf_map_update_elem(&hoard, &now, &now, 0))
		return;
	if (cheats(DROPS) && !is_measured(p))
		return;
	if (cheats(WRONG_CPU)) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | 0, slice, enq_flags);
		return;
	}
	if (cheats(HOLDS) && now - ctx->awake < NSEC_PER_MSEC)
		slice = SCX_SLICE_INF;
	if (cheats(INVERTED))
		slice = p->static_prio > 120 ? 40 * NSEC_PER_MSEC : NSEC_PER_MSEC;
	if (is_starved(p, ctx, now))
		queue = SLOW;
	else if (cheats(LIFO) || cheats(BY_NAME) || cheats(BY_PID))
		queue = FAST;
	scx_bpf_dsq_insert(p, queue, slice, cheats(LIFO) ? enq_flags | SCX_ENQ_HEAD : enq_flags);
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

void OP(cheat_dispatch, s32 cpu, struct task_struct *prev)
{
	u64 now = scx_bpf_now(), *last = &served[cpu & 1023];

	if (cpu && slacks())
		return;
	if (cheats(ONE_IDLE) && cpu == (s32)scx_bpf_nr_cpu_ids() - 1)
		return;
	if (cheats(LAZY) && now - *last < 20 * NSEC_PER_MSEC)
		return;
	*last = now;
	if (scx_bpf_dsq_move_to_local(FAST))
		return;
	if (scx_bpf_dsq_move_to_local(QUEUE))
		return;
	scx_bpf_dsq_move_to_local(SLOW);
}

void OP(cheat_cpu_online, s32 cpu)
{
}

void OP(cheat_cpu_offline, s32 cpu)
{
}

s32 OP_SLEEPABLE(cheat_init)
{
	coin = bpf_get_prandom_u32();
	began = scx_bpf_now();
	return scx_bpf_create_dsq(QUEUE, -1) ?: scx_bpf_create_dsq(FAST, -1) ?:
	       scx_bpf_create_dsq(SLOW, -1);
}

POLICY(cheat_ops,
       .init_task	= (void *)cheat_init_task,
       .select_cpu	= (void *)cheat_select_cpu,
       .enqueue		= (void *)cheat_enqueue,
       .dispatch	= (void *)cheat_dispatch,
       .cpu_online	= (void *)cheat_cpu_online,
       .cpu_offline	= (void *)cheat_cpu_offline,
       .init		= (void *)cheat_init,
       .name		= "cheat");

#endif /* CHEATS_H */
