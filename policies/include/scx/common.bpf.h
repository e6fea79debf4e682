/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What policies of the sched_ext tools include first: the kernel's types, its functions, and the
 * macros that such sources are written with. Written for runslice, so that these sources compile
 * without a kernel's headers. Names and effects are those of tools/sched_ext of Linux 6.18 to 7.3.
 */
#ifndef __SCX_COMMON_BPF_H
#define __SCX_COMMON_BPF_H

#include <vmlinux.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include <asm-generic/errno.h>

/* ---- Constants of the kernel that its types do not carry ---- */

#define PF_IDLE 0x00000002
#define PF_EXITING 0x00000004
#define PF_IO_WORKER 0x00000010
#define PF_WQ_WORKER 0x00000020
#define PF_KCOMPACTD 0x00010000
#define PF_KSWAPD 0x00020000
#define PF_KTHREAD 0x00200000
#define CLOCK_MONOTONIC 1
#define CLOCK_BOOTTIME 7
#define NUMA_NO_NODE (-1)

extern int LINUX_KERNEL_VERSION __kconfig;
extern const char CONFIG_CC_VERSION_TEXT[64] __kconfig __weak;
extern const char CONFIG_LOCALVERSION[64] __kconfig __weak;

/* ---- Callbacks and their table ---- */

#define BPF_STRUCT_OPS(name, args...) SEC("struct_ops/" #name) BPF_PROG(name, ##args)
#define BPF_STRUCT_OPS_SLEEPABLE(name, args...) SEC("struct_ops.s/" #name) BPF_PROG(name, ##args)
#define SCX_OPS_DEFINE(table, members...)				\
	SEC(".struct_ops.link") struct sched_ext_ops table = { members }
#define SCX_OPS_CID_DEFINE(table, members...)				\
	SEC(".struct_ops.link") struct sched_ext_ops_cid table = { members }

/* The iterator of the loop around, for functions that want it. */
#define BPF_FOR_EACH_ITER (&___it)

/* ---- Messages ---- */

#define SCX_STRINGIFY(x) #x
#define SCX_TOSTRING(x) SCX_STRINGIFY(x)

static inline __attribute__((format(printf, 1, 2))) void ___scx_check_format(const char *fmt, ...)
{
}

/* Calls `function` with a format and its arguments as words. An empty array would be refused. */
#define ___scx_formatted(function, before, fmt, args...) ({		\
	static char ___fmt[] = fmt;					\
	unsigned long long ___param[___bpf_narg(args) ?: 1] = {};	\
	_Pragma("GCC diagnostic push")					\
	_Pragma("GCC diagnostic ignored \"-Wint-conversion\"")		\
	___bpf_fill(___param, args);					\
	_Pragma("GCC diagnostic pop")					\
	function(before ___fmt, ___param, sizeof(___param));		\
	___scx_check_format(fmt, ##args);				\
})
#define ___scx_nothing
#define ___scx_code(code) code,

#define scx_bpf_exit(code, fmt, args...) ({				\
	s64 ___code = (code);						\
	___scx_formatted(scx_bpf_exit_bstr, ___scx_code(___code), fmt, ##args);	\
})
#define scx_bpf_error(fmt, args...)					\
	___scx_formatted(scx_bpf_error_bstr, ___scx_nothing,		\
			 __FILE__ ":" SCX_TOSTRING(__LINE__) ": " fmt, ##args)
#define scx_bpf_sub_kill(cgroup, fmt, args...) ({			\
	u64 ___cgroup = (cgroup);					\
	___scx_formatted(scx_bpf_sub_kill_bstr, ___scx_code(___cgroup), fmt, ##args);	\
})
#define scx_bpf_dump(fmt, args...)					\
	___scx_formatted(scx_bpf_dump_bstr, ___scx_nothing, fmt, ##args)
#define scx_bpf_dump_header()						\
	scx_bpf_dump("kernel: %d.%d.%d %s\ncc: %s\n",			\
		     LINUX_KERNEL_VERSION >> 16, LINUX_KERNEL_VERSION >> 8 & 0xFF,	\
		     LINUX_KERNEL_VERSION & 0xFF, CONFIG_LOCALVERSION, CONFIG_CC_VERSION_TEXT)

/* A counter of scx_bpf_events(); 0 where the kernel has none of that name. */
#define scx_read_event(events, name)					\
	(bpf_core_field_exists((events)->name) ? (events)->name : 0)

/* ---- Variables and their bounds ---- */

#define RESIZABLE_ARRAY(section, array) array[1] SEC("." #section "." #array)
#define private(name) SEC(".data." #name) __hidden __attribute__((aligned(8)))
#define __contains(name, node) __attribute__((btf_decl_tag("contains:" #name ":" #node)))
#define __sink(value) asm volatile("" : "+g"(value))

/* `offset` behind `base` if it is at most `most`, else NULL, so that a verifier sees the bound. */
#define ___scx_bounded(base, offset, most, how)				\
	asm volatile("if %0 <= %[max] goto +2\n"			\
		     "%0 = 0\n"						\
		     "goto +1\n"					\
		     "%0 += %1\n"					\
		     : "+r"(offset)					\
		     : "r"(base), [max] how(most))

#define MEMBER_VPTR(base, member) (typeof((base) member) *)({		\
	u64 ___begin = (u64)&(base);					\
	u64 ___offset = (u64)&((base) member) - ___begin;		\
	_Static_assert(sizeof(base) >= sizeof((base) member),		\
		       "the base is smaller than its member: is it a pointer?");	\
	___scx_bounded(___begin, ___offset, sizeof(base) - sizeof((base) member), "i");	\
	___offset;							\
})
#define ARRAY_ELEM_PTR(array, i, n) (typeof(array[i]) *)({		\
	u64 ___begin = (u64)array;					\
	u64 ___offset = (u64)&(array[i]) - ___begin;			\
	___scx_bounded(___begin, ___offset, sizeof(array[0]) * ((n) - 1), "r");	\
	___offset;							\
})

#ifndef likely
#define likely(x) __builtin_expect(!!(x), 1)
#endif
#ifndef unlikely
#define unlikely(x) __builtin_expect(!!(x), 0)
#endif
#ifndef __maybe_unused
#define __maybe_unused __attribute__((unused))
#endif

#define READ_ONCE(x) (*(const volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, value) (*(volatile typeof(x) *)&(x) = (value))

/* Bytes of a structure whose last array has so many elements. */
#define struct_size_t(type, member, count)				\
	(__builtin_offsetof(type, member) + sizeof(((type *)0)->member[0]) * (count))

/* ---- Objects, trees and lists of a program's own ---- */

#define bpf_obj_new(type) ((type *)bpf_obj_new_impl(bpf_core_type_id_local(type), NULL))
#define bpf_obj_drop(object) bpf_obj_drop_impl(object, NULL)
#define bpf_refcount_acquire(object) bpf_refcount_acquire_impl(object, NULL)
#define bpf_rbtree_add(root, node, less) bpf_rbtree_add_impl(root, node, less, NULL, 0)
#define bpf_list_push_front(head, node) bpf_list_push_front_impl(head, node, NULL, 0)
#define bpf_list_push_back(head, node) bpf_list_push_back_impl(head, node, NULL, 0)

/* ---- Masks ---- */

static __always_inline const struct cpumask *cast_mask(struct bpf_cpumask *mask)
{
	return (const struct cpumask *)mask;
}

/*
 * Whether a task may not move. Programs run with migration disabled, so that the count of the task
 * that is running now is at least 1.
 */
static inline bool is_migration_disabled(const struct task_struct *p)
{
	if (p->migration_disabled == 1)
		return bpf_get_current_task_btf() != p;
	return p->migration_disabled;
}

/* ---- Time, which wraps ---- */

static inline s64 time_delta(u64 after, u64 before)
{
	s64 delta = after - before;

	return delta > 0 ? delta : 0;
}

static inline bool time_after(u64 a, u64 b)
{
	return (s64)(a - b) > 0;
}

static inline bool time_before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

static inline bool time_after_eq(u64 a, u64 b)
{
	return (s64)(a - b) >= 0;
}

static inline bool time_before_eq(u64 a, u64 b)
{
	return (s64)(a - b) <= 0;
}

static inline bool time_in_range(u64 a, u64 from, u64 to)
{
	return time_after_eq(a, from) && time_before_eq(a, to);
}

static inline bool time_in_range_open(u64 a, u64 from, u64 to)
{
	return time_after_eq(a, from) && time_before(a, to);
}

/* ---- Numbers ---- */

/* A weight of 100 is nice 0. */
static inline u64 scale_by_task_weight(const struct task_struct *p, u64 value)
{
	return value * p->scx.weight / 100;
}

static inline u64 scale_by_task_weight_inverse(const struct task_struct *p, u64 value)
{
	return value * 100 / p->scx.weight;
}

/* The place of the highest bit, from 0; 0 for 0. */
static inline u32 log2_u32(u32 v)
{
	u32 place = 0;

	for (int step = 16; step; step >>= 1) {
		if (v >> step) {
			v >>= step;
			place += step;
		}
	}
	return place;
}

static inline u32 log2_u64(u64 v)
{
	u32 high = v >> 32;

	return high ? log2_u32(high) + 33 : log2_u32(v) + 1;
}

static inline u64 get_prandom_u64(void)
{
	return (u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32();
}

#include <scx/user_exit_info.bpf.h>
#include <scx/enums.bpf.h>
#include <scx/compat.bpf.h>
#ifdef __BPF_FEATURE_ADDR_SPACE_CAST
#include <scx/cid.bpf.h>
#endif

#endif /* __SCX_COMMON_BPF_H */
