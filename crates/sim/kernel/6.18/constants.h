/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Constants of kernel 6.18, with their values there; see ../6.18.h. Older versions have those
 * outside the conditions, with the same values.
 */

/* ---- Constants ---- */

enum scx_public_consts {
	SCX_OPS_NAME_LEN = SCX_OPS_NAME_BYTES,
	SCX_SLICE_DFL = 20 * 1000000,
	SCX_SLICE_INF = ~0ULL,
};

enum scx_consts {
	SCX_DSP_DFL_MAX_BATCH = 32,
	SCX_DSP_MAX_LOOPS = 32,
	SCX_EXIT_BT_LEN = 64,
	SCX_EXIT_MSG_LEN = 1024,
	SCX_EXIT_DUMP_DFL_LEN = 32768,
	SCX_CPUPERF_ONE = 1024,
	SCX_TASK_ITER_BATCH = 32,
};

enum scx_ops_flags {
	SCX_OPS_KEEP_BUILTIN_IDLE = 1LLU << 0,
	SCX_OPS_ENQ_LAST = 1LLU << 1,
	SCX_OPS_ENQ_EXITING = 1LLU << 2,
	SCX_OPS_SWITCH_PARTIAL = 1LLU << 3,
	SCX_OPS_HAS_CGROUP_WEIGHT = 1LLU << 16,
#if SIMULATED_KERNEL >= 6016
	SCX_OPS_ENQ_MIGRATION_DISABLED = 1LLU << 4,
	SCX_OPS_ALLOW_QUEUED_WAKEUP = 1LLU << 5,
	SCX_OPS_BUILTIN_IDLE_PER_NODE = 1LLU << 6,
	SCX_OPS_ALL_FLAGS = 0x1007fLLU,
	__SCX_OPS_INTERNAL_MASK = 0xffLLU << 56,
	SCX_OPS_HAS_CPU_PREEMPT = 1LLU << 56,
#else
	SCX_OPS_ALL_FLAGS = 0x1000fLLU,
#endif
};

enum scx_dsq_id_flags {
	SCX_DSQ_FLAG_BUILTIN = 1LLU << 63,
	SCX_DSQ_FLAG_LOCAL_ON = 1LLU << 62,
	SCX_DSQ_INVALID = SCX_DSQ_FLAG_BUILTIN | 0,
	SCX_DSQ_GLOBAL = SCX_DSQ_FLAG_BUILTIN | 1,
	SCX_DSQ_LOCAL = SCX_DSQ_FLAG_BUILTIN | 2,
	SCX_DSQ_LOCAL_ON = SCX_DSQ_FLAG_BUILTIN | SCX_DSQ_FLAG_LOCAL_ON,
	SCX_DSQ_LOCAL_CPU_MASK = 0xffffffffLLU,
};

enum scx_wake_flags {
	SCX_WAKE_FORK = 4,
	SCX_WAKE_TTWU = 8,
	SCX_WAKE_SYNC = 16,
};

enum scx_enq_flags {
	SCX_ENQ_WAKEUP = 0x1,
	SCX_ENQ_HEAD = 0x10,
	SCX_ENQ_CPU_SELECTED = 0x400,
	SCX_ENQ_PREEMPT = 1LLU << 32,
	SCX_ENQ_REENQ = 1LLU << 40,
	SCX_ENQ_LAST = 1LLU << 41,
	__SCX_ENQ_INTERNAL_MASK = 0xffLLU << 56,
	SCX_ENQ_CLEAR_OPSS = 1LLU << 56,
	SCX_ENQ_DSQ_PRIQ = 1LLU << 57,
};

enum scx_deq_flags {
	SCX_DEQ_SLEEP = 0x1,
	SCX_DEQ_CORE_SCHED_EXEC = 1LLU << 32,
};

enum scx_kick_flags {
	SCX_KICK_IDLE = 1LLU << 0,
	SCX_KICK_PREEMPT = 1LLU << 1,
	SCX_KICK_WAIT = 1LLU << 2,
};

enum scx_pick_idle_cpu_flags {
	SCX_PICK_IDLE_CORE = 1LLU << 0,
#if SIMULATED_KERNEL >= 6016
	SCX_PICK_IDLE_IN_NODE = 1LLU << 1,
#endif
};

enum scx_dsq_iter_flags {
	SCX_DSQ_ITER_REV = 1U << 16,
	__SCX_DSQ_ITER_HAS_SLICE = 1U << 30,
	__SCX_DSQ_ITER_HAS_VTIME = 1U << 31,
	__SCX_DSQ_ITER_USER_FLAGS = SCX_DSQ_ITER_REV,
	__SCX_DSQ_ITER_ALL_FLAGS = 0xc0010000U,
};

enum scx_dsq_lnode_flags {
	SCX_DSQ_LNODE_ITER_CURSOR = 1 << 0,
	__SCX_DSQ_LNODE_PRIV_SHIFT = 16,
};

enum scx_ent_flags {
	SCX_TASK_QUEUED = 1 << 0,
	SCX_TASK_RESET_RUNNABLE_AT = 1 << 2,
	SCX_TASK_DEQD_FOR_SLEEP = 1 << 3,
	SCX_TASK_STATE_SHIFT = 8,
	SCX_TASK_STATE_BITS = 2,
	SCX_TASK_STATE_MASK = 3 << SCX_TASK_STATE_SHIFT,
	SCX_TASK_CURSOR = 1 << 31,
};

enum scx_ent_dsq_flags {
	SCX_TASK_DSQ_ON_PRIQ = 1 << 0,
};

enum scx_task_state {
	SCX_TASK_NONE,
	SCX_TASK_INIT,
	SCX_TASK_READY,
	SCX_TASK_ENABLED,
	SCX_TASK_NR_STATES,
};

enum scx_ops_state {
	SCX_OPSS_NONE,
	SCX_OPSS_QUEUEING,
	SCX_OPSS_QUEUED,
	SCX_OPSS_DISPATCHING,
	SCX_OPSS_QSEQ_SHIFT = 2,
};

enum scx_enable_state {
	SCX_ENABLING,
	SCX_ENABLED,
	SCX_DISABLING,
	SCX_DISABLED,
};

enum scx_rq_flags {
	SCX_RQ_ONLINE = 1 << 0,
	SCX_RQ_CAN_STOP_TICK = 1 << 1,
	SCX_RQ_BAL_PENDING = 1 << 2,
	SCX_RQ_BAL_KEEP = 1 << 3,
	SCX_RQ_BYPASSING = 1 << 4,
	SCX_RQ_CLK_VALID = 1 << 5,
#if SIMULATED_KERNEL >= 6017
	SCX_RQ_BAL_CB_PENDING = 1 << 6,
#endif
	SCX_RQ_IN_WAKEUP = 1 << 16,
	SCX_RQ_IN_BALANCE = 1 << 17,
};

enum scx_kf_mask {
	SCX_KF_UNLOCKED = 0,
	SCX_KF_CPU_RELEASE = 1 << 0,
	SCX_KF_DISPATCH = 1 << 1,
	SCX_KF_ENQUEUE = 1 << 2,
	SCX_KF_SELECT_CPU = 1 << 3,
	SCX_KF_REST = 1 << 4,
};

enum scx_exit_code {
	SCX_ECODE_RSN_HOTPLUG = 1LLU << 32,
	SCX_ECODE_ACT_RESTART = 1LLU << 48,
};

#if SIMULATED_KERNEL >= 6018
/* On 6.18 the flag's value is 0: a slip in the kernel, which 6.19 mends. */
enum scx_exit_flags {
	SCX_EFLAG_INITIALIZED = 0,
};
#endif
