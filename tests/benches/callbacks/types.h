/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The task that the measured policy sees, and what it may call. */

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed int s32;
typedef signed long long s64;
typedef _Bool bool;

struct task {
	u64 slice;
	u64 vtime;
	u32 weight;
};
