/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Arenas: memory that programs and their loader share, with pointers of an address space. */
#ifndef RUNSLICE_ARENA_BPF_H
#define RUNSLICE_ARENA_BPF_H

#include <vmlinux.h>
#include <bpf/bpf_helpers.h>

#ifndef __BPF_FEATURE_ADDR_SPACE_CAST
#error "arenas need clang 19 or newer"
#endif

#ifndef PAGE_SIZE
#define PAGE_SIZE 4096
#endif

#define __arena __attribute__((address_space(1)))
#define __arena_global __attribute__((address_space(1)))
/* The compiler converts by itself. */
#define cast_kern(pointer)
#define cast_user(pointer)

extern void __arena *bpf_arena_alloc_pages(void *map, void __arena *addr, u32 page_cnt,
					   int node_id, u64 flags) __ksym __weak;
extern void bpf_arena_free_pages(void *map, void __arena *pages, u32 page_cnt) __ksym __weak;
extern int bpf_arena_reserve_pages(void *map, void __arena *pages, u32 page_cnt) __ksym __weak;

/* Whether a loop may go on; a kernel ends it when it has gone on for too long. */
#define can_loop ({						\
	__label__ over, end;					\
	bool ___go_on = true;					\
	asm volatile goto("may_goto %l[over]" :::: over);	\
	goto end;						\
over:								\
	___go_on = false;					\
end:;								\
	___go_on;						\
})
#define __cond_break(leave) ({					\
	__label__ over, end;					\
	asm volatile goto("may_goto %l[over]" :::: over);	\
	goto end;						\
over:								\
	leave;							\
end:;								\
})
#define cond_break __cond_break(break)
#define cond_break_label(label) __cond_break(goto label)

#endif /* RUNSLICE_ARENA_BPF_H */
