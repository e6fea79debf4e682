/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Records schedulers in cid form: attaches `sub` as the root and below it, and does to a task what
 * a section says. Marks in the trace say where a section begins.
 *
 * usage: cids root|subs|hotplug OBJECT, as root in a guest of two CPUs (`runslice vm`); then
 * /sys/kernel/tracing/trace has it. Takes libbpf 1.5 or newer, -lelf and -lz.
 */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CGROUPS "/sys/fs/cgroup"

static int marks;
static const char *path;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void mark(const char *text)
{
	dprintf(marks, "-- %s", text);
}

static void nap_ms(long ms)
{
	usleep(ms * 1000);
}

static void put(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(file);
	close(fd);
}

static void join(const char *cgroup, pid_t pid)
{
	char file[128], text[16];

	snprintf(file, sizeof(file), CGROUPS "%s/cgroup.procs", cgroup);
	snprintf(text, sizeof(text), "%d", pid);
	put(file, text);
}

static void allow(pid_t pid, unsigned mask)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int cpu = 0; cpu < 2; cpu++)
		if (mask & 1u << cpu)
			CPU_SET(cpu, &set);
	if (sched_setaffinity(pid, sizeof(set), &set))
		die("sched_setaffinity");
}

/* A task in a cgroup that computes for ever, or forks once and sleeps. */
static pid_t born(const char *cgroup, const char *name, unsigned mask, int forks)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	allow(0, mask);
	join(cgroup, getpid());
	prctl(PR_SET_NAME, name);
	if (forks) {
		nap_ms(200);
		mark("fork");
		if (!fork()) {
			for (volatile int i = 0; i < 1000000; i++)
				;
			_exit(0);
		}
		wait(NULL);
		pause();
	}
	for (;;)
		;
}

/* Sets a constant of an object. */
static void set(struct bpf_object *object, const char *name, unsigned long long value)
{
	struct btf *btf = bpf_object__btf(object);
	const struct btf_type *section;
	struct bpf_map *map;
	char *data;
	size_t size;
	int id = btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC);

	bpf_object__for_each_map(map, object)
		if (strstr(bpf_map__name(map), ".rodata"))
			break;
	if (!map || id < 0)
		die(".rodata");
	data = bpf_map__initial_value(map, &size);
	section = btf__type_by_id(btf, id);
	for (int i = 0; i < btf_vlen(section); i++) {
		const struct btf_var_secinfo *info = btf_var_secinfos(section) + i;
		const struct btf_type *var = btf__type_by_id(btf, info->type);

		if (!strcmp(btf__name_by_offset(btf, var->name_off), name)) {
			memcpy(data + info->offset, &value, info->size);
			return;
		}
	}
	die(name);
}

/* Sets a member of the table. */
static void member(struct bpf_object *object, const char *name, unsigned long long value)
{
	struct btf *btf = bpf_object__btf(object);
	int id = btf__find_by_name_kind(btf, "sched_ext_ops_cid", BTF_KIND_STRUCT);
	const struct btf_type *table = btf__type_by_id(btf, id);
	struct bpf_map *map = bpf_object__find_map_by_name(object, "sub_ops");
	size_t size;
	char *data = bpf_map__initial_value(map, &size);

	for (int i = 0; i < btf_vlen(table); i++) {
		const struct btf_member *it = btf_members(table) + i;

		if (!strcmp(btf__name_by_offset(btf, it->name_off), name)) {
			memcpy(data + it->offset / 8, &value, 8);
			return;
		}
	}
	die(name);
}

/* Attaches the policy as number `tag`; the root without a cgroup. */
static struct bpf_link *attach(int tag, const char *cgroup, int follows_cpus)
{
	struct bpf_object *object = bpf_object__open(path);
	struct bpf_link *link;
	struct stat at;
	char file[128];

	if (!object)
		die(path);
	set(object, "tag", tag);
	if (cgroup) {
		snprintf(file, sizeof(file), CGROUPS "%s", cgroup);
		if (stat(file, &at))
			die(file);
		member(object, "sub_cgroup_id", at.st_ino);
	}
	if (!follows_cpus) {
		member(object, "cid_online", 0);
		member(object, "cid_offline", 0);
	}
	if (bpf_object__load(object))
		die("load");
	link = bpf_map__attach_struct_ops(bpf_object__find_map_by_name(object, "sub_ops"));
	if (!link)
		die("attach");
	nap_ms(100);
	return link;
}

static void detach(struct bpf_link *link)
{
	if (bpf_link__detach(link))
		die("detach");
	nap_ms(100);
}

static void nice_to(pid_t pid, int nice)
{
	if (setpriority(PRIO_PROCESS, pid, nice))
		die("setpriority");
}

/* The root alone: `a` and `b` are its own. */
static void root(void)
{
	pid_t p = born("/a", "tvp", 2, 0);
	struct bpf_link *link;

	nap_ms(50);
	mark("attach");
	link = attach(0, NULL, 1);
	born("/a", "tvm", 1, 1);
	nap_ms(400);
	mark("nice");
	nice_to(p, 5);
	nap_ms(100);
	mark("affinity");
	allow(p, 3);
	nap_ms(100);
	mark("move");
	join("/b", p);
	nap_ms(100);
	mark("weight");
	put(CGROUPS "/a/cpu.weight", "50");
	put(CGROUPS "/a/d/cpu.weight", "70");
	nap_ms(50);
	mark("detach");
	detach(link);
	mark("end");
}

/* Two below the root. */
static void subs(void)
{
	pid_t p = born("/a", "tvp", 2, 0);
	struct bpf_link *link, *a;

	nap_ms(50);
	mark("attach");
	link = attach(0, NULL, 1);
	mark("attach-a");
	a = attach(1, "/a", 1);
	mark("attach-b");
	attach(2, "/b", 1);
	born("/b", "tvm", 1, 1);
	nap_ms(400);
	mark("move");
	join("/b", p);
	nap_ms(100);
	mark("nice");
	nice_to(p, 5);
	nap_ms(100);
	mark("affinity");
	allow(p, 3);
	nap_ms(100);
	mark("weight");
	put(CGROUPS "/a/cpu.weight", "50");
	put(CGROUPS "/a/d/cpu.weight", "70");
	nap_ms(50);
	mark("back");
	join("/a/d", p);
	nap_ms(100);
	mark("detach-a");
	detach(a);
	mark("below");
	join("/b", p);
	nap_ms(100);
	mark("detach");
	detach(link);
	mark("end");
}

/* CPU 1 goes and returns, with one below the root and without its following CPUs. */
static void hotplug(void)
{
	struct bpf_link *link;

	born("/a", "tvp", 3, 0);
	nap_ms(50);
	mark("attach");
	link = attach(0, NULL, 1);
	mark("attach-a");
	attach(1, "/a", 1);
	mark("offline");
	put("/sys/devices/system/cpu/cpu1/online", "0");
	nap_ms(100);
	mark("online");
	put("/sys/devices/system/cpu/cpu1/online", "1");
	nap_ms(100);
	mark("detach");
	detach(link);
	mark("attach-blind");
	link = attach(0, NULL, 0);
	mark("attach-a-blind");
	attach(1, "/a", 0);
	mark("blind");
	put("/sys/devices/system/cpu/cpu1/online", "0");
	nap_ms(200);
	mark("end");
}

int main(int count, char **words)
{
	if (count != 3)
		return 2;
	path = words[2];
	marks = open("/sys/kernel/tracing/trace_marker", O_WRONLY);
	if (marks < 0)
		die("trace_marker");
	put(CGROUPS "/cgroup.subtree_control", "+cpu");
	mkdir(CGROUPS "/a", 0755);
	put(CGROUPS "/a/cgroup.subtree_control", "+cpu");
	mkdir(CGROUPS "/a/d", 0755);
	mkdir(CGROUPS "/b", 0755);
	allow(0, 1);
	if (!strcmp(words[1], "root"))
		root();
	else if (!strcmp(words[1], "subs"))
		subs();
	else
		hotplug();
	return 0;
}
