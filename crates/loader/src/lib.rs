//! Runs a scheduler's own program, unmodified and without root, in simulated time.
//!
//! A published scheduler is a program: a *loader* with the BPF object inside. `Supervisor` starts
//! one as a process and stands between it and the host's kernel: a seccomp filter sends its system
//! calls here, where bpf(2) is answered by the simulated machine, clocks tell simulated time, files
//! below `/sys` and `/proc` are those of the simulated machine, and one thread runs at a time. It
//! implements [`model::user_space::UserSpace`]; so does a recording of such a run, on any platform.
//!
//! The program is one with the user's rights: this is no sandbox.

pub mod recording;

/// The supervisor needs this platform's system calls.
macro_rules! here {
    ($($item:item)*) => {
        $(
            #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
            $item
        )*
    };
}

here! {
    mod about;
    mod anchor;
    mod attr;
    mod batch;
    mod birth;
    mod bpf;
    mod bpf_tell;
    mod classic;
    mod clock;
    mod deaths;
    mod descriptors;
    mod dispatch;
    mod ends;
    mod exec;
    mod executable;
    mod files;
    pub mod filter;
    mod growth;
    mod launch;
    mod locks;
    mod memory;
    mod output;
    mod paths;
    mod pins;
    mod processes;
    mod scheduling;
    mod sockets;
    mod state;
    mod supervisor;
    mod sys;
    mod time;
    mod tree;
    mod watcher;
    mod work;

    pub use clock::{EPOCH, Prices};
    pub use supervisor::{Settings, StartError, Supervisor};
    pub use tree::Shown;
    pub use work::ProgramLimits;
}
