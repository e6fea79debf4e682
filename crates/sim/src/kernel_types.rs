//! What the simulated kernels look like to a policy: types, constants and functions as BTF.

/// The object whose BTF describes kernel 6.18, compiled from `kernel/6.18.h`. Every kernel
/// function carries the declaration tag `bpf_kfunc`; layouts are the simulator's own.
pub const BTF_6_18: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kernel-6.18.o"));

/// As [`BTF_6_18`], for kernel 7.2, from `kernel/7.2.h`.
pub const BTF_7_2: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kernel-7.2.o"));
