/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The kernel's types as a policy sees them, for sources that ask for a vmlinux.h: those of the
 * simulated kernels, which are relocated by name in whatever kernel loads the object. A field that
 * is missing here is missing in the simulation, too.
 *
 * The table of callbacks is that of 7.2, its cid form and the constants are those of 7.3. On
 * another kernel a loader drops members that nobody has filled, and takes the values that this
 * kernel gives to the constants in scx/common.bpf.h.
 */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

/* Functions are declared instead of defined. Weak: a loader names the one that is missing. */
#define KFUNC
#define VOID(name, args...) extern void name(args) KERNEL_FUNCTION;
#define GIVES(type, name, args...) extern type name(args) KERNEL_FUNCTION;
#define KERNEL_FUNCTION __attribute__((section(".ksyms"), weak))
/* Arenas have pointers of their own: scx/bpf_arena_common.bpf.h. */
#define WITHOUT_ARENAS
/* A variable of the kernel would become one of the policy. */
#define PERCPU extern __attribute__((section(".ksyms"), weak))

/* An arena's pointers have an address space of their own. */
#define ARENA __attribute__((address_space(1)))

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
#define SIMULATED_KERNEL 7003
#include <kernel/6.18/types.h>
#undef SIMULATED_KERNEL
#define SIMULATED_KERNEL 7002
#include <kernel/7.2/ops.h>
#undef SIMULATED_KERNEL
#define SIMULATED_KERNEL 7003
#include <kernel/7.2/cid.h>
#include <kernel/7.2/constants.h>

struct bpf_iter_bits {
	u64 __opaque[2];
};

struct bpf_dynptr {
	u64 __opaque[2];
};

struct bpf_wq {
	u64 __opaque[2];
};
#undef SIMULATED_KERNEL
#define SIMULATED_KERNEL 7002
#include <kernel/6.18/functions.h>
#undef SIMULATED_KERNEL
#define SIMULATED_KERNEL 7003
#include <kernel/7.2/functions.h>
/* Names that 6.12 to 6.16 have, for sources of that time. A loader of another kernel names them. */
VOID(scx_bpf_dispatch, struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags)
VOID(scx_bpf_dispatch_vtime, struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
     u64 enq_flags)
GIVES(bool, scx_bpf_consume, u64 dsq_id)
VOID(scx_bpf_dispatch_from_dsq_set_slice, struct bpf_iter_scx_dsq *it__iter, u64 slice)
VOID(scx_bpf_dispatch_from_dsq_set_vtime, struct bpf_iter_scx_dsq *it__iter, u64 vtime)
GIVES(bool, scx_bpf_dispatch_from_dsq, struct bpf_iter_scx_dsq *it__iter, struct task_struct *p,
      u64 dsq_id, u64 enq_flags)
GIVES(bool, scx_bpf_dispatch_vtime_from_dsq, struct bpf_iter_scx_dsq *it__iter,
      struct task_struct *p, u64 dsq_id, u64 enq_flags)
#pragma clang attribute pop
#undef SIMULATED_KERNEL

/* The alternatives of a function's name are for whoever asks which one a kernel has. */

extern int bpf_iter_bits_new(struct bpf_iter_bits *it, const u64 *words,
			     u32 nr_words) KERNEL_FUNCTION;
extern int *bpf_iter_bits_next(struct bpf_iter_bits *it) KERNEL_FUNCTION;
extern void bpf_iter_bits_destroy(struct bpf_iter_bits *it) KERNEL_FUNCTION;

typedef __u8 uint8_t;
typedef __u16 uint16_t;
typedef __u32 uint32_t;
typedef __u64 uint64_t;
typedef signed char __s8;
typedef short __s16;
typedef __s8 s8;
typedef __s16 s16;
typedef __s8 int8_t;
typedef __s16 int16_t;
typedef __s32 int32_t;
typedef __s64 int64_t;
typedef long ssize_t;
typedef unsigned int gfp_t;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u32 __wsum;

enum {
	false = 0,
	true = 1,
};

/* ---- What BPF programs and their loaders agree on (uapi/linux/bpf.h, kernel 6.18) ---- */

enum bpf_map_type {
	BPF_MAP_TYPE_UNSPEC,
	BPF_MAP_TYPE_HASH,
	BPF_MAP_TYPE_ARRAY,
	BPF_MAP_TYPE_PROG_ARRAY,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY,
	BPF_MAP_TYPE_PERCPU_HASH,
	BPF_MAP_TYPE_PERCPU_ARRAY,
	BPF_MAP_TYPE_STACK_TRACE,
	BPF_MAP_TYPE_CGROUP_ARRAY,
	BPF_MAP_TYPE_LRU_HASH,
	BPF_MAP_TYPE_LRU_PERCPU_HASH,
	BPF_MAP_TYPE_LPM_TRIE,
	BPF_MAP_TYPE_ARRAY_OF_MAPS,
	BPF_MAP_TYPE_HASH_OF_MAPS,
	BPF_MAP_TYPE_QUEUE = 22,
	BPF_MAP_TYPE_STACK = 23,
	BPF_MAP_TYPE_STRUCT_OPS = 26,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
	BPF_MAP_TYPE_BLOOM_FILTER = 30,
	BPF_MAP_TYPE_USER_RINGBUF = 31,
	BPF_MAP_TYPE_CGRP_STORAGE = 32,
	BPF_MAP_TYPE_ARENA = 33,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_EXIST = 2,
	BPF_F_LOCK = 4,
};

enum {
	BPF_F_NO_PREALLOC = 1U << 0,
	BPF_F_RDONLY_PROG = 1U << 7,
	BPF_F_MMAPABLE = 1U << 10,
	BPF_F_NO_USER_CONV = 1U << 18,
};

enum {
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1ULL << 0,
	BPF_F_TIMER_ABS = 1ULL << 0,
	BPF_F_TIMER_CPU_PIN = 1ULL << 1,
	BPF_F_CURRENT_CPU = 0xffffffffULL,
	BPF_MAX_LOOPS = 8 * 1024 * 1024,
};

enum {
	BPF_RB_NO_WAKEUP = 1ULL << 0,
	BPF_RB_FORCE_WAKEUP = 1ULL << 1,
	BPF_RB_AVAIL_DATA = 0,
	BPF_RB_RING_SIZE = 1,
	BPF_RB_CONS_POS = 2,
	BPF_RB_PROD_POS = 3,
};

#endif /* __VMLINUX_H__ */
