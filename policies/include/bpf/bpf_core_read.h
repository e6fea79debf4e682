/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Reading the kernel's fields wherever they lie, and asking what a kernel has. The numbers are the
 * kinds of questions that clang's builtins take (LLVM, lib/Target/BPF/BPFCORE.h).
 */
#ifndef __BPF_CORE_READ_H__
#define __BPF_CORE_READ_H__

#include <bpf/bpf_helpers.h>

#define bpf_core_field_exists(field...) __builtin_preserve_field_info(___bpf_field(field), 2)
#define bpf_core_field_size(field...) __builtin_preserve_field_info(___bpf_field(field), 1)
#define bpf_core_field_offset(field...) __builtin_preserve_field_info(___bpf_field(field), 0)
#define ___bpf_field1(field) (field)
#define ___bpf_field2(type, field) (((typeof(type) *)0)->field)
#define ___bpf_field(args...) ___bpf_apply(___bpf_field, ___bpf_narg(args))(args)

#define bpf_core_type_id_local(type) __builtin_btf_type_id(*(typeof(type) *)0, 0)
#define bpf_core_type_id_kernel(type) __builtin_btf_type_id(*(typeof(type) *)0, 1)
#define bpf_core_type_exists(type) __builtin_preserve_type_info(*(typeof(type) *)0, 0)
#define bpf_core_type_size(type) __builtin_preserve_type_info(*(typeof(type) *)0, 1)
#define bpf_core_type_matches(type) __builtin_preserve_type_info(*(typeof(type) *)0, 2)
#define bpf_core_enum_value_exists(type, value)				\
	__builtin_preserve_enum_value(*(typeof(type) *)value, 0)
#define bpf_core_enum_value(type, value)				\
	__builtin_preserve_enum_value(*(typeof(type) *)value, 1)

#define bpf_core_cast(pointer, type)					\
	((typeof(type) *)bpf_rdonly_cast((pointer), bpf_core_type_id_kernel(type)))
extern void *bpf_rdonly_cast(const void *obj, unsigned int btf_id) __ksym __weak;

#define bpf_core_read(dst, size, src)					\
	bpf_probe_read_kernel(dst, size, (const void *)__builtin_preserve_access_index(src))
#define bpf_core_read_str(dst, size, src)				\
	bpf_probe_read_kernel_str(dst, size, (const void *)__builtin_preserve_access_index(src))

/* Follows pointers, at most five: BPF_CORE_READ(p, mm, mm_id) is p->mm->mm_id. */
#define ___core_step(type, from, field) ({				\
	typeof(((type)0)->field) ___value;				\
	bpf_core_read(&___value, sizeof(___value), &((type)(from))->field);	\
	___value;							\
})
#define ___core_read2(s, a) ___core_step(typeof(s), s, a)
#define ___core_read3(s, a, b)						\
	___core_step(typeof((s)->a), ___core_read2(s, a), b)
#define ___core_read4(s, a, b, c)					\
	___core_step(typeof((s)->a->b), ___core_read3(s, a, b), c)
#define ___core_read5(s, a, b, c, d)					\
	___core_step(typeof((s)->a->b->c), ___core_read4(s, a, b, c), d)
#define ___core_read6(s, a, b, c, d, e)					\
	___core_step(typeof((s)->a->b->c->d), ___core_read5(s, a, b, c, d), e)
#define BPF_CORE_READ(s, fields...)					\
	___bpf_apply(___core_read, ___bpf_narg(s, ##fields))(s, ##fields)

#endif /* __BPF_CORE_READ_H__ */
