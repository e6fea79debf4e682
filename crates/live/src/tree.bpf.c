/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sums what the kernel counts for each task of a process tree: the numbers of
 * /proc/PID/schedstat, the context switches and the migrations. A task is
 * added when the kernel frees it, because only then its numbers are complete;
 * by then its files below /proc are gone.
 *
 * The tree is everything that the process `root_tgid` forks after these
 * programs are attached, and everything that those fork.
 */
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __core __attribute__((preserve_access_index))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) typeof(value) *name

/* Tracing helpers and types demand a licence that is compatible with the GPL. */
char tree_license[] SEC("license") = "Dual MIT/GPL";

struct sched_info {
	unsigned long pcount;	/* times on a CPU */
	u64 run_delay;		/* ns runnable without a CPU */
} __core;

struct sched_entity {
	u64 sum_exec_runtime;	/* ns on a CPU */
	u64 nr_migrations;
} __core;

struct task_struct {
	int pid;
	int tgid;
	unsigned long nvcsw;	/* switches that the task asked for by blocking */
	unsigned long nivcsw;	/* switches that it did not ask for */
	struct sched_entity se;
	struct sched_info sched_info;
} __core;

/* Set before the programs are loaded. */
int root_tgid SEC(".data.root") = 0;

/* Read by user space in this order. */
struct {
	u64 forked;
	u64 freed;
	u64 run_ns;
	u64 wait_ns;
	u64 slices;
	u64 migrations;
	u64 voluntary;
	u64 involuntary;
	u64 unseen;	/* not followed: too many tasks at a time */
} totals SEC(".data.totals") = {};

/* The tree's tasks that are not freed yet, by address. */
struct {
	__uint(type, 1 /* BPF_MAP_TYPE_HASH */);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, int);	/* pid */
} living SEC(".maps");

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value,
				   u64 flags) = (void *)2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;

#define add(counter, more) __sync_fetch_and_add(&totals.counter, more)

SEC("tp_btf/sched_process_fork")
int tree_fork(u64 *ctx)
{
	struct task_struct *parent = (void *)ctx[0];
	struct task_struct *child = (void *)ctx[1];
	u64 of_parent = (u64)parent, of_child = (u64)child;
	int pid = child->pid;

	/* A thread of the root itself is not what the root has started. */
	if (child->tgid == root_tgid)
		return 0;
	if (parent->tgid != root_tgid && !bpf_map_lookup_elem(&living, &of_parent))
		return 0;
	if (bpf_map_update_elem(&living, &of_child, &pid, 0))
		add(unseen, 1);
	else
		add(forked, 1);
	return 0;
}

SEC("tp_btf/sched_process_free")
int tree_free(u64 *ctx)
{
	struct task_struct *p = (void *)ctx[0];
	u64 key = (u64)p;

	if (!bpf_map_lookup_elem(&living, &key))
		return 0;
	add(run_ns, p->se.sum_exec_runtime);
	add(wait_ns, p->sched_info.run_delay);
	add(slices, p->sched_info.pcount);
	add(migrations, p->se.nr_migrations);
	add(voluntary, p->nvcsw);
	add(involuntary, p->nivcsw);
	add(freed, 1);
	bpf_map_delete_elem(&living, &key);
	return 0;
}
