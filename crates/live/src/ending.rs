//! How the kernel says that a policy ended.

use libbpf_rs::btf::Btf;

use crate::variables::{self, Variable};

/// `enum scx_exit_code` (`kernel/sched/ext_internal.h`, 6.18): the kernel's half of a code.
const RSN_HOTPLUG: i64 = 1 << 32;
const ACT_RESTART: i64 = 1 << 48;
/// Policies that report by report.bpf.h leave how they ended here.
const OWN_VARIABLE: &str = "runslice_exit";
/// Policies that are written for the scx project's headers leave it here.
const SCX_VARIABLE: &str = "uei";

/// How the kernel says that a policy ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyEnding {
    /// `enum scx_exit_kind`; 0 when the policy does not report it.
    pub kind: i64,
    /// Of `scx_bpf_exit()`, or the kernel's own.
    pub code: i64,
    /// The kind in the kernel's words.
    pub reason: String,
    /// The kernel's message, or the policy's.
    pub message: String,
}

/// Where an object notes how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The variable.
    pub variable: Variable,
    layout: Layout,
}

/// Where the four fields of a note begin, and where the message ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    kind: usize,
    /// Bytes of the kind: an enumeration in one, a long number in the other.
    kind_size: usize,
    code: usize,
    reason: usize,
    message: usize,
}

impl PolicyEnding {
    /// Detached from user space: `SCX_EXIT_UNREG` (kernel 6.18).
    #[must_use]
    pub fn is_normal(&self) -> bool {
        self.kind == 64
    }

    /// The kernel or the policy asks to be loaded again, for example because a CPU came and the
    /// policy has no callback for that.
    #[must_use]
    pub fn asks_for_restart(&self) -> bool {
        self.code & ACT_RESTART != 0
    }

    /// Completes what the kernel's log told, which never tells the code: 6.18 ends a policy by
    /// itself (`SCX_EXIT_UNREG_KERN`) only when CPUs have come or gone.
    pub fn complete(&mut self, cpus_changed: bool) {
        if self.kind == model::ExitKind::UnregKern as i64 && self.code == 0 && cpus_changed {
            self.code = ACT_RESTART | RSN_HOTPLUG;
        }
    }
}

impl Note {
    /// Where the object of `btf` notes it; `None` when it does not.
    pub fn find(btf: &Btf<'_>) -> Option<Self> {
        if let Some(variable) = variables::find(btf, OWN_VARIABLE) {
            // Two numbers of 8 bytes, texts of 128 and 1024.
            let layout = Layout {
                kind: 0,
                kind_size: 8,
                code: 8,
                reason: 16,
                message: 144,
            };
            return Some(Self { variable, layout });
        }
        let variable = variables::find(btf, SCX_VARIABLE)?;
        let at = |field| variables::member(btf, "user_exit_info", field);
        let layout = Layout {
            kind: at("kind")?,
            kind_size: 4,
            code: at("exit_code")?,
            reason: at("reason")?,
            message: at("msg")?,
        };
        Some(Self { variable, layout })
    }

    /// Reads the variable's bytes; `None` while the policy has not ended.
    pub fn read(&self, bytes: &[u8]) -> Option<PolicyEnding> {
        let number = |at: usize, size: usize| match size {
            4 => Some(i32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?).into()),
            _ => Some(i64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?)),
        };
        let Layout {
            kind,
            kind_size,
            code,
            reason,
            message,
        } = self.layout;
        let ending = PolicyEnding {
            kind: number(kind, kind_size)?,
            code: number(code, 8)?,
            reason: text_of(bytes.get(reason..message)?),
            message: text_of(bytes.get(message..self.variable.size)?),
        };
        (ending.kind != 0).then_some(ending)
    }
}

/// A C string in a field of fixed size.
pub fn text_of(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_exit_callback_noted_is_read() {
        let fifo = policies::find("fifo").unwrap();
        let btf = Btf::from_raw("fifo", fifo.object).unwrap().unwrap();
        let note = Note::find(&btf).unwrap();
        assert_eq!(note.variable.size, 1168);
        let mut bytes = vec![0; 1168];
        assert_eq!(note.read(&bytes), None);
        bytes[..8].copy_from_slice(&1026_i64.to_ne_bytes());
        bytes[8..16].copy_from_slice(&(-5_i64).to_ne_bytes());
        bytes[16..21].copy_from_slice(b"stall");
        bytes[144..150].copy_from_slice(b"no run");
        let want = PolicyEnding {
            kind: 1026,
            code: -5,
            reason: "stall".to_owned(),
            message: "no run".to_owned(),
        };
        assert_eq!(note.read(&bytes), Some(want));
        assert_eq!(note.read(&bytes[..1167]), None);
    }

    /// As the scx project's headers declare it; they call the structure and its fields so.
    const SCX_NOTE: &str = "
        struct user_exit_info {
            int kind;
            long long exit_code;
            char reason[128];
            char msg[1024];
        };
        __attribute__((section(\".data\"), used)) struct user_exit_info uei = {};
    ";

    #[test]
    fn a_note_of_the_scx_headers_is_read() {
        let folder = std::env::temp_dir().join(format!("runslice-uei-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let source = folder.join("uei.bpf.c");
        std::fs::write(&source, SCX_NOTE).unwrap();
        let object = bpf_build::compile(&source, &[]).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
        let path = std::env::temp_dir().join(format!("runslice-uei-{}.o", std::process::id()));
        std::fs::write(&path, object).unwrap();
        let btf = Btf::from_path(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        let note = Note::find(&btf).unwrap();
        assert_eq!(note.variable.section, ".data");
        let mut bytes = vec![0; 1168];
        bytes[..4].copy_from_slice(&66_i32.to_ne_bytes());
        bytes[8..16].copy_from_slice(&(ACT_RESTART | RSN_HOTPLUG).to_ne_bytes());
        bytes[144..149].copy_from_slice(b"cpu 1");
        let ending = note.read(&bytes).unwrap();
        assert!(ending.asks_for_restart(), "{ending:?}");
        assert_eq!((ending.kind, &*ending.message), (66, "cpu 1"));
    }

    #[test]
    fn only_the_kernels_own_end_after_a_change_of_cpus_becomes_a_restart() {
        let asks = |kind, code, cpus_changed| {
            let mut ending = PolicyEnding {
                kind,
                code,
                ..PolicyEnding::default()
            };
            ending.complete(cpus_changed);
            ending.asks_for_restart()
        };
        assert!(asks(66, 0, true));
        assert!(!asks(66, 0, false));
        assert!(!asks(66, 7, true), "a code that is known stays");
        assert!(!asks(1026, 0, true));
        assert!(asks(65, ACT_RESTART | 3, false), "a policy may ask, too");
    }
}
