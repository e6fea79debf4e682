//! Another kernel in a virtual machine: boots it with the files that a command needs, runs the
//! command, and brings back what it printed and changed.
//!
//! The guest has no disk and no network: an archive in memory holds busybox, the command, the
//! shared libraries that the loader names for it, and a copy of one folder. Results leave through
//! a character device as the same kind of archive.
//!
//! **Invariant:** nothing waits for ever. The command has a time limit inside the guest, the guest
//! one outside; a guest that ends without results is [`End::NoResult`], never a failed command.

mod apt;
mod archive;
mod cache;
mod error;
mod follow;
mod guest;
mod kernels;
mod outcome;
mod packages;
mod programs;
mod qemu;
mod watch;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use folder::OwnFolder;
use follow::{Follower, OutputListener};
use watch::Watch;

pub use error::VmError;
pub use follow::OutputStream;
pub use kernels::{GuestKernel, find as find_kernel};
pub use outcome::{ChangedFile, End, GuestOutcome};
pub use packages::{Packages, fetch_program, is_installed};

/// How the guest's time passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As fast as the computer can, with KVM where that works. No two runs are alike.
    Fast,
    /// A fixed time for each instruction, all CPUs in turn: the same guest and command give the
    /// same bytes again, however busy the computer is. `sample` draws another of the many
    /// possible runs.
    Counted {
        /// How fast the guest is.
        speed: Speed,
        /// Seed of the guest's random numbers; `None` leaves them out.
        sample: Option<u64>,
    },
}

/// How many instructions a guest executes in one of its seconds, for all its CPUs together.
///
/// A slow guest is not a fast one in slow motion: the same second has fewer instructions, so it
/// takes this computer less time, and what a kernel does at each tick weighs more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Speed {
    /// QEMU's `icount shift`: an instruction takes `1 << shift` nanoseconds.
    shift: u8,
}

impl Speed {
    /// The speeds there are, in millions of instructions a second, rounded down.
    pub const MIPS: [u32; 6] = [1000, 500, 250, 125, 62, 31];

    /// The speed of so many million instructions a second; `None` unless it is one of
    /// [`Speed::MIPS`].
    #[must_use]
    pub fn from_mips(mips: u32) -> Option<Self> {
        let shift = Self::MIPS.iter().position(|known| *known == mips)?;
        let shift = u8::try_from(shift).ok()?;
        Some(Self { shift })
    }

    /// Nanoseconds of the guest for each instruction.
    #[must_use]
    pub fn insn_ns(self) -> u32 {
        1 << self.shift
    }
}

/// A kernel to boot and a command to run in it.
#[derive(Clone, Debug)]
pub struct GuestRequest {
    /// The kernel, from [`find_kernel`].
    pub kernel: GuestKernel,
    /// CPUs of the guest, at least 1.
    pub cpus: u16,
    /// Memory of the guest in MiB.
    pub memory_mib: u32,
    /// How its time passes.
    pub pace: Pace,
    /// How long the command may take, in the guest's seconds.
    pub timeout: Duration,
    /// The command and its arguments. Programs and files among them are brought along.
    pub command: Vec<String>,
    /// Programs that the command starts by itself: names on the PATH, or paths.
    pub programs: Vec<String>,
    /// Files and whole folders that come along where they are, with the shared libraries of
    /// those files that are programs or libraries themselves.
    pub files: Vec<PathBuf>,
    /// Files for names among the programs and at the begin of a command, if not those of the PATH:
    /// the guest calls the file so, whatever it is called here.
    pub named: Vec<(String, PathBuf)>,
    /// A folder whose copy is the guest's `/share`; files that the command changes there are
    /// returned.
    pub share: Option<PathBuf>,
    /// Where the command begins.
    pub folder: PathBuf,
    /// Lets [`run_and_follow`] tell what the command prints while it runs. A guest that counts its
    /// time takes no notice: what it sends would be a part of its time.
    pub follow: bool,
}

impl GuestRequest {
    fn is_followed(&self) -> bool {
        self.follow && self.pace == Pace::Fast
    }
}

/// Whether the programs are there without which no guest can be, so that nobody downloads a kernel
/// for nothing.
///
/// # Errors
/// Which one is missing.
pub fn check_tools() -> Result<(), VmError> {
    qemu::find()?;
    guest::check_busybox()
}

/// How often a guest is started that the emulator breaks. A counting guest would break again at the
/// same instruction, so its kernel's command line gets one more word each time.
const ATTEMPTS: u32 = 4;

/// Boots the kernel, runs the command, waits for both. A guest that the emulator itself broke is
/// started again, a few times; [`GuestOutcome::broken`] counts.
///
/// # Errors
/// When QEMU, busybox, a program or a library is missing, or a file cannot be read or written.
pub fn run(request: &GuestRequest) -> Result<GuestOutcome, VmError> {
    run_and_follow(request, &mut |_, _| {})
}

/// Like [`run`], and hands on what the command prints as it comes, if the request says so. What the
/// command had printed in a guest that the emulator broke comes again.
///
/// # Errors
/// The errors of [`run`].
pub fn run_and_follow(
    request: &GuestRequest,
    listener: &mut OutputListener,
) -> Result<GuestOutcome, VmError> {
    let archive = guest::archive(request)?;
    let mut accelerator = qemu::accelerator(request.pace);
    let mut broken = 0;
    loop {
        let outcome = run_once(request, &archive, accelerator, broken, listener)?;
        if outcome.never_started() && accelerator == qemu::KVM {
            // The processor promises more than it can, as in some virtual machines.
            accelerator = qemu::TCG;
            continue;
        }
        if !outcome.broke_by_itself() || broken + 1 == ATTEMPTS {
            return Ok(GuestOutcome { broken, ..outcome });
        }
        broken += 1;
    }
}

fn run_once(
    request: &GuestRequest,
    archive: &[u8],
    accelerator: &'static str,
    broken: u32,
    listener: &mut OutputListener,
) -> Result<GuestOutcome, VmError> {
    let scratch = OwnFolder::new().map_err(VmError::file(&std::env::temp_dir()))?;
    let how = qemu::GuestOptions {
        accelerator,
        broken,
    };
    let mut machine = qemu::QemuMachine::new(request, &scratch, archive, how)?;
    let mut follower = Follower::default();
    let mut watch = (accelerator == qemu::TCG).then(Watch::default);
    let waited = machine.run(qemu::patience(request), &mut || {
        follower.look(&scratch, listener);
        (watch.as_mut()).is_some_and(|watch| watch.is_broken(&scratch, Instant::now()))
    })?;
    let outcome = outcome::read(&waited, &scratch, machine.accelerator())?;
    Ok(GuestOutcome {
        followed: follower.read(),
        ..outcome
    })
}
