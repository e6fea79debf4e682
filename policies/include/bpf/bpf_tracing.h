/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Programs with typed arguments. A kernel passes them as an array of 64-bit words; BPF_PROG defines
 * the program that unpacks them and the function whose body follows.
 */
#ifndef __BPF_TRACING_H__
#define __BPF_TRACING_H__

#include <bpf/bpf_helpers.h>

#define ___bpf_word0() ctx
#define ___bpf_word1(x) ctx, (void *)ctx[0]
#define ___bpf_word2(x, rest...) ___bpf_word1(x), (void *)ctx[1]
#define ___bpf_word3(x, rest...) ___bpf_word2(x), (void *)ctx[2]
#define ___bpf_word4(x, rest...) ___bpf_word3(x), (void *)ctx[3]
#define ___bpf_word5(x, rest...) ___bpf_word4(x), (void *)ctx[4]
#define ___bpf_word6(x, rest...) ___bpf_word5(x), (void *)ctx[5]
#define ___bpf_words(args...) ___bpf_apply(___bpf_word, ___bpf_narg(args))(args)

#define BPF_PROG(name, args...)						\
name(unsigned long long *ctx);						\
static __always_inline typeof(name(0))					\
____##name(unsigned long long *ctx, ##args);				\
typeof(name(0)) name(unsigned long long *ctx)				\
{									\
	_Pragma("GCC diagnostic push")					\
	_Pragma("GCC diagnostic ignored \"-Wint-conversion\"")		\
	return ____##name(___bpf_words(args));				\
	_Pragma("GCC diagnostic pop")					\
}									\
static __always_inline typeof(name(0))					\
____##name(unsigned long long *ctx, ##args)

#endif /* __BPF_TRACING_H__ */
