//! How a run ended. A policy that misbehaves is a result, never an `Err`.

use crate::SimTime;

/// The kernel's exit kinds (`enum scx_exit_kind`, kernel 6.18; the last one 7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ExitKind {
    /// Detached from user space: the normal end.
    Unreg = 64,
    /// The policy called `scx_bpf_exit()`.
    UnregBpf = 65,
    /// The kernel ended it without an error, for example at hotplug.
    UnregKern = 66,
    /// SysRq-S.
    Sysrq = 67,
    /// The scheduler above it ended (kernel 7.1).
    Parent = 68,
    /// The scheduler above it called `scx_bpf_sub_kill()` (kernel 7.3).
    ParentKill = 69,
    /// The policy misused the kernel's interface.
    Error = 1024,
    /// The policy called `scx_bpf_error()`.
    ErrorBpf = 1025,
    /// A runnable task waited longer than the watchdog allows.
    ErrorStall = 1026,
    /// A task was enqueued again and again without running (kernel 7.3).
    ErrorReenq = 1027,
    /// Its tasks took too much time on CPUs to which it has no right (kernel 7.3).
    ErrorRescue = 1028,
}

impl ExitKind {
    /// Every kind.
    pub const ALL: [Self; 11] = [
        Self::Unreg,
        Self::UnregBpf,
        Self::UnregKern,
        Self::Sysrq,
        Self::Parent,
        Self::ParentKill,
        Self::Error,
        Self::ErrorBpf,
        Self::ErrorStall,
        Self::ErrorReenq,
        Self::ErrorRescue,
    ];

    /// The kernel's reason string (`scx_exit_reason()`, kernel 6.18).
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Unreg => "unregistered from user space",
            Self::UnregBpf => "unregistered from BPF",
            Self::UnregKern => "unregistered from the main kernel",
            Self::Sysrq => "disabled by sysrq-S",
            Self::Parent => "parent exiting",
            Self::ParentKill => "killed by parent scheduler",
            Self::Error => "runtime error",
            Self::ErrorBpf => "scx_bpf_error",
            Self::ErrorStall => "runnable task stall",
            Self::ErrorReenq => "reenqueue limit",
            Self::ErrorRescue => "rescue bandwidth overload",
        }
    }

    /// The kind with this number, if there is one.
    #[must_use]
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u32 == number)
    }

    /// Whether the policy was ejected for an error of its own.
    #[must_use]
    pub const fn is_error(self) -> bool {
        self as u32 >= 1024
    }
}

/// How and when the policy's time ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The kernel's kind.
    pub kind: ExitKind,
    /// The code given to `scx_bpf_exit()`, or the kernel's own; else 0.
    pub code: i64,
    /// The kernel's message; empty for a normal end.
    pub message: String,
    /// When it happened.
    pub time: SimTime,
    /// Reason that no kernel knows: the program and source line at which the object machine stopped
    /// it (a wild store, an endless loop), or that a scheduler's own program took the policy off
    /// before the run was over. `None` when the kernel's own rules ended the policy.
    pub fault: Option<String>,
}
