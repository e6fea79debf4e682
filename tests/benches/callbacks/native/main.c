/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Calls each callback, or the one that the second argument names, so often as the first argument
 * says; prints nanoseconds a call.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "environment.h"

u64 empty(u64 *ctx), select_cpu(u64 *ctx), enqueue(u64 *ctx), dispatch(u64 *ctx);
u64 running(u64 *ctx), stopping(u64 *ctx), enable(u64 *ctx);

static const struct {
	const char *name;
	u64 (*call)(u64 *);
} programs[] = {
	{ "empty", empty },	  { "select_cpu", select_cpu }, { "enqueue", enqueue },
	{ "dispatch", dispatch }, { "running", running },	{ "stopping", stopping },
	{ "enable", enable },
};

static double cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1e9 + now.tv_nsec;
}

int main(int argc, char **argv)
{
	long calls = argc > 1 ? atol(argv[1]) : 0;
	struct task task = { .slice = 5000000, .weight = 100 };

	for (unsigned at = 0; at < sizeof(programs) / sizeof(*programs); at++) {
		u64 (*volatile program)(u64 *) = programs[at].call;
		double start = cpu_ns();

		if (argc > 2 && strcmp(argv[2], programs[at].name))
			continue;

		for (long call = 0; call < calls; call++) {
			/*
			 * As the kernel does: the arguments are stored anew for each call. One by
			 * one, because an initialiser is made up elsewhere and copied in larger
			 * words, which must wait for the smaller ones.
			 */
			volatile u64 args[3];

			args[0] = (u64)(unsigned long)&task;
			args[1] = 1;
			args[2] = 2;
			program((u64 *)args);
		}
		printf("%f\n", (cpu_ns() - start) / calls);
	}
	return 0;
}
