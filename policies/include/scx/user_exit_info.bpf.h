/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How a policy tells its loader why it ended; scx/common.bpf.h includes it. */
#ifndef __USER_EXIT_INFO_BPF_H
#define __USER_EXIT_INFO_BPF_H

#include <vmlinux.h>
#include <bpf/bpf_core_read.h>

enum uei_sizes {
	UEI_REASON_LEN = 128,
	UEI_MSG_LEN = 1024,
	UEI_DUMP_DFL_LEN = 32768,
};

struct user_exit_info {
	int kind;
	s64 exit_code;
	char reason[UEI_REASON_LEN];
	char msg[UEI_MSG_LEN];
};

/* A loader gives the array for the dump its length. */
#define UEI_DEFINE(uei)							\
	char RESIZABLE_ARRAY(data, uei##_dump);				\
	const volatile u32 uei##_dump_len;				\
	struct user_exit_info uei SEC(".data")

/* `kind` comes last: whoever sees it finds the rest complete. */
#define UEI_RECORD(uei, info) ({						\
	bpf_probe_read_kernel_str(uei.reason, sizeof(uei.reason), (info)->reason);	\
	bpf_probe_read_kernel_str(uei.msg, sizeof(uei.msg), (info)->msg);	\
	bpf_probe_read_kernel_str(uei##_dump, uei##_dump_len, (info)->dump);	\
	uei.exit_code = (info)->exit_code;				\
	__sync_lock_test_and_set(&uei.kind, (info)->kind);		\
})

#endif /* __USER_EXIT_INFO_BPF_H */
