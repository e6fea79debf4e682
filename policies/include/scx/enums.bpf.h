/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * From here on a constant's name means the value that the running kernel gives to it. Flags of the
 * table of callbacks keep the numbers of 7.2, in which all kernels agree: a table holds constants.
 */
#ifndef __SCX_ENUMS_BPF_H
#define __SCX_ENUMS_BPF_H

/*
 * The value of a variable outside of functions is written before any kernel is asked: there the
 * name has the number of 7.2, as with the headers of 2024: `const volatile u64 slice_ns =
 * SCX_SLICE_DFL`. Outside of functions `__func__` is an empty text.
 */
#pragma clang diagnostic ignored "-Wpredefined-identifier-outside-function"
#define SCX_VALUE(type, value)						\
	__builtin_choose_expr(sizeof(__func__) > 1,			\
		(u64)__builtin_preserve_enum_value(*(enum type *)value, 1), (u64)value)

#define SCX_SLICE_DFL SCX_VALUE(scx_public_consts, SCX_SLICE_DFL)
#define SCX_SLICE_INF SCX_VALUE(scx_public_consts, SCX_SLICE_INF)
#define SCX_DSQ_FLAG_BUILTIN SCX_VALUE(scx_dsq_id_flags, SCX_DSQ_FLAG_BUILTIN)
#define SCX_DSQ_FLAG_LOCAL_ON SCX_VALUE(scx_dsq_id_flags, SCX_DSQ_FLAG_LOCAL_ON)
#define SCX_DSQ_INVALID SCX_VALUE(scx_dsq_id_flags, SCX_DSQ_INVALID)
#define SCX_DSQ_GLOBAL SCX_VALUE(scx_dsq_id_flags, SCX_DSQ_GLOBAL)
#define SCX_DSQ_LOCAL SCX_VALUE(scx_dsq_id_flags, SCX_DSQ_LOCAL)
#define SCX_DSQ_LOCAL_ON SCX_VALUE(scx_dsq_id_flags, SCX_DSQ_LOCAL_ON)
#define SCX_DSQ_LOCAL_CPU_MASK SCX_VALUE(scx_dsq_id_flags, SCX_DSQ_LOCAL_CPU_MASK)
#define SCX_WAKE_FORK SCX_VALUE(scx_wake_flags, SCX_WAKE_FORK)
#define SCX_WAKE_TTWU SCX_VALUE(scx_wake_flags, SCX_WAKE_TTWU)
#define SCX_WAKE_SYNC SCX_VALUE(scx_wake_flags, SCX_WAKE_SYNC)
#define SCX_ENQ_WAKEUP SCX_VALUE(scx_enq_flags, SCX_ENQ_WAKEUP)
#define SCX_ENQ_HEAD SCX_VALUE(scx_enq_flags, SCX_ENQ_HEAD)
#define SCX_ENQ_CPU_SELECTED SCX_VALUE(scx_enq_flags, SCX_ENQ_CPU_SELECTED)
#define SCX_ENQ_PREEMPT SCX_VALUE(scx_enq_flags, SCX_ENQ_PREEMPT)
#define SCX_ENQ_REENQ SCX_VALUE(scx_enq_flags, SCX_ENQ_REENQ)
#define SCX_ENQ_LAST SCX_VALUE(scx_enq_flags, SCX_ENQ_LAST)
#define SCX_ENQ_CLEAR_OPSS SCX_VALUE(scx_enq_flags, SCX_ENQ_CLEAR_OPSS)
#define SCX_ENQ_DSQ_PRIQ SCX_VALUE(scx_enq_flags, SCX_ENQ_DSQ_PRIQ)
#define SCX_DEQ_SLEEP SCX_VALUE(scx_deq_flags, SCX_DEQ_SLEEP)
#define SCX_DEQ_CORE_SCHED_EXEC SCX_VALUE(scx_deq_flags, SCX_DEQ_CORE_SCHED_EXEC)
#define SCX_KICK_IDLE SCX_VALUE(scx_kick_flags, SCX_KICK_IDLE)
#define SCX_KICK_PREEMPT SCX_VALUE(scx_kick_flags, SCX_KICK_PREEMPT)
#define SCX_KICK_WAIT SCX_VALUE(scx_kick_flags, SCX_KICK_WAIT)
#define SCX_PICK_IDLE_CORE SCX_VALUE(scx_pick_idle_cpu_flags, SCX_PICK_IDLE_CORE)
#define SCX_PICK_IDLE_IN_NODE SCX_VALUE(scx_pick_idle_cpu_flags, SCX_PICK_IDLE_IN_NODE)
#define SCX_DSQ_ITER_REV SCX_VALUE(scx_dsq_iter_flags, SCX_DSQ_ITER_REV)
#define SCX_TASK_QUEUED SCX_VALUE(scx_ent_flags, SCX_TASK_QUEUED)
#define SCX_TASK_RESET_RUNNABLE_AT SCX_VALUE(scx_ent_flags, SCX_TASK_RESET_RUNNABLE_AT)
#define SCX_TASK_DEQD_FOR_SLEEP SCX_VALUE(scx_ent_flags, SCX_TASK_DEQD_FOR_SLEEP)

#endif /* __SCX_ENUMS_BPF_H */
