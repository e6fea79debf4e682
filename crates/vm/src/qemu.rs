//! QEMU's command line, and waiting for it.
//!
//! For repeatable runs nothing that the host times may be in the guest: no virtio, no random
//! numbers of the processor, a clock that counts instructions from a fixed date, and results over
//! a serial line. Measured with QEMU 7.2: identical output, kernel log and /proc/schedstat over
//! repeated boots with 1, 2 and 4 CPUs.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use folder::OwnFolder;
use rustix::process::Signal;

use super::follow::STREAMS;
use super::{GuestRequest, Pace, Speed, VmError, programs};

/// Hardware runs the guest.
pub const KVM: &str = "kvm";
/// QEMU emulates the processor.
pub const TCG: &str = "tcg";

const QEMU: &str = "qemu-system-x86_64";

/// Files in the scratch folder.
pub const RESULT: &str = "result.cpio";
/// Name of the file with the kernel's console.
pub const CONSOLE: &str = "console";
const ARCHIVE: &str = "archive.cpio";
const WORDS: &str = "qemu.log";

/// How long a guest may take to boot, to collect its results and to turn itself off, on a busy
/// computer without KVM.
const OVERHEAD: Duration = Duration::from_secs(120);
/// How much slower than the host's clock a guest that counts instructions is: 0.2 guest seconds a
/// second were measured on a busy computer at 1000 MIPS, and 2.5 at 125.
const COUNTED_SLOWDOWN: u32 = 8;
/// From one look at QEMU to the next.
const PAUSE: Duration = Duration::from_millis(20);

/// How a guest is started, besides what was asked for.
#[derive(Clone, Copy, Debug)]
pub struct GuestOptions {
    /// [`KVM`] or [`TCG`].
    pub accelerator: &'static str,
    /// How often the emulator has broken it before. A guest that counts would break again.
    pub broken: u32,
}

/// A virtual machine that has been started. Dropping it ends it.
#[derive(Debug)]
pub struct QemuMachine {
    child: Child,
    words: PathBuf,
    accelerator: &'static str,
}

/// How the wait for QEMU ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waited {
    /// QEMU ended.
    Ended {
        /// Without an error.
        success: bool,
        /// What it printed.
        words: String,
    },
    /// It took longer than this and was ended.
    TimedOut(Duration),
    /// Its kernel told of a fault of the emulator, went on, and was ended.
    Broken,
}

/// How long to wait for the guest of `request`, on the host's clock.
pub fn patience(request: &GuestRequest) -> Duration {
    match request.pace {
        Pace::Fast => OVERHEAD + request.timeout,
        Pace::Counted { speed, .. } => {
            let slowdown = COUNTED_SLOWDOWN.div_ceil(speed.insn_ns());
            OVERHEAD + request.timeout * slowdown
        }
    }
}

/// Where QEMU is.
pub fn find() -> Result<PathBuf, VmError> {
    programs::find(QEMU).ok_or(VmError::ToolMissing {
        program: QEMU,
        package: "qemu-system-x86",
    })
}

impl QemuMachine {
    /// Starts the guest.
    ///
    /// # Errors
    /// When QEMU is missing or a file cannot be written.
    pub fn new(
        request: &GuestRequest,
        scratch: &OwnFolder,
        archive: &[u8],
        how: GuestOptions,
    ) -> Result<Self, VmError> {
        let qemu = find()?;
        let path = scratch.join(ARCHIVE);
        fs::write(&path, archive).map_err(VmError::file(&path))?;
        let words = scratch.join(WORDS);
        let log = File::create(&words).map_err(VmError::file(&words))?;
        // A guest that never opens the device still leaves a file to read.
        let result = scratch.join(RESULT);
        File::create(&result).map_err(VmError::file(&result))?;
        let mut command = Command::new(&qemu);
        command
            .args(arguments(request, how))
            .current_dir(scratch.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        // A guest whose results nobody waits for any more would go on for minutes.
        end_with_this(&mut command);
        let child = command.spawn().map_err(VmError::file(&qemu))?;
        Ok(Self {
            child,
            words,
            accelerator: how.accelerator,
        })
    }

    /// `kvm` or `tcg`; what QEMU has said so far may change it.
    pub fn accelerator(&self) -> &'static str {
        let words = fs::read_to_string(&self.words).unwrap_or_default();
        if fell_back(&words) {
            TCG
        } else {
            self.accelerator
        }
    }

    /// Waits until the guest turns itself off, at most `limit`, or until `meanwhile` says that it
    /// is broken, which is asked now and then, and once at the end.
    ///
    /// # Errors
    /// When QEMU cannot be waited for.
    pub fn run(
        &mut self,
        limit: Duration,
        meanwhile: &mut dyn FnMut() -> bool,
    ) -> Result<Waited, VmError> {
        let end = Instant::now() + limit;
        loop {
            let ended = self.child.try_wait().map_err(VmError::file(&self.words))?;
            let is_broken = meanwhile();
            if let Some(status) = ended {
                let words = fs::read_to_string(&self.words).unwrap_or_default();
                return Ok(Waited::Ended {
                    success: status.success(),
                    words,
                });
            }
            if is_broken {
                return Ok(Waited::Broken);
            }
            if Instant::now() > end {
                return Ok(Waited::TimedOut(limit));
            }
            thread::sleep(PAUSE);
        }
    }
}

/// Lets the system kill the command when the thread that starts it has ended, however that ends.
fn end_with_this(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;

    let ask = || {
        Ok(rustix::process::set_parent_process_death_signal(Some(
            Signal::KILL,
        ))?)
    };
    // SAFETY: the closure makes one system call and allocates nothing, as is demanded of what
    // runs in a forked child.
    #[expect(unsafe_code, reason = "std has no other way to act before exec")]
    unsafe {
        command.pre_exec(ask);
    }
}

impl Drop for QemuMachine {
    fn drop(&mut self) {
        // It may have ended already, and then nothing is left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether hardware can run the guest. The device alone does not tell: inside other virtual
/// machines it may be there although the processor lacks what a kernel needs to boot.
pub fn accelerator(pace: Pace) -> &'static str {
    let opened = || {
        File::options()
            .read(true)
            .write(true)
            .open("/dev/kvm")
            .is_ok()
    };
    let flags = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    if pace == Pace::Fast && has_virtualisation(&flags) && opened() {
        KVM
    } else {
        TCG
    }
}

/// Whether QEMU could not use KVM after all, from what it printed.
fn fell_back(words: &str) -> bool {
    words.to_lowercase().contains("falling back to tcg")
}

fn has_virtualisation(cpuinfo: &str) -> bool {
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    flags.is_some_and(|line| {
        line.split_whitespace()
            .any(|flag| matches!(flag, "vmx" | "svm"))
    })
}

/// All that QEMU is told. Paths of our own are relative to the scratch folder.
fn arguments(request: &GuestRequest, how: GuestOptions) -> Vec<String> {
    let image = std::path::absolute(&request.kernel.image);
    let image = image.unwrap_or_else(|_| request.kernel.image.clone());
    let mut words: Vec<String> = Vec::new();
    let mut add = |text: &str| words.extend(text.split_whitespace().map(str::to_owned));
    add("-nodefaults -no-user-config -display none -no-reboot");
    add(&format!("-smp {} -m {}M", request.cpus, request.memory_mib));
    add(&format!("-serial file:{CONSOLE} -initrd {ARCHIVE}"));
    match request.pace {
        Pace::Fast => add(&fast(how.accelerator)),
        Pace::Counted { speed, sample } => add(&counted(speed, sample)),
    }
    if request.is_followed() {
        for (_, name) in STREAMS {
            words.extend(followed(name).split_whitespace().map(str::to_owned));
        }
    }
    words.extend(["-kernel".to_owned(), image.to_string_lossy().into_owned()]);
    let append = kernel_arguments(request.pace, how.broken);
    words.extend(["-append".to_owned(), append]);
    words
}

fn fast(accelerator: &str) -> String {
    let accelerator = match accelerator {
        // QEMU itself takes the second when the first fails, for example because the computer is
        // a virtual one that promises more than it can.
        KVM => "kvm -accel tcg,thread=multi",
        // One thread for all would avoid the fault that `Outcome::broke_by_itself` tells of, but
        // a CPU that waits for another then wastes a turn of 100 ms, and guests stall under load.
        _ => "tcg,thread=multi",
    };
    format!(
        "-M q35 -cpu max -accel {accelerator} -device virtio-serial-pci,id=line \
         -chardev file,id=result,path={RESULT} -device virtserialport,bus=line.0,chardev=result"
    )
}

/// A device more, whose bytes become the file `name`.
fn followed(name: &str) -> String {
    format!("-chardev file,id={name},path={name} -device virtserialport,bus=line.0,chardev={name}")
}

fn counted(speed: Speed, sample: Option<u64>) -> String {
    let cpu = if sample.is_some() {
        "max"
    } else {
        "max,-rdrand,-rdseed"
    };
    let seed = sample.unwrap_or(1);
    let shift = speed.insn_ns().ilog2();
    format!(
        "-M pc -cpu {cpu} -accel tcg,thread=single -icount shift={shift},sleep=off \
         -seed {seed} -rtc base=2026-01-01T00:00:00,clock=vm -serial file:{RESULT}"
    )
}

/// A word that no kernel knows makes another run of a guest that counts, and always the same one.
fn kernel_arguments(pace: Pace, broken: u32) -> String {
    let fixed = match pace {
        Pace::Fast => "",
        Pace::Counted { .. } => {
            " nokaslr norandmaps random.trust_cpu=off random.trust_bootloader=on"
        }
    };
    let again = match broken {
        0 => String::new(),
        times => format!(" runslice.again={times}"),
    };
    // The kernel would try out its ciphers first, for half a second of a CPU.
    format!("console=ttyS0 loglevel=4 panic=-1 cryptomgr.notests rdinit=/init{fixed}{again}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeatable_guest_has_nothing_that_the_host_times() {
        let words = counted(Speed::default(), None);
        assert!(
            !words.contains("virtio") && words.contains("-rdrand"),
            "{words}"
        );
        assert!(
            words.contains("shift=0,sleep=off") && words.contains("clock=vm"),
            "{words}"
        );
        let sampled = counted(Speed::default(), Some(7));
        assert!(
            sampled.contains("-seed 7") && !sampled.contains("-rdrand"),
            "{sampled}"
        );
    }

    #[test]
    fn a_guest_that_broke_is_started_as_another_run() {
        let counted = Pace::Counted {
            speed: Speed::default(),
            sample: None,
        };
        let first = kernel_arguments(counted, 0);
        assert_eq!(
            kernel_arguments(counted, 2),
            format!("{first} runslice.again=2")
        );
    }

    #[test]
    fn a_slower_clock_gives_each_instruction_more_time() {
        let slow = Speed::from_mips(125).unwrap();
        assert_eq!(slow.insn_ns(), 8);
        assert!(counted(slow, None).contains("shift=3,sleep=off"));
        for mips in Speed::MIPS {
            let speed = Speed::from_mips(mips).unwrap();
            assert_eq!(1000 / speed.insn_ns(), mips);
        }
        assert_eq!(Speed::from_mips(100), None);
    }

    #[test]
    fn emulation_takes_over_where_kvm_fails() {
        assert!(fast("kvm").contains("-accel kvm -accel tcg"));
        assert!(!fast("tcg").contains("kvm"));
        assert!(fell_back(
            "qemu: -accel kvm: failed\nqemu: falling back to tcg\n"
        ));
        assert!(!fell_back(""));
    }

    #[test]
    fn a_processor_without_virtualisation_is_not_asked_for_it() {
        assert!(has_virtualisation("processor: 0\nflags\t\t: fpu vmx sse\n"));
        assert!(!has_virtualisation(
            "processor: 0\nflags\t\t: fpu vmxish sse\n"
        ));
        assert!(!has_virtualisation(""));
    }
}
