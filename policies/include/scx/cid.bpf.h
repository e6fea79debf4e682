/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Masks of topological CPU numbers (cids) in an arena, as policies of the sched_ext tools use them.
 * Written for runslice; names and effects are those of tools/sched_ext of Linux 7.3. Included by
 * scx/common.bpf.h where the compiler knows arenas.
 */
#ifndef __SCX_CID_BPF_H
#define __SCX_CID_BPF_H

#include <scx/bpf_arena_common.bpf.h>

#ifndef BIT_U64
#define BIT_U64(nr) (1ULL << (nr))
#endif
#ifndef GENMASK_U64
#define GENMASK_U64(high, low) ((~0ULL << (low)) & (~0ULL >> (63 - (high))))
#endif

/* Words of the longest mask that loops go through. */
#ifndef CMASK_MAX_WORDS
#define CMASK_MAX_WORDS 129
#endif

/* Words that a mask of so many cids has, wherever it begins. */
#define CMASK_NR_WORDS(nr_cids) ((u32)(((u64)(nr_cids) + 63) / 64 + 1))

/* No name of a type: a loader would look for that type in the kernel. */
#define ___cmask struct scx_cmask __arena

static __always_inline bool __cmask_contains(u32 cid, const ___cmask *m)
{
	return cid >= m->base && cid - m->base < m->nr_cids;
}

static __always_inline u64 __arena *__cmask_word(u32 cid, const ___cmask *m)
{
	return (u64 __arena *)&m->bits[cid / 64 - m->base / 64];
}

/* Words that hold bits of the range. */
static __always_inline u32 ___cmask_used(const ___cmask *m)
{
	return m->nr_cids ? (m->base + m->nr_cids - 1) / 64 - m->base / 64 + 1 : 0;
}

static __always_inline u32 ___cmask_end(const ___cmask *m)
{
	return m->base + m->nr_cids;
}

/* ---- Making one ---- */

static __always_inline void __cmask_init(___cmask *m, u32 base, u32 nr_cids, u32 alloc_cids)
{
	u32 words = CMASK_NR_WORDS(alloc_cids), i;

	if (nr_cids > alloc_cids) {
		scx_bpf_error("a cmask of %u cids has no room for %u", alloc_cids, nr_cids);
		return;
	}
	m->base = base;
	m->nr_cids = nr_cids;
	m->alloc_words = words;
	bpf_for(i, 0, CMASK_MAX_WORDS) {
		if (i >= words)
			break;
		m->bits[i] = 0;
	}
}

static __always_inline void cmask_init(___cmask *m, u32 base, u32 nr_cids)
{
	__cmask_init(m, base, nr_cids, nr_cids);
}

/* Another range in the same words; what its bits are is left open but for those beside it. */
static __always_inline void cmask_reframe(___cmask *m, u32 base, u32 nr_cids)
{
	if (CMASK_NR_WORDS(nr_cids) > m->alloc_words) {
		scx_bpf_error("a cmask of %u words has no room for %u cids", m->alloc_words,
			      nr_cids);
		return;
	}
	if (nr_cids) {
		m->bits[0] = 0;
		m->bits[(base % 64 + nr_cids - 1) / 64] = 0;
	}
	m->base = base;
	m->nr_cids = nr_cids;
}

static __always_inline void cmask_zero(___cmask *m)
{
	u32 words = CMASK_NR_WORDS(m->nr_cids), i;

	bpf_for(i, 0, CMASK_MAX_WORDS) {
		if (i >= words)
			break;
		m->bits[i] = 0;
	}
}

/* ---- One bit; without `__` atomically ---- */

static __always_inline bool cmask_test(u32 cid, const ___cmask *m)
{
	return __cmask_contains(cid, m) && *__cmask_word(cid, m) & BIT_U64(cid % 64);
}

/* Turns of a loop that compares and exchanges: only a lock held for seconds uses them up. */
#define CMASK_CAS_TRIES (1U << 23)

/* Sets the bit or clears it; whether it was set. */
static __always_inline bool ___cmask_exchange(u32 cid, ___cmask *m, bool set)
{
	u64 bit = BIT_U64(cid % 64), old, new;
	u64 __arena *word;
	u32 i;

	if (!__cmask_contains(cid, m))
		return false;
	word = __cmask_word(cid, m);
	bpf_for(i, 0, CMASK_CAS_TRIES) {
		old = *word;
		if (!(old & bit) == !set)
			return set;
		new = set ? old | bit : old & ~bit;
		if (__sync_val_compare_and_swap(word, old, new) == old)
			return !set;
	}
	scx_bpf_error("cid %u of a cmask was never free", cid);
	return false;
}

static __always_inline void cmask_set(u32 cid, ___cmask *m)
{
	___cmask_exchange(cid, m, true);
}

static __always_inline void cmask_clear(u32 cid, ___cmask *m)
{
	___cmask_exchange(cid, m, false);
}

static __always_inline bool cmask_test_and_set(u32 cid, ___cmask *m)
{
	return ___cmask_exchange(cid, m, true);
}

static __always_inline bool cmask_test_and_clear(u32 cid, ___cmask *m)
{
	return ___cmask_exchange(cid, m, false);
}

static __always_inline void __cmask_set(u32 cid, ___cmask *m)
{
	if (__cmask_contains(cid, m))
		*__cmask_word(cid, m) |= BIT_U64(cid % 64);
}

static __always_inline void __cmask_clear(u32 cid, ___cmask *m)
{
	if (__cmask_contains(cid, m))
		*__cmask_word(cid, m) &= ~BIT_U64(cid % 64);
}

static __always_inline bool __cmask_test_and_set(u32 cid, ___cmask *m)
{
	bool was = cmask_test(cid, m);

	__cmask_set(cid, m);
	return was;
}

static __always_inline bool __cmask_test_and_clear(u32 cid, ___cmask *m)
{
	bool was = cmask_test(cid, m);

	__cmask_clear(cid, m);
	return was;
}

/* ---- Two masks: only cids that are in the ranges of both are touched ---- */

/* The bits of word `at` (a multiple of 64) that stand for cids in `m`. */
static __always_inline u64 ___cmask_part(const ___cmask *m, u32 at)
{
	u32 end = ___cmask_end(m);
	u64 part = ~0ULL;

	if (at + 64 <= m->base || at >= end)
		return 0;
	if (at < m->base)
		part &= ~0ULL << (m->base - at);
	if (end < at + 64)
		part &= ~0ULL >> (at + 64 - end);
	return part;
}

/* What `m` has there; 0 outside. */
static __always_inline u64 ___cmask_bits(const ___cmask *m, u32 at)
{
	u64 part = ___cmask_part(m, at);

	return part ? *__cmask_word(at, m) & part : 0;
}

#define ___CMASK_OP(name, result)							\
	static __always_inline void name(___cmask *dst, const ___cmask *src)		\
	{										\
		u32 words = ___cmask_used(dst), i;					\
											\
		bpf_for(i, 0, CMASK_MAX_WORDS) {					\
			u32 at = (dst->base / 64 + i) * 64;				\
			u64 both, d, s;							\
											\
			if (i >= words)							\
				break;							\
			both = ___cmask_part(dst, at) & ___cmask_part(src, at);		\
			if (!both)							\
				continue;						\
			d = dst->bits[i];						\
			s = ___cmask_bits(src, at);					\
			dst->bits[i] = (d & ~both) | ((result) & both);			\
		}									\
	}

___CMASK_OP(cmask_and, d & s)
___CMASK_OP(cmask_or, d | s)
___CMASK_OP(cmask_copy, s)
___CMASK_OP(cmask_andnot, d & ~s)

/* Whether the bits are the same; masks of other ranges never are. */
static __always_inline bool cmask_equal(const ___cmask *a, const ___cmask *b)
{
	u32 words = ___cmask_used(a), i;

	if (a->base != b->base || a->nr_cids != b->nr_cids)
		return false;
	bpf_for(i, 0, CMASK_MAX_WORDS) {
		if (i >= words)
			break;
		if (a->bits[i] != b->bits[i])
			return false;
	}
	return true;
}

/* Whether each bit of `a` is one of `b`. */
static __always_inline bool cmask_subset(const ___cmask *a, const ___cmask *b)
{
	u32 words = ___cmask_used(a), i;

	bpf_for(i, 0, CMASK_MAX_WORDS) {
		u32 at = (a->base / 64 + i) * 64;

		if (i >= words)
			break;
		if (___cmask_bits(a, at) & ~___cmask_bits(b, at))
			return false;
	}
	return true;
}

static __always_inline bool cmask_intersects(const ___cmask *a, const ___cmask *b)
{
	u32 words = ___cmask_used(a), i;

	bpf_for(i, 0, CMASK_MAX_WORDS) {
		u32 at = (a->base / 64 + i) * 64;

		if (i >= words)
			break;
		if (___cmask_bits(a, at) & ___cmask_bits(b, at))
			return true;
	}
	return false;
}

static __always_inline u32 cmask_weight(const ___cmask *m)
{
	u32 words = ___cmask_used(m), count = 0, i;

	bpf_for(i, 0, CMASK_MAX_WORDS) {
		if (i >= words)
			break;
		for (u64 bits = ___cmask_bits(m, (m->base / 64 + i) * 64); bits; bits &= bits - 1)
			count++;
	}
	return count;
}

/* ---- Searches: the first cid from `cid` on, or what lies behind the range of `a` ---- */

static __always_inline u32 ___cmask_lowest(u64 bits)
{
	u32 at = 0;

	for (u32 step = 32; step; step /= 2) {
		if (!(bits & (BIT_U64(step) - 1))) {
			bits >>= step;
			at += step;
		}
	}
	return at;
}

static __always_inline u32 ___cmask_find(const ___cmask *a, const ___cmask *b, const ___cmask *c,
					 u32 cid)
{
	u32 end = ___cmask_end(a), i;

	if (cid < a->base)
		cid = a->base;
	bpf_for(i, 0, CMASK_MAX_WORDS) {
		u32 at = (cid / 64 + i) * 64;
		u64 bits;

		if (at >= end)
			break;
		bits = ___cmask_bits(a, at) & ___cmask_bits(b, at) & ___cmask_bits(c, at);
		if (!i)
			bits &= ~0ULL << (cid % 64);
		if (bits)
			return at + ___cmask_lowest(bits);
	}
	return end;
}

/* From `start` on, and then from the begin of the range. */
static __always_inline u32 ___cmask_find_wrap(const ___cmask *a, const ___cmask *b,
					      const ___cmask *c, u32 start)
{
	u32 end = ___cmask_end(a), found = ___cmask_find(a, b, c, start);

	if (found < end || start <= a->base)
		return found;
	found = ___cmask_find(a, b, c, a->base);
	return found < start ? found : end;
}

static __always_inline u32 cmask_next_set(const ___cmask *m, u32 cid)
{
	return ___cmask_find(m, m, m, cid);
}

static __always_inline u32 cmask_first_set(const ___cmask *m)
{
	return cmask_next_set(m, m->base);
}

#define cmask_for_each(cid, m)					\
	for ((cid) = cmask_first_set(m); (cid) < ___cmask_end(m);	\
	     (cid) = cmask_next_set((m), (cid) + 1))

static __always_inline u32 cmask_next_and_set(const ___cmask *a, const ___cmask *b, u32 cid)
{
	return ___cmask_find(a, b, b, cid);
}

static __always_inline u32 cmask_next_and2_set(const ___cmask *a, const ___cmask *b,
					       const ___cmask *c, u32 cid)
{
	return ___cmask_find(a, b, c, cid);
}

static __always_inline u32 cmask_next_set_wrap(const ___cmask *m, u32 start)
{
	return ___cmask_find_wrap(m, m, m, start);
}

static __always_inline u32 cmask_next_and_set_wrap(const ___cmask *a, const ___cmask *b, u32 start)
{
	return ___cmask_find_wrap(a, b, b, start);
}

static __always_inline u32 cmask_next_and2_set_wrap(const ___cmask *a, const ___cmask *b,
						    const ___cmask *c, u32 start)
{
	return ___cmask_find_wrap(a, b, c, start);
}

/* The cids of the CPUs in a kernel's mask, as far as they are in the range. */
static __always_inline void cmask_from_cpumask(___cmask *m, const struct cpumask *cpumask)
{
	u32 cpus = scx_bpf_nr_cpu_ids();
	s32 cpu;

	cmask_zero(m);
	bpf_for(cpu, 0, cpus) {
		s32 cid;

		if (!bpf_cpumask_test_cpu(cpu, cpumask))
			continue;
		cid = scx_bpf_cpu_to_cid(cpu);
		if (cid >= 0)
			__cmask_set(cid, m);
	}
}

#endif /* __SCX_CID_BPF_H */
