/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The ten scenarios of workloads/traces, with real processes: what scripts/traces.sh records on a
 * kernel. A task takes its name when it is where the scenario wants it, so that a recording knows
 * it from then on. Marks in the trace say where a scenario begins.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int marks;
static int ends[2];	/* the pipe of T9 */

static void die(const char *what)
{
	perror(what);
	_exit(1);
}

static void nap_us(long us)
{
	struct timespec span = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&span, NULL);
}

static long long used_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Uses so much CPU time. */
static void run_us(long us)
{
	long long end = used_ns() + us * 1000LL;

	while (used_ns() < end)
		;
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

/* Forks a task that does `what` on CPU 1, or on both. */
static pid_t born(const char *name, unsigned mask, void (*what)(void))
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid == 0) {
		allow(0, mask);
		prctl(PR_SET_NAME, name);
		what();
		_exit(0);
	}
	return pid;
}

static void t1(void)
{
	for (int i = 0; i < 3; i++) {
		nap_us(15000);
		run_us(50);
	}
}

static void t2(void)
{
	nap_us(5000);
	run_us(60000);
}

static void hog(void)
{
	nap_us(5000);
	run_us(90000);
}

static void t4(void)
{
	nap_us(5000);
	for (int i = 0; i < 3; i++) {
		run_us(2000);
		if (i < 2)
			sched_yield();
	}
}

static void t5(void)
{
	nap_us(5000);
	for (int i = 0; i < 3; i++) {
		run_us(2000);
		sched_yield();
	}
}

static void t6(void)
{
	static const unsigned masks[] = { 3, 1, 2 };

	nap_us(5000);
	run_us(2000);
	if (setpriority(PRIO_PROCESS, 0, 5))
		die("setpriority");
	run_us(2000);
	for (int i = 0; i < 3; i++) {
		allow(0, masks[i]);
		run_us(2000);
	}
}

static void t7(void)
{
	nap_us(5000);
	run_us(2000);
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_NAME, "tvchild");
		run_us(1000);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	run_us(300);
	nap_us(10000);
}

static void t8_real_time(void)
{
	struct sched_param param = { .sched_priority = 50 };

	nap_us(30000);
	if (sched_setscheduler(0, SCHED_FIFO, &param))
		die("sched_setscheduler");
	nap_us(10000);
	run_us(20000);
}

static void t8_hog(void)
{
	nap_us(5000);
	run_us(100000);
}

static void t9_reader(void)
{
	char byte;

	if (read(ends[0], &byte, 1) != 1)
		die("read");
	run_us(2000);
}

static void t9_writer(void)
{
	nap_us(20000);
	run_us(2000);
	if (write(ends[1], "x", 1) != 1)
		die("write");
	run_us(10000);
}

static void begin(const char *title)
{
	nap_us(100000);
	dprintf(marks, "@@ %s", title);
}

/* Waits for every task of the scenario, and for what the kernel does with them later. */
static void end(void)
{
	while (wait(NULL) > 0)
		;
	nap_us(100000);
}

static void t10(void)
{
	pid_t a = born("tvA", 2, hog), b = born("tvB", 2, hog);

	nap_us(25000);
	if (setpriority(PRIO_PROCESS, a, 3) || setpriority(PRIO_PROCESS, b, 3))
		die("setpriority");
	nap_us(30000);
	allow(b, 3);
	nap_us(30000);
	allow(a, 3);
}

int main(void)
{
	marks = open("/sys/kernel/tracing/trace_marker", O_WRONLY | O_CLOEXEC);
	if (marks < 0 || pipe(ends))
		die("trace_marker");
	prctl(PR_SET_NAME, "main");
	prctl(PR_SET_TIMERSLACK, 1);
	allow(0, 1);

	begin("T1: sleep and wake");
	born("tvA", 2, t1);
	end();
	begin("T2: a lone CPU hog");
	born("tvA", 2, t2);
	end();
	begin("T3: two CPU hogs");
	born("tvA", 2, hog);
	born("tvB", 2, hog);
	end();
	begin("T4: yield alone");
	born("tvA", 2, t4);
	end();
	begin("T5: yield in company");
	born("tvA", 2, t5);
	born("tvB", 2, t5);
	end();
	begin("T6: own nice +5, own affinity {0,1}, {0}, {1}");
	born("tvA", 2, t6);
	end();
	begin("T7: fork, the child runs and exits, wait");
	born("tvA", 2, t7);
	end();
	begin("T8: a FIFO real-time task preempts a hog");
	born("tvRT", 2, t8_real_time);
	born("tvA", 2, t8_hog);
	end();
	begin("T9: a pipe wakes a reader that may run on both CPUs");
	born("tvR", 3, t9_reader);
	born("tvW", 2, t9_writer);
	end();
	begin("T10: nice and affinity of two hogs, one running, one queued");
	t10();
	end();
	dprintf(marks, "@@ end");
	return 0;
}
