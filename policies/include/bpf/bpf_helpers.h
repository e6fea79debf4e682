/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sections, maps, helpers and loops under the names that the world's BPF sources use. Helpers are
 * called by number (uapi/linux/bpf.h, ___BPF_FUNC_MAPPER); here are those that a policy may call.
 */
#ifndef __BPF_HELPERS__
#define __BPF_HELPERS__

#define SEC(name)						\
	_Pragma("GCC diagnostic push")				\
	_Pragma("GCC diagnostic ignored \"-Wignored-attributes\"")	\
	__attribute__((section(name), used))			\
	_Pragma("GCC diagnostic pop")

#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline))
#define __weak __attribute__((weak))
#define __hidden __attribute__((visibility("hidden")))
#define __kconfig __attribute__((section(".kconfig")))
#define __ksym __attribute__((section(".ksyms")))
#define __kptr __attribute__((btf_type_tag("kptr")))
#define __kptr_untrusted __attribute__((btf_type_tag("kptr_untrusted")))
#define __percpu_kptr __attribute__((btf_type_tag("percpu_kptr")))
#define __uptr __attribute__((btf_type_tag("uptr")))
#define __arg_ctx __attribute__((btf_decl_tag("arg:ctx")))
#define __arg_nonnull __attribute__((btf_decl_tag("arg:nonnull")))
#define __arg_nullable __attribute__((btf_decl_tag("arg:nullable")))
#define __arg_trusted __attribute__((btf_decl_tag("arg:trusted")))
#define __arg_untrusted __attribute__((btf_decl_tag("arg:untrusted")))
#define __arg_arena __attribute__((btf_decl_tag("arg:arena")))

#ifndef NULL
#define NULL ((void *)0)
#endif
#define offsetof(type, member) __builtin_offsetof(type, member)
#define container_of(pointer, type, member)				\
	((type *)((void *)(pointer) - offsetof(type, member)))
#define barrier() asm volatile("" ::: "memory")
#define barrier_var(variable) asm volatile("" : "+r"(variable))

/* How a map says a number, a type, a size of 64 bits, and the maps or functions that it holds. */
#define __uint(name, value) int (*name)[value]
#define __type(name, value) typeof(value) *name
#define __array(name, value) typeof(value) *name[]
#define BPF_JOINED(a, b) a##b
#define BPF_JOIN(a, b) BPF_JOINED(a, b)
#define __ulong(name, value)						\
	enum { BPF_JOIN(__unique_value, __COUNTER__) = value } name

#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + ((c) > 255 ? 255 : (c)))

enum libbpf_pin_type {
	LIBBPF_PIN_NONE,
	LIBBPF_PIN_BY_NAME,
};

enum libbpf_tristate {
	TRI_NO = 0,
	TRI_YES = 1,
	TRI_MODULE = 2,
};

/* ---- Helpers ---- */

struct task_struct;
struct cgroup;
struct bpf_spin_lock;
struct bpf_timer;
struct bpf_perf_event_value;

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value,
					 unsigned long long flags) = (void *)2;
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static long (*const bpf_probe_read)(void *dst, unsigned int size, const void *src) = (void *)4;
static unsigned long long (*const bpf_ktime_get_ns)(void) = (void *)5;
static long (*const bpf_trace_printk)(const char *fmt, unsigned int fmt_size,
				      ...) = (void *)6;
static unsigned int (*const bpf_get_prandom_u32)(void) = (void *)7;
static unsigned int (*const bpf_get_smp_processor_id)(void) = (void *)8;
static unsigned long long (*const bpf_get_current_pid_tgid)(void) = (void *)14;
static unsigned long long (*const bpf_get_current_uid_gid)(void) = (void *)15;
static long (*const bpf_get_current_comm)(void *buf, unsigned int size) = (void *)16;
static struct task_struct *(*const bpf_get_current_task)(void) = (void *)35;
static long (*const bpf_get_numa_node_id)(void) = (void *)42;
static unsigned long long (*const bpf_get_current_cgroup_id)(void) = (void *)80;
static long (*const bpf_map_push_elem)(void *map, const void *value,
				       unsigned long long flags) = (void *)87;
static long (*const bpf_map_pop_elem)(void *map, void *value) = (void *)88;
static long (*const bpf_map_peek_elem)(void *map, void *value) = (void *)89;
static long (*const bpf_spin_lock)(struct bpf_spin_lock *lock) = (void *)93;
static long (*const bpf_spin_unlock)(struct bpf_spin_lock *lock) = (void *)94;
static long (*const bpf_probe_read_user)(void *dst, unsigned int size,
					 const void *src) = (void *)112;
static long (*const bpf_probe_read_kernel)(void *dst, unsigned int size,
					   const void *src) = (void *)113;
static long (*const bpf_probe_read_user_str)(void *dst, unsigned int size,
					     const void *src) = (void *)114;
static long (*const bpf_probe_read_kernel_str)(void *dst, unsigned int size,
					       const void *src) = (void *)115;
static unsigned long long (*const bpf_jiffies64)(void) = (void *)118;
static unsigned long long (*const bpf_ktime_get_boot_ns)(void) = (void *)125;
static long (*const bpf_ringbuf_output)(void *ringbuf, void *data, unsigned long long size,
					unsigned long long flags) = (void *)130;
static void *(*const bpf_ringbuf_reserve)(void *ringbuf, unsigned long long size,
					  unsigned long long flags) = (void *)131;
static void (*const bpf_ringbuf_submit)(void *data, unsigned long long flags) = (void *)132;
static void (*const bpf_ringbuf_discard)(void *data, unsigned long long flags) = (void *)133;
static unsigned long long (*const bpf_ringbuf_query)(void *ringbuf,
						     unsigned long long flags) = (void *)134;
static void *(*const bpf_per_cpu_ptr)(const void *variable, unsigned int cpu) = (void *)153;
static void *(*const bpf_this_cpu_ptr)(const void *variable) = (void *)154;
static void *(*const bpf_task_storage_get)(void *map, struct task_struct *task, void *value,
					   unsigned long long flags) = (void *)156;
static long (*const bpf_task_storage_delete)(void *map, struct task_struct *task) = (void *)157;
static struct task_struct *(*const bpf_get_current_task_btf)(void) = (void *)158;
static unsigned long long (*const bpf_ktime_get_coarse_ns)(void) = (void *)160;
static long (*const bpf_for_each_map_elem)(void *map, void *callback, void *context,
					   unsigned long long flags) = (void *)164;
static long (*const bpf_snprintf)(char *str, unsigned int size, const char *fmt,
				  unsigned long long *data,
				  unsigned int data_len) = (void *)165;
static long (*const bpf_timer_init)(struct bpf_timer *timer, void *map,
				    unsigned long long flags) = (void *)169;
static long (*const bpf_timer_set_callback)(struct bpf_timer *timer, void *fn) = (void *)170;
static long (*const bpf_timer_start)(struct bpf_timer *timer, unsigned long long ns,
				     unsigned long long flags) = (void *)171;
static long (*const bpf_timer_cancel)(struct bpf_timer *timer) = (void *)172;
static long (*const bpf_trace_vprintk)(const char *fmt, unsigned int fmt_size, const void *data,
				       unsigned int data_len) = (void *)177;
static long (*const bpf_loop)(unsigned int count, void *callback, void *context,
			      unsigned long long flags) = (void *)181;
static long (*const bpf_strncmp)(const char *s1, unsigned int size, const char *s2) = (void *)182;
static void *(*const bpf_kptr_xchg)(void *place, void *pointer) = (void *)194;
static void *(*const bpf_map_lookup_percpu_elem)(void *map, const void *key,
						 unsigned int cpu) = (void *)195;
static long (*const bpf_user_ringbuf_drain)(void *map, void *callback, void *context,
					    unsigned long long flags) = (void *)209;
static void *(*const bpf_cgrp_storage_get)(void *map, struct cgroup *cgroup, void *value,
					   unsigned long long flags) = (void *)210;
static long (*const bpf_cgrp_storage_delete)(void *map, struct cgroup *cgroup) = (void *)211;

/* ---- Lists of arguments, as words of 64 bits ---- */

#define ___bpf_nth(a, b, c, d, e, f, g, h, i, j, k, l, m, n, ...) n
#define ___bpf_narg(...)							\
	___bpf_nth(_, ##__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define ___bpf_concat(a, b) a##b
#define ___bpf_apply(fn, n) ___bpf_concat(fn, n)
#define ___bpf_fill0(words, at, x)
#define ___bpf_fill1(words, at, x) words[at] = x;
#define ___bpf_fill2(words, at, x, rest...) words[at] = x; ___bpf_fill1(words, at + 1, rest)
#define ___bpf_fill3(words, at, x, rest...) words[at] = x; ___bpf_fill2(words, at + 1, rest)
#define ___bpf_fill4(words, at, x, rest...) words[at] = x; ___bpf_fill3(words, at + 1, rest)
#define ___bpf_fill5(words, at, x, rest...) words[at] = x; ___bpf_fill4(words, at + 1, rest)
#define ___bpf_fill6(words, at, x, rest...) words[at] = x; ___bpf_fill5(words, at + 1, rest)
#define ___bpf_fill7(words, at, x, rest...) words[at] = x; ___bpf_fill6(words, at + 1, rest)
#define ___bpf_fill8(words, at, x, rest...) words[at] = x; ___bpf_fill7(words, at + 1, rest)
#define ___bpf_fill9(words, at, x, rest...) words[at] = x; ___bpf_fill8(words, at + 1, rest)
#define ___bpf_fill10(words, at, x, rest...) words[at] = x; ___bpf_fill9(words, at + 1, rest)
#define ___bpf_fill11(words, at, x, rest...) words[at] = x; ___bpf_fill10(words, at + 1, rest)
#define ___bpf_fill12(words, at, x, rest...) words[at] = x; ___bpf_fill11(words, at + 1, rest)
#define ___bpf_fill(words, args...)					\
	___bpf_apply(___bpf_fill, ___bpf_narg(args))(words, 0, args)

/* Formats `args` into `out`, as printf does. */
#define BPF_SNPRINTF(out, out_size, fmt, args...) ({			\
	static const char ___format[] = fmt;				\
	unsigned long long ___words[___bpf_narg(args) ?: 1] = {};	\
	_Pragma("GCC diagnostic push")					\
	_Pragma("GCC diagnostic ignored \"-Wint-conversion\"")		\
	___bpf_fill(___words, args);					\
	_Pragma("GCC diagnostic pop")					\
	bpf_snprintf(out, out_size, ___format, ___words, sizeof(___words));	\
})

/* Prints a line to the trace buffer; up to three arguments go without an array. */
#define ___bpf_print_few(fmt, args...) ({				\
	static const char ___format[] = fmt;				\
	bpf_trace_printk(___format, sizeof(___format), ##args);		\
})
#define ___bpf_print_many(fmt, args...) ({				\
	static const char ___format[] = fmt;				\
	unsigned long long ___words[___bpf_narg(args) ?: 1] = {};	\
	_Pragma("GCC diagnostic push")					\
	_Pragma("GCC diagnostic ignored \"-Wint-conversion\"")		\
	___bpf_fill(___words, args);					\
	_Pragma("GCC diagnostic pop")					\
	bpf_trace_vprintk(___format, sizeof(___format), ___words, sizeof(___words));	\
})
#define ___bpf_print_which(...)						\
	___bpf_nth(_, ##__VA_ARGS__, ___bpf_print_many, ___bpf_print_many,	\
		   ___bpf_print_many, ___bpf_print_many, ___bpf_print_many,	\
		   ___bpf_print_many, ___bpf_print_many, ___bpf_print_many,	\
		   ___bpf_print_many, ___bpf_print_few, ___bpf_print_few,	\
		   ___bpf_print_few, ___bpf_print_few)
#define bpf_printk(fmt, args...) ___bpf_print_which(args)(fmt, ##args)

/* ---- Loops, each an iterator that is closed however the loop is left ---- */

struct bpf_iter_num;
extern int bpf_iter_num_new(struct bpf_iter_num *it, int begin, int end) __weak __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __weak __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __weak __ksym;

/*
 * The second variable opens the iterator, and names the closing function once in plain code:
 * clang records no type for a function that is named in the attribute alone.
 */
#define bpf_for_each(type, item, args...)					\
	for (struct bpf_iter_##type ___it					\
		__attribute__((aligned(8), cleanup(bpf_iter_##type##_destroy))),	\
	     *___opened __attribute__((unused)) =				\
		(bpf_iter_##type##_new(&___it, ##args),				\
		 (void)bpf_iter_##type##_destroy, (void *)0);			\
	     ((item) = bpf_iter_##type##_next(&___it));)

#define bpf_for(i, begin, end)							\
	for (struct bpf_iter_num ___it						\
		__attribute__((aligned(8), cleanup(bpf_iter_num_destroy))),	\
	     *___opened __attribute__((unused)) =				\
		(bpf_iter_num_new(&___it, (begin), (end)),			\
		 (void)bpf_iter_num_destroy, (void *)0);			\
	     ({ int *___at = bpf_iter_num_next(&___it);				\
		___at ? ((i) = *___at, 1) : 0; });)

#define bpf_repeat(times)							\
	for (struct bpf_iter_num ___it						\
		__attribute__((aligned(8), cleanup(bpf_iter_num_destroy))),	\
	     *___opened __attribute__((unused)) =				\
		(bpf_iter_num_new(&___it, 0, (times)),				\
		 (void)bpf_iter_num_destroy, (void *)0);			\
	     bpf_iter_num_next(&___it);)

#endif /* __BPF_HELPERS__ */
