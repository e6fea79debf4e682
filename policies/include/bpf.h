/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What C needs to become a BPF object: base types, sections, maps, helpers,
 * relocatable constants. Knows no scheduling and includes nothing, so that a
 * policy builds without the headers of any kernel or library.
 */
#ifndef RUNSLICE_BPF_H
#define RUNSLICE_BPF_H

/* ---- Base types ---- */

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long long s64;
typedef _Bool bool;

#define true 1
#define false 0
#define NULL ((void *)0)

#define NSEC_PER_USEC 1000ULL
#define NSEC_PER_MSEC 1000000ULL
#define NSEC_PER_SEC 1000000000ULL

/* Errors are returned negative (asm-generic/errno-base.h). */
#define ENOENT 2
#define EIO 5
#define ENOMEM 12
#define EINVAL 22

#define min(a, b) ({ typeof(a) a_ = (a); typeof(b) b_ = (b); a_ < b_ ? a_ : b_; })
#define max(a, b) ({ typeof(a) a_ = (a); typeof(b) b_ = (b); a_ > b_ ? a_ : b_; })
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Keeps the compiler from using what it knows of a variable's value. */
#define opaque(variable) asm volatile("" : "+r"(variable))

/* ---- Sections and attributes ---- */

#define SEC(name) __attribute__((section(name), used))
#define __weak __attribute__((weak))
#define __ksym __attribute__((section(".ksyms")))
#define __hidden __attribute__((visibility("hidden")))
#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline))
#define __maybe_unused __attribute__((unused))
#define __decl_tag(text) __attribute__((btf_decl_tag(text)))

/* A type of the kernel: the loader finds its fields by name. */
#define __core __attribute__((preserve_access_index))

/* Kernel functions demand a licence that is compatible with the GPL. */
#define BPF_LICENSE() char runslice_license[] SEC("license") = "GPL"

/* The right by which a policy shares the CPUs: weight, cgroup, rank, deadline or none. */
#define POLICY_RIGHT(word) char runslice_right[] SEC("right") = word

/* ---- Constants that differ between kernels ---- */

/*
 * The value that the running kernel gives to `value` of `type`. The second
 * argument of the builtin asks for the value, not for its existence.
 */
#define core_enum(type, value) \
	((u64)__builtin_preserve_enum_value(*(enum type *)value, 1))

/* Whether the running kernel has a function that was declared weak. */
#define exists(function) (!!(void *)&(function))

/* ---- Maps ---- */

/* How a map says a number and a type: through the type of a field. */
#define __uint(name, value) int (*name)[value]
#define __type(name, value) typeof(value) *name

/* enum bpf_map_type (uapi/linux/bpf.h). */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_QUEUE = 22,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_EXIST = 2,
};

/* Task storage demands the first; the second makes an entry where none is. */
#define BPF_F_NO_PREALLOC (1U << 0)
#define BPF_LOCAL_STORAGE_GET_F_CREATE (1ULL << 0)

/* Storage that each task has one of. */
#define TASK_STORAGE(name, value_type)				\
	struct {						\
		__uint(type, BPF_MAP_TYPE_TASK_STORAGE);	\
		__uint(map_flags, BPF_F_NO_PREALLOC);		\
		__type(key, int);				\
		__type(value, value_type);			\
	} name SEC(".maps")

/* An array of `entries` values. */
#define ARRAY(name, value_type, entries)			\
	struct {						\
		__uint(type, BPF_MAP_TYPE_ARRAY);		\
		__uint(max_entries, entries);			\
		__type(key, u32);				\
		__type(value, value_type);			\
	} name SEC(".maps")

/* A lock in a map's value. No function is called between lock and unlock. */
struct bpf_spin_lock {
	u32 val;
};

/* A timer in a map's value. It belongs to the kernel, which stops it when the map goes. */
struct bpf_timer {
	u64 opaque[2];
} __attribute__((aligned(8)));

/* The clock of a timer (uapi/linux/time.h); bpf_ktime_get_ns() reads it. */
#define CLOCK_MONOTONIC 1

/* ---- Helpers, by number (uapi/linux/bpf.h, ___BPF_FUNC_MAPPER) ---- */

struct task_struct;

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value,
					 u64 flags) = (void *)2;
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static long (*const bpf_trace_printk)(const char *fmt, u32 fmt_size, ...) = (void *)6;
static u32 (*const bpf_get_prandom_u32)(void) = (void *)7;
static u32 (*const bpf_get_smp_processor_id)(void) = (void *)8;
static u64 (*const bpf_get_current_pid_tgid)(void) = (void *)14;
static long (*const bpf_map_push_elem)(void *map, const void *value, u64 flags) = (void *)87;
static long (*const bpf_map_pop_elem)(void *map, void *value) = (void *)88;
static long (*const bpf_map_peek_elem)(void *map, void *value) = (void *)89;
static long (*const bpf_spin_lock)(struct bpf_spin_lock *lock) = (void *)93;
static long (*const bpf_spin_unlock)(struct bpf_spin_lock *lock) = (void *)94;
static long (*const bpf_probe_read_kernel)(void *dst, u32 size, const void *src) = (void *)113;
static long (*const bpf_probe_read_kernel_str)(void *dst, u32 size,
					       const void *src) = (void *)115;
static void *(*const bpf_task_storage_get)(void *map, struct task_struct *p, void *value,
					   u64 flags) = (void *)156;
static long (*const bpf_task_storage_delete)(void *map, struct task_struct *p) = (void *)157;
static struct task_struct *(*const bpf_get_current_task_btf)(void) = (void *)158;
static long (*const bpf_timer_init)(struct bpf_timer *timer, void *map,
				    u64 flags) = (void *)169;
static long (*const bpf_timer_set_callback)(struct bpf_timer *timer, void *fn) = (void *)170;
static long (*const bpf_timer_start)(struct bpf_timer *timer, u64 ns, u64 flags) = (void *)171;
static long (*const bpf_timer_cancel)(struct bpf_timer *timer) = (void *)172;
static long (*const bpf_trace_vprintk)(const char *fmt, u32 fmt_size, const void *data,
				       u32 data_len) = (void *)177;
static void *(*const bpf_map_lookup_percpu_elem)(void *map, const void *key,
						 u32 cpu) = (void *)195;

/* Prints a line to the trace buffer; at most three arguments. */
#define bpf_printk(fmt, args...) ({				\
	static const char line_[] = fmt;			\
	bpf_trace_printk(line_, sizeof(line_), ##args);		\
})

/* ---- Loops ---- */

struct bpf_iter_num {
	u64 opaque;
} __attribute__((aligned(8)));

extern __weak int bpf_iter_num_new(struct bpf_iter_num *it, int begin, int end) __ksym;
extern __weak int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym;
extern __weak void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym;

/*
 * Counts `i` from `begin` up to `end`, `end` excluded. A verifier follows the body once instead of
 * once a number. Leaving the loop in any way closes the iterator; see for_each_queued for the
 * second variable.
 */
#define for_each_number(i, begin, end)						\
	for (struct bpf_iter_num it_##i						\
		__attribute__((cleanup(bpf_iter_num_destroy))),			\
	     *opened_##i __attribute__((unused)) =				\
		(bpf_iter_num_new(&it_##i, begin, end),				\
		 (void)bpf_iter_num_destroy, NULL);				\
	     ({ int *at_ = bpf_iter_num_next(&it_##i); if (at_) i = *at_; (void)i; at_; });)

/* ---- Callbacks ---- */

/*
 * A kernel passes a callback's arguments as an array of 64-bit words. CALLBACK
 * defines the program that unpacks them and the function with the arguments'
 * real types, whose body follows. The words go through `void *`, which C turns
 * into integers and pointers alike; for that one line the warning is off.
 */
#define WORDS_0()
#define WORDS_1() , (void *)words[0]
#define WORDS_2() WORDS_1(), (void *)words[1]
#define WORDS_3() WORDS_2(), (void *)words[2]
#define WORDS_4() WORDS_3(), (void *)words[3]
#define PICK_5TH(a, b, c, d, e, picked, ...) picked
#define WORDS(args...) \
	PICK_5TH(0, ##args, WORDS_4, WORDS_3, WORDS_2, WORDS_1, WORDS_0)()

#define CALLBACK(name, args...)						\
name(u64 *words);							\
static __always_inline typeof(name(0)) body_of_##name(u64 *words, ##args);	\
typeof(name(0)) name(u64 *words)					\
{									\
	_Pragma("GCC diagnostic push")					\
	_Pragma("GCC diagnostic ignored \"-Wint-conversion\"")		\
	return body_of_##name(words WORDS(args));			\
	_Pragma("GCC diagnostic pop")					\
}									\
static __always_inline typeof(name(0)) body_of_##name(u64 *words, ##args)

/* A callback of a table, and one that may sleep. The type of its result stands before it. */
#define OP(name, args...) SEC("struct_ops/" #name) CALLBACK(name, ##args)
#define OP_SLEEPABLE(name, args...) SEC("struct_ops.s/" #name) CALLBACK(name, ##args)

#endif /* RUNSLICE_BPF_H */
