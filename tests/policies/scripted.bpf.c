/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A policy that calls whatever a script says, with whatever arguments it says:
 * what a fuzzer writes over `script` decides. It exists to try the machine
 * that it runs on, and no verifier would let it pass.
 *
 * Each callback has a part of the script of its own, reads it from where it
 * stopped the last time, and begins again at its end. Between the calls, and
 * unless the script says otherwise, it does what a FIFO would do, so that runs
 * get somewhere. Arguments mostly are of the kind that the function wants.
 */
#include <scx.h>

BPF_LICENSE();

/* ---- What to do: written over before load ---- */

/* The order is known to tests/src/scripted.rs. */
enum group {
	SELECT_CPU, ENQUEUE, DEQUEUE, DISPATCH, TICK, RUNNABLE, RUNNING, STOPPING,
	QUIESCENT, YIELD, SET_WEIGHT, SET_CPUMASK, UPDATE_IDLE, CPU_ACQUIRE, CPU_RELEASE,
	INIT_TASK, EXIT_TASK, ENABLE, DISABLE, INIT, EXIT, DUMP, TIMER, CALLBACK,
	GROUPS,
};

#define GROUP_BYTES 48

u8 script[GROUPS * GROUP_BYTES] = "the script is to be written here";

/* ---- Functions that no shipped policy needs ---- */

/* Their prototypes name these types, and a declaration alone would not match. */
struct bpf_cpumask {
	u64 bits;
} __core;

struct scx_event_stats {
	s64 first;
} __core;

__kfunc s32 scx_bpf_select_cpu_and(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
				   const struct cpumask *cpus_allowed, u64 flags);
__kfunc s32 scx_bpf_pick_any_cpu_node(const struct cpumask *cpus_allowed, int node, u64 flags);
__kfunc const struct cpumask *scx_bpf_get_idle_cpumask_node(int node);
__kfunc const struct cpumask *scx_bpf_get_idle_smtmask(void);
__kfunc const struct cpumask *scx_bpf_get_idle_smtmask_node(int node);
__kfunc const struct cpumask *scx_bpf_get_possible_cpumask(void);
__kfunc u32 scx_bpf_nr_node_ids(void);
__kfunc int scx_bpf_cpu_node(s32 cpu);
__kfunc struct rq *scx_bpf_cpu_rq(s32 cpu);
__kfunc struct task_struct *scx_bpf_cpu_curr(s32 cpu);
__kfunc u32 scx_bpf_cpuperf_cap(s32 cpu);
__kfunc u32 scx_bpf_cpuperf_cur(s32 cpu);
__kfunc void scx_bpf_events(struct scx_event_stats *events, u64 events__sz);
__kfunc struct task_struct *bpf_task_acquire(struct task_struct *p);
__kfunc struct task_struct *bpf_task_from_vpid(s32 vpid);
__kfunc struct cgroup *bpf_cgroup_acquire(struct cgroup *cgrp);
__kfunc struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgrp, int level);
__kfunc struct cgroup *bpf_cgroup_from_id(u64 cgid);
__kfunc struct bpf_cpumask *bpf_cpumask_create(void);
__kfunc struct bpf_cpumask *bpf_cpumask_acquire(struct bpf_cpumask *mask);
__kfunc void bpf_cpumask_release(struct bpf_cpumask *mask);
__kfunc u32 bpf_cpumask_first_zero(const struct cpumask *mask);
__kfunc u32 bpf_cpumask_first_and(const struct cpumask *a, const struct cpumask *b);
__kfunc void bpf_cpumask_set_cpu(u32 cpu, struct bpf_cpumask *mask);
__kfunc void bpf_cpumask_clear_cpu(u32 cpu, struct bpf_cpumask *mask);
__kfunc bool bpf_cpumask_test_and_set_cpu(u32 cpu, struct bpf_cpumask *mask);
__kfunc bool bpf_cpumask_test_and_clear_cpu(u32 cpu, struct bpf_cpumask *mask);
__kfunc void bpf_cpumask_setall(struct bpf_cpumask *mask);
__kfunc void bpf_cpumask_clear(struct bpf_cpumask *mask);
__kfunc bool bpf_cpumask_and(struct bpf_cpumask *to, const struct cpumask *a,
			     const struct cpumask *b);
__kfunc void bpf_cpumask_or(struct bpf_cpumask *to, const struct cpumask *a,
			    const struct cpumask *b);
__kfunc void bpf_cpumask_xor(struct bpf_cpumask *to, const struct cpumask *a,
			     const struct cpumask *b);
__kfunc bool bpf_cpumask_equal(const struct cpumask *a, const struct cpumask *b);
__kfunc bool bpf_cpumask_intersects(const struct cpumask *a, const struct cpumask *b);
__kfunc bool bpf_cpumask_subset(const struct cpumask *a, const struct cpumask *b);
__kfunc bool bpf_cpumask_empty(const struct cpumask *mask);
__kfunc bool bpf_cpumask_full(const struct cpumask *mask);
__kfunc void bpf_cpumask_copy(struct bpf_cpumask *to, const struct cpumask *from);
__kfunc u32 bpf_cpumask_any_distribute(const struct cpumask *mask);
__kfunc u32 bpf_cpumask_any_and_distribute(const struct cpumask *a, const struct cpumask *b);
__kfunc void bpf_rcu_read_lock(void);
__kfunc void bpf_rcu_read_unlock(void);
__kfunc void bpf_preempt_disable(void);
__kfunc void bpf_preempt_enable(void);

/* By number: uapi/linux/bpf.h. */
static u64 (*const bpf_jiffies64)(void) = (void *)118;
static void *(*const bpf_ringbuf_reserve)(void *map, u64 size, u64 flags) = (void *)131;
static void (*const bpf_ringbuf_submit)(void *data, u64 flags) = (void *)132;
static void (*const bpf_ringbuf_discard)(void *data, u64 flags) = (void *)133;
static long (*const bpf_loop)(u32 turns, void *callback, void *context, u64 flags) = (void *)181;
static void *(*const bpf_kptr_xchg)(void *place, void *pointer) = (void *)194;

/* ---- State ---- */

#define QUEUES 3
#define SLOTS 4

/* What earlier calls gave: numbers, and what must be given back. */
static u64 slots[SLOTS];
static u64 tasks[SLOTS];
static u64 own_masks[SLOTS];
static u64 cgroups[SLOTS];
static u64 records[SLOTS];

/* Where each part of the script goes on. */
static u32 cursors[GROUPS];

/* Memory that functions may write to. */
static u64 place[16];

struct timed {
	u64 word;
	struct bpf_timer timer;
};

struct kept {
	struct bpf_cpumask __attribute__((btf_type_tag("kptr"))) *mask;
};

ARRAY(timers, struct timed, 2);
ARRAY(masks, struct kept, 2);
TASK_STORAGE(storage, u64);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 3);
	__type(key, u64);
	__type(value, u64);
} hash SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 2);
	__type(value, u64);
} queue SEC(".maps");

struct {
	__uint(type, 27);		/* BPF_MAP_TYPE_RINGBUF */
	__uint(max_entries, 4096);
} ring SEC(".maps");

/* A callback in progress; callbacks can nest. */
struct env {
	struct task_struct *p;
	u64 word;			/* flags, CPU or second task */
	u32 group;
	bool inserted;			/* the script has done enqueue's work */
};

/* ---- Reading the script ---- */

static __noinline u32 next(struct env *env)
{
	u32 group = env->group < GROUPS ? env->group : 0;
	u32 at = cursors[group];

	cursors[group] = at + 1 < GROUP_BYTES ? at + 1 : 0;
	return script[group * GROUP_BYTES + at % GROUP_BYTES];
}

/* Whether to do what ends the run for certain. */
static __always_inline bool madly(struct env *env)
{
	return next(env) >= 254;
}

enum kind { TASK, MASK, OWN_MASK, CPU, DSQ, FLAGS, SLICE, NUMBER, PLACE };

/* What no caller in its right mind would pass. */
static __noinline u64 wild(struct env *env, u32 choice)
{
	u32 i;
	u64 number = 0;

	switch (choice & 15) {
	case 0: return 0;
	case 1: return ~0ULL;
	case 2: return 1ULL << 63;
	case 3: return (u64)script;
	case 4: return (u64)place;
	case 5: return (u64)env->p + 4;
	case 6: return (u64)env->p->cpus_ptr;
	case 7: return (u64)bpf_get_current_task_btf();
	case 8: return slots[next(env) % SLOTS];
	case 9: return 0xffffffff;
	case 10: return 1ULL << (next(env) & 63);
	case 11: return next(env);
	case 12: return -(u64)next(env);
	case 13: return (u64)&timers;
	case 14: return (u64)env->p - 8;
	}
	for (i = 0; i < 8; i++)
		number = number << 8 | next(env);
	return number;
}

static __noinline u64 value(struct env *env, u32 kind)
{
	u32 choice = next(env);
	u64 number = 0;

	if (choice >= 254)
		return wild(env, next(env));
	switch (kind) {
	case TASK:
		switch (choice & 7) {
		case 0:
			number = (u64)bpf_get_current_task_btf();
			break;
		case 1:
			number = tasks[choice >> 3 & 3];
			break;
		case 2:
			number = (u64)scx_bpf_cpu_curr((choice >> 3) % scx_bpf_nr_cpu_ids());
			break;
		}
		return number ? number : (u64)env->p;
	case MASK:
		if ((choice & 3) == 1)
			number = own_masks[choice >> 2 & 3];
		return number ? number : (u64)env->p->cpus_ptr;
	case OWN_MASK:
		number = own_masks[choice & 3];
		if (!number)
			number = own_masks[choice & 3] = (u64)bpf_cpumask_create();
		return number;
	case CPU:
		return (choice >> 1) % scx_bpf_nr_cpu_ids();
	case DSQ:
		switch (choice & 31) {
		case 1: return SCX_DSQ_GLOBAL;
		case 2: case 3: return SCX_DSQ_LOCAL;
		case 4: return SCX_DSQ_LOCAL_ON | scx_bpf_task_cpu(env->p);
		case 5: return SCX_DSQ_LOCAL_ON | (choice >> 5) % scx_bpf_nr_cpu_ids();
		}
		return (choice >> 3) % 2;
	case FLAGS:
		switch (choice & 7) {
		case 1: return SCX_ENQ_HEAD;
		case 2: return SCX_ENQ_PREEMPT;
		case 3: return 1ULL << (choice >> 3 & 3);
		}
		return 0;
	case SLICE:
		switch (choice & 3) {
		case 0: return SCX_SLICE_INF;
		case 1: return 1000 * choice;
		case 2: return 0;
		}
		return 20000000;
	case PLACE:
		return (u64)&place[choice & 15];
	}
	return choice;
}

/* ---- Calling ---- */

#define T ((struct task_struct *)value(env, TASK))
#define M ((const struct cpumask *)value(env, MASK))
#define OWN ((struct bpf_cpumask *)value(env, OWN_MASK))
#define C value(env, CPU)
#define D value(env, DSQ)
#define F value(env, FLAGS)
#define S value(env, SLICE)
#define N value(env, NUMBER)
#define P ((void *)value(env, PLACE))
#define IT ((void *)it)

static void perform(struct env *env);

/* Walks a queue and does with its tasks what the script says. */
static __noinline u64 walk(struct env *env)
{
	struct bpf_iter_scx_dsq own, *it = &own;
	struct task_struct *p;
	u32 turns = next(env) & 7, i;

	if (madly(env))
		it = P;
	bpf_iter_scx_dsq_new(it, (u64)next(env) % QUEUES, next(env) & 1 ? SCX_DSQ_ITER_REV : 0);
	for (i = 0; i < turns; i++) {
		p = bpf_iter_scx_dsq_next(it);
		if (!p && !madly(env))
			break;
		if (madly(env))
			p = T;
		if (env->group != DISPATCH && !madly(env))
			continue;
		switch (next(env) % 6) {
		case 0:
			scx_bpf_dsq_move_set_slice(it, S);
			break;
		case 1:
			scx_bpf_dsq_move_set_vtime(it, N);
			break;
		case 2:
			scx_bpf_dsq_move(it, p, D, F);
			break;
		case 3:
			scx_bpf_dsq_move_vtime(it, p, D, F);
			break;
		case 4:
			scx_bpf_dsq_move_to_local(D);
			break;
		}
	}
	if (!madly(env))
		bpf_iter_scx_dsq_destroy(it);
	return turns;
}

/* Once in each callback that places a task. */
static bool may_insert(struct env *env)
{
	bool may = !env->inserted && (env->group == ENQUEUE || env->group == SELECT_CPU);

	env->inserted |= may;
	return may;
}

/* Which functions a callback may call: kernel 6.18, kernel/sched/ext.c, `scx_kf_mask`. */
static __noinline u64 about_queues(struct env *env)
{
	bool all = madly(env);

	switch (next(env) % 12) {
	case 0:
	case 1:
		if (all || may_insert(env))
			scx_bpf_dsq_insert(env->p, D, S, F);
		else if (env->group == DISPATCH)
			scx_bpf_dsq_insert(T, D, S, F);
		break;
	case 2:
		if (all || may_insert(env) || env->group == DISPATCH)
			scx_bpf_dsq_insert_vtime(env->p, 2, S, N, F);
		break;
	case 3:
		if (all || env->group == DISPATCH)
			return scx_bpf_dispatch_nr_slots();
		break;
	case 4:
		if (all || (env->group == DISPATCH && scx_bpf_dispatch_nr_slots() < 2))
			scx_bpf_dispatch_cancel();
		break;
	case 5:
		if (all || env->group == DISPATCH)
			return scx_bpf_dsq_move_to_local(next(env) % QUEUES);
		break;
	case 6:
		if (all || env->group == CPU_RELEASE)
			return scx_bpf_reenqueue_local();
		break;
	case 7:
		if (all || env->group == INIT || env->group == INIT_TASK)
			return scx_bpf_create_dsq(4 + next(env) % 4, -1);
		break;
	case 8:
		if (madly(env))
			scx_bpf_destroy_dsq(D);
		else
			scx_bpf_destroy_dsq(4 + next(env) % 4);
		break;
	case 9:
		return scx_bpf_dsq_nr_queued(D);
	default:
		return walk(env);
	}
	return 0;
}

static __noinline u64 about_cpus(struct env *env)
{
	u32 which = next(env) % 24;

	if ((which == 2 || which == 3) && env->group != SELECT_CPU && !madly(env))
		return 0;
	/* Nodes want another table, and the clock of another CPU another lock. */
	if ((which == 7 || which == 8 || which == 10 || which == 12 || which == 22) && !madly(env))
		return 0;
	switch (which) {
	case 0: case 1: scx_bpf_kick_cpu(C, next(env) % 3); break;
	case 2: return scx_bpf_select_cpu_dfl(env->p, C, 0, P);
	case 3: return scx_bpf_select_cpu_and(env->p, C, 0, M, F);
	case 4: return scx_bpf_test_and_clear_cpu_idle(C);
	case 5: return scx_bpf_pick_idle_cpu(M, F);
	case 6: return scx_bpf_pick_any_cpu(M, F);
	case 7: return scx_bpf_pick_idle_cpu_node(M, N, F);
	case 8: return scx_bpf_pick_any_cpu_node(M, N, F);
	case 9: return (u64)scx_bpf_get_idle_cpumask();
	case 10: return (u64)scx_bpf_get_idle_cpumask_node(N);
	case 11: return (u64)scx_bpf_get_idle_smtmask();
	case 12: return (u64)scx_bpf_get_idle_smtmask_node(N);
	case 13: scx_bpf_put_idle_cpumask(M); break;
	case 14: return (u64)scx_bpf_get_online_cpumask();
	case 15: return (u64)scx_bpf_get_possible_cpumask();
	case 16: scx_bpf_put_cpumask(scx_bpf_get_online_cpumask()); break;
	case 17: return scx_bpf_cpu_node(C) + scx_bpf_nr_node_ids();
	case 18: return (u64)scx_bpf_cpu_rq(C);
	case 19: return (u64)scx_bpf_locked_rq();
	case 20: return (u64)scx_bpf_cpu_curr(C);
	case 21: return scx_bpf_cpuperf_cap(C) + scx_bpf_cpuperf_cur(C);
	case 22: scx_bpf_cpuperf_set(C, N); break;
	case 23: scx_bpf_events(P, N); break;
	}
	return 0;
}

static __noinline u64 about_masks(struct env *env)
{
	u32 slot = next(env) % SLOTS;

	switch (next(env) % 24) {
	case 0:
	case 1:
		if (!own_masks[slot] || madly(env))
			own_masks[slot] = (u64)bpf_cpumask_create();
		break;
	case 2:
		if (!own_masks[slot] || madly(env))
			own_masks[slot] = (u64)bpf_cpumask_acquire(OWN);
		break;
	case 3:
		if (own_masks[slot] || madly(env))
			bpf_cpumask_release((void *)own_masks[slot]);
		if (!madly(env))
			own_masks[slot] = 0;
		break;
	case 4: return bpf_cpumask_first(M) + bpf_cpumask_first_zero(M);
	case 5: return bpf_cpumask_first_and(M, M);
	case 6: bpf_cpumask_set_cpu(C, OWN); break;
	case 7: bpf_cpumask_clear_cpu(C, OWN); break;
	case 8: return bpf_cpumask_test_cpu(C, M);
	case 9: return bpf_cpumask_test_and_set_cpu(C, OWN);
	case 10: return bpf_cpumask_test_and_clear_cpu(C, OWN);
	case 11: bpf_cpumask_setall(OWN); break;
	case 12: bpf_cpumask_clear(OWN); break;
	case 13: return bpf_cpumask_and(OWN, M, M);
	case 14: bpf_cpumask_or(OWN, M, M); break;
	case 15: bpf_cpumask_xor(OWN, M, M); break;
	case 16: return bpf_cpumask_equal(M, M);
	case 17: return bpf_cpumask_intersects(M, M);
	case 18: return bpf_cpumask_subset(M, M);
	case 19: return bpf_cpumask_empty(M) + bpf_cpumask_full(M);
	case 20: bpf_cpumask_copy(OWN, M); break;
	case 21: return bpf_cpumask_any_distribute(M);
	case 22: return bpf_cpumask_any_and_distribute(M, M);
	case 23: return bpf_cpumask_weight(M);
	}
	return 0;
}

static __noinline u64 about_tasks(struct env *env)
{
	struct task_struct *p = T;
	u32 slot = next(env) % SLOTS;
	u64 *task = &tasks[slot], *cgroup = &cgroups[slot];
	bool all = madly(env);

	switch (next(env) % 20) {
	case 0: if (all || !*task) *task = (u64)bpf_task_acquire(p); break;
	case 1: if (all || *task) bpf_task_release((void *)*task); *task = 0; break;
	case 2: if (all || !*task) *task = (u64)bpf_task_from_pid(N); break;
	case 3: if (all || !*task) *task = (u64)bpf_task_from_vpid(N); break;
	case 4: return scx_bpf_task_running(p);
	case 5: return scx_bpf_task_cpu(p);
	case 6:
		if (all || !*cgroup)
			*cgroup = (u64)scx_bpf_task_cgroup(all ? p : env->p);
		break;
	case 7: if (all || *cgroup) bpf_cgroup_acquire((void *)*cgroup); break;
	case 8: if (all || *cgroup) bpf_cgroup_release((void *)*cgroup); *cgroup = 0; break;
	case 9: if (all || *cgroup) bpf_cgroup_ancestor((void *)*cgroup, N); break;
	case 10: if (all || !*cgroup) *cgroup = (u64)bpf_cgroup_from_id(N); break;
	case 11: set_slice(p, S); break;
	case 12: p->scx.dsq_vtime = N; break;
	case 13: if (all) p->scx.disallow = next(env) & 1; break;
	case 14: if (all) *(volatile u64 *)((u64)p + next(env)) = N; break;
	case 15: if (all) *(volatile u32 *)((u64)p + 4 * next(env)) = N; break;
	case 16: return *(volatile u64 *)((u64)p + 8 * next(env));
	default: return p->pid + p->scx.slice + p->scx.dsq_vtime;
	}
	return 0;
}

static long on_turn(u32 turn, struct env *env)
{
	u32 group = env->group;

	env->group = CALLBACK;
	perform(env);
	env->group = group;
	return next(env) > 200;
}

static int on_timer(void *map, u32 *key, struct timed *timed)
{
	struct env env = { .p = bpf_get_current_task_btf(), .word = *key, .group = TIMER };

	perform(&env);
	return 0;
}

static __noinline u64 about_maps(struct env *env)
{
	u32 key = next(env) & 1;
	struct timed *timed = bpf_map_lookup_elem(&timers, &key);
	struct kept *kept = bpf_map_lookup_elem(&masks, &key);
	u64 *word;

	switch (next(env) % 22) {
	case 0:
		if (timed || madly(env))
			return bpf_timer_init(timed ? &timed->timer : P, &timers, next(env) & 1);
		break;
	case 1: return timed ? bpf_timer_set_callback(&timed->timer, on_timer) : 0;
	case 2: case 3: return timed ? bpf_timer_start(&timed->timer, 1000 * N, next(env) & 3) : 0;
	case 4: return timed ? bpf_timer_cancel(&timed->timer) : 0;
	case 5:
		word = bpf_task_storage_get(&storage, T, NULL, next(env) & 1);
		return word ? ++*word : 0;
	case 6: return bpf_task_storage_delete(&storage, T);
	case 7: return bpf_map_update_elem(&hash, P, P, next(env) & 3);
	case 8: return bpf_map_delete_elem(&hash, P);
	case 9: return (u64)bpf_map_lookup_elem(&hash, P);
	case 10: return bpf_map_push_elem(&queue, P, F);
	case 11: return bpf_map_pop_elem(&queue, P);
	case 12:
		if (!records[key])
			records[key] = (u64)bpf_ringbuf_reserve(&ring, 8 * N, 0);
		break;
	case 13:
	case 14:
		if (!records[key] && !madly(env))
			break;
		if (next(env) & 1)
			bpf_ringbuf_submit((void *)records[key], 0);
		else
			bpf_ringbuf_discard((void *)records[key], 0);
		records[key] = 0;
		break;
	case 15:
		if (kept)
			own_masks[key] = (u64)bpf_kptr_xchg(kept, (void *)own_masks[key]);
		break;
	case 16: return bpf_map_update_elem(&timers, &key, place, 0);
	case 17: return bpf_loop(next(env) & 3, on_turn, env, 0);
	case 18: bpf_rcu_read_lock(); perform(env); bpf_rcu_read_unlock(); break;
	case 19: bpf_preempt_disable(); bpf_preempt_enable(); break;
	case 20: place[next(env) & 15] = N; break;
	case 21: return bpf_jiffies64() + bpf_ktime_get_ns() + scx_bpf_now();
	}
	return 0;
}

static __noinline u64 about_ends(struct env *env)
{
	static char text[] = "%d %s %llx %";
	u32 choice = next(env);

	/* Rarely, because the rest of the run is over then. */
	switch (choice) {
	case 255: scx_bpf_error_bstr(text, P, N); break;
	case 254: scx_bpf_exit_bstr(N, text, P, N); break;
	case 253: scx_bpf_dump_bstr(text, P, N); break;
	case 252: scx_bpf_error_bstr(P, P, N); break;
	case 251: bpf_printk("%d %d", (u64)choice, N); break;
	}
	return choice;
}

/* Calls up to three functions. */
static __noinline void perform(struct env *env)
{
	u32 times = next(env) & 3, i;
	u64 result;

	for (i = 0; i < times; i++) {
		switch (next(env) & 7) {
		case 0: case 1: result = about_queues(env); break;
		case 2: case 3: result = about_cpus(env); break;
		case 4: result = about_masks(env); break;
		case 5: result = about_tasks(env); break;
		case 6: result = about_maps(env); break;
		default: result = about_ends(env); break;
		}
		slots[next(env) % SLOTS] = result;
	}
}

/* What most callbacks do. */
#define PERFORM(which, task, number)						\
	struct env env_ = { .p = (task), .word = (u64)(number), .group = which };	\
	struct env *env = &env_;						\
	perform(env)

/* ---- Callbacks, in the order of a task's life ---- */

s32 OP_SLEEPABLE(scripted_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	PERFORM(INIT_TASK, p, args->fork);
	return next(env) == 255 ? -ENOMEM : 0;
}

void OP(scripted_enable, struct task_struct *p)
{
	PERFORM(ENABLE, p, 0);
}

void OP(scripted_runnable, struct task_struct *p, u64 enq_flags)
{
	PERFORM(RUNNABLE, p, enq_flags);
}

s32 OP(scripted_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	PERFORM(SELECT_CPU, p, wake_flags);
	return next(env) & 1 ? prev_cpu : (s32)C;
}

void OP(scripted_enqueue, struct task_struct *p, u64 enq_flags)
{
	PERFORM(ENQUEUE, p, enq_flags);
	if (env->inserted)
		return;
	switch (next(env) & 31) {
	case 31: break;				/* forgotten, or inserted by the script */
	case 1: scx_bpf_dsq_insert(p, D, S, enq_flags | F); break;
	case 2: scx_bpf_dsq_insert_vtime(p, 2, S, N, enq_flags); break;
	case 3: scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, S, enq_flags); break;
	default: scx_bpf_dsq_insert(p, next(env) & 1, S, enq_flags); break;
	}
}

void OP(scripted_dequeue, struct task_struct *p, u64 deq_flags)
{
	PERFORM(DEQUEUE, p, deq_flags);
}

void OP(scripted_dispatch, s32 cpu, struct task_struct *prev)
{
	PERFORM(DISPATCH, prev ? prev : bpf_get_current_task_btf(), cpu);
	if (next(env) < 240 && !scx_bpf_dsq_move_to_local(0) && !scx_bpf_dsq_move_to_local(1))
		scx_bpf_dsq_move_to_local(2);
}

void OP(scripted_running, struct task_struct *p)
{
	PERFORM(RUNNING, p, 0);
}

void OP(scripted_tick, struct task_struct *p)
{
	PERFORM(TICK, p, 0);
}

bool OP(scripted_yield, struct task_struct *from, struct task_struct *to)
{
	PERFORM(YIELD, from, to);
	return next(env) & 1;
}

void OP(scripted_stopping, struct task_struct *p, bool runnable)
{
	PERFORM(STOPPING, p, runnable);
}

void OP(scripted_quiescent, struct task_struct *p, u64 deq_flags)
{
	PERFORM(QUIESCENT, p, deq_flags);
}

void OP(scripted_set_weight, struct task_struct *p, u32 weight)
{
	PERFORM(SET_WEIGHT, p, weight);
}

void OP(scripted_set_cpumask, struct task_struct *p, const struct cpumask *cpumask)
{
	PERFORM(SET_CPUMASK, p, cpumask);
}

void OP(scripted_update_idle, s32 cpu, bool idle)
{
	PERFORM(UPDATE_IDLE, bpf_get_current_task_btf(), cpu);
}

void OP(scripted_cpu_acquire, s32 cpu, struct scx_cpu_acquire_args *args)
{
	PERFORM(CPU_ACQUIRE, bpf_get_current_task_btf(), cpu);
}

void OP(scripted_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	PERFORM(CPU_RELEASE, args->task, cpu);
	if (next(env) & 1)
		scx_bpf_reenqueue_local();
}

void OP(scripted_disable, struct task_struct *p)
{
	PERFORM(DISABLE, p, 0);
}

void OP(scripted_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	PERFORM(EXIT_TASK, p, args->cancelled);
}

void OP(scripted_dump, struct scx_dump_ctx *ctx)
{
	PERFORM(DUMP, bpf_get_current_task_btf(), 0);
}

/* ---- Load and unload ---- */

s32 OP_SLEEPABLE(scripted_init)
{
	u32 id;

	for (id = 0; id < QUEUES; id++)
		scx_bpf_create_dsq(id, -1);
	PERFORM(INIT, bpf_get_current_task_btf(), 0);
	return next(env) == 255 ? -EINVAL : 0;
}

void OP(scripted_exit, struct scx_exit_info *info)
{
	PERFORM(EXIT, bpf_get_current_task_btf(), info->kind);
}

/* What all tables have. */
#define COMMON								\
	.init_task	= (void *)scripted_init_task,			\
	.enable		= (void *)scripted_enable,			\
	.runnable	= (void *)scripted_runnable,			\
	.enqueue	= (void *)scripted_enqueue,			\
	.dequeue	= (void *)scripted_dequeue,			\
	.dispatch	= (void *)scripted_dispatch,			\
	.running	= (void *)scripted_running,			\
	.tick		= (void *)scripted_tick,			\
	.stopping	= (void *)scripted_stopping,			\
	.quiescent	= (void *)scripted_quiescent,			\
	.set_weight	= (void *)scripted_set_weight,			\
	.set_cpumask	= (void *)scripted_set_cpumask,			\
	.cpu_acquire	= (void *)scripted_cpu_acquire,			\
	.cpu_release	= (void *)scripted_cpu_release,			\
	.disable	= (void *)scripted_disable,			\
	.exit_task	= (void *)scripted_exit_task,			\
	.dump		= (void *)scripted_dump,			\
	.init		= (void *)scripted_init,			\
	.exit		= (void *)scripted_exit,			\
	.timeout_ms	= 100

POLICY(scripted,
       COMMON,
       .select_cpu	= (void *)scripted_select_cpu,
       .yield		= (void *)scripted_yield,
       .update_idle	= (void *)scripted_update_idle,
       .flags		= SCX_OPS_KEEP_BUILTIN_IDLE | SCX_OPS_ENQ_LAST |
			  SCX_OPS_ENQ_EXITING,
       .name		= "scripted");

/* Without what the kernel does by itself when it is not there. */
POLICY(scripted_plain,
       COMMON,
       .flags		= SCX_OPS_ALLOW_QUEUED_WAKEUP,
       .dispatch_max_batch = 2,
       .name		= "scripted_plain");

/* Leaves other classes alone. */
POLICY(scripted_partial,
       COMMON,
       .select_cpu	= (void *)scripted_select_cpu,
       .update_idle	= (void *)scripted_update_idle,
       .flags		= SCX_OPS_SWITCH_PARTIAL | SCX_OPS_ENQ_MIGRATION_DISABLED |
			  SCX_OPS_KEEP_BUILTIN_IDLE,
       .name		= "scripted_partial");
