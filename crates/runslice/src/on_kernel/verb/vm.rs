//! `runslice vm -- COMMAND`.

use std::env;
use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use model::{Advised, Nanos};
use vm::{ChangedFile, End, GuestOutcome, GuestRequest, OutputStream, Pace, Speed};

use crate::exit::{Status, UsageError};
use crate::on_kernel::guest::{explain, own_name};
use crate::{files, programs};
use model::span;

/// Arguments of `runslice vm`.
#[derive(Debug, Args)]
pub struct Vm {
    /// Kernel to boot: 6.16 to 7.3, or the path of a vmlinuz. A version is downloaded once.
    #[arg(long, value_name = "KERNEL", default_value = "6.18")]
    kernel: String,

    /// CPUs of the VM.
    #[arg(long, value_name = "N", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=255))]
    cpus: u16,

    /// Memory of the VM, in MiB. At least 256.
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    #[arg(value_parser = clap::value_parser!(u32).range(256..))]
    memory: u32,

    /// Use a counting VM: its clock counts instructions, so the same command always gives the same
    /// output, byte for byte.
    #[arg(long)]
    det: bool,

    /// Speed of a counting VM, in million instructions per second: 1000, 500, 250, 125, 62 or 31.
    ///
    /// A slower VM needs less of this computer's time for each second of its own time.
    #[arg(long, value_name = "N", requires = "det", default_value = "1000")]
    #[arg(value_parser = speed)]
    mips: Speed,

    /// Seed for --det. A run with another seed differs, and repeats just as well.
    #[arg(long, value_name = "N", requires = "det")]
    seed: Option<u64>,

    /// Folder to copy to /share in the VM, where the command starts. Files that the command writes
    /// there are copied back.
    #[arg(long, value_name = "DIR")]
    share: Option<PathBuf>,

    /// Program that the command starts itself, to be copied into the VM. May be repeated.
    #[arg(long, value_name = "PROGRAM")]
    with: Vec<String>,

    /// File or whole folder to copy to the same path in the VM. May be repeated.
    #[arg(long, value_name = "PATH")]
    file: Vec<PathBuf>,

    /// Longest time for the command, on the VM's clock.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = span::parse)]
    timeout: Nanos,

    /// Also print the messages of the VM's kernel, on standard error.
    #[arg(long)]
    kernel_log: bool,

    /// Command to run. Programs and files that it names are copied into the VM. `runslice` is this
    /// program.
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// Boots the kernel, runs the command, and prints what it printed.
///
/// # Errors
/// When the virtual machine cannot be run, or a result cannot be written.
pub fn run(request: &Vm) -> anyhow::Result<u8> {
    let mut words = request.command.iter().chain(&request.with);
    if let Some(word) = words.find(|it| it.chars().any(|c| files::raw_byte(c).is_some())) {
        let message = Advised::new(
            format!("`{word}` is no text (UTF-8), and the VM gets its command as text"),
            "give the file another name",
        );
        return Err(UsageError::new(message).into());
    }
    let kernel = vm::find_kernel(&request.kernel, &mut |step| say(step)).map_err(explain)?;
    if let Some(instead) = &kernel.instead {
        say(instead);
    }
    // Where somebody looks. What a program reads comes once, also when a guest is started again.
    let is_seen = io::stdout().is_terminal();
    let request_of_guest = GuestRequest {
        kernel,
        cpus: request.cpus,
        memory_mib: request.memory,
        pace: if request.det {
            Pace::Counted {
                speed: request.mips,
                sample: request.seed,
            }
        } else {
            Pace::Fast
        },
        timeout: Duration::from_nanos(request.timeout.get()),
        command: request.command.clone(),
        programs: others(request),
        files: request.file.clone(),
        named: named(request)?,
        share: request.share.clone(),
        folder: env::current_dir().context("the working folder is gone")?,
        follow: is_seen,
    };
    let outcome = vm::run_and_follow(&request_of_guest, &mut show).map_err(explain)?;
    if outcome.broken > 0 {
        say(&format!(
            "started again {} times: the emulator broke the guest",
            outcome.broken
        ));
    }
    print(request, &outcome)?;
    if let Some(name) = outcome.killed_for_memory() {
        say(&format!(
            "the guest's {} MiB were not enough: its kernel killed {name}; --memory gives it more",
            request.memory
        ));
    }
    if let Some(share) = &request.share {
        outcome
            .changed
            .iter()
            .try_for_each(|file| write_back(share, file))?;
    }
    Ok(match outcome.end {
        End::Exited(status) => status,
        End::TimedOut => {
            say(&format!(
                "no result: the command was still running after {}",
                request.timeout
            ));
            Status::Inconclusive.into()
        }
        End::NoResult { reason } => {
            say(&format!("no result: {reason}"));
            Status::Inconclusive.into()
        }
    })
}

fn speed(text: &str) -> Result<Speed, String> {
    let known = || Speed::MIPS.map(|mips| mips.to_string()).join(", ");
    let mips = text.parse().ok().and_then(Speed::from_mips);
    mips.ok_or_else(|| format!("speeds are {}", known()))
}

/// The programs to bring: those that are named, and those of `--scheduler COMMAND`, which stand
/// inside of a word.
fn others(request: &Vm) -> Vec<String> {
    const OPTION: &str = "--scheduler";
    let mut programs = request.with.clone();
    let words = &request.command;
    let apart = words.iter().zip(words.iter().skip(1));
    let apart = apart.filter_map(|(option, text)| (option == OPTION).then_some(text.as_str()));
    let joined = words
        .iter()
        .filter_map(|word| word.strip_prefix(OPTION)?.strip_prefix('='));
    for text in apart.chain(joined) {
        let command = shlex::split(text).unwrap_or_default();
        programs.extend(command.into_iter().take(1));
    }
    programs
}

/// The programs of runslice that the command starts by their names.
fn named(request: &Vm) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let mut named = own_name()?;
    let is_word = |it: &String| it == programs::REPRODUCE;
    let is_verb = request
        .command
        .starts_with(&["runslice", "reproduce"].map(str::to_owned));
    if is_verb || request.with.iter().any(is_word) {
        named.push((
            programs::REPRODUCE.to_owned(),
            programs::find(programs::REPRODUCE)?,
        ));
    }
    Ok(named)
}

/// Shows what the command printed just now.
fn show(stream: OutputStream, bytes: &[u8]) {
    // Somebody who has gone away is told at the end.
    let _ = match stream {
        OutputStream::Stdout => io::stdout().write_all(bytes).and(io::stdout().flush()),
        OutputStream::Stderr => io::stderr().write_all(bytes),
    };
}

fn print(request: &Vm, outcome: &GuestOutcome) -> anyhow::Result<()> {
    let [stdout, stderr] = outcome.followed;
    io::stdout().write_all(rest(&outcome.stdout, stdout))?;
    io::stdout().flush()?;
    io::stderr().write_all(rest(&outcome.stderr, stderr))?;
    if request.kernel_log {
        io::stderr().write_all(outcome.kernel_log.as_bytes())?;
    }
    Ok(())
}

/// What was not shown yet. Of a command that has cut its own output off, all.
fn rest(printed: &[u8], shown: usize) -> &[u8] {
    printed.get(shown..).unwrap_or(printed)
}

fn write_back(share: &Path, file: &ChangedFile) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;

    let path = share.join(&file.path);
    if let Some(folder) = path.parent() {
        folder::make_folders(folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let permissions = fs::Permissions::from_mode(file.mode);
    let written = folder::create(&path)
        .and_then(|mut to| to.write_all(&file.contents))
        .and_then(|()| fs::set_permissions(&path, permissions));
    Ok(written.map_err(model::CannotWrite::at(path.display()))?)
}

fn say(text: &str) {
    crate::say::say("vm", text);
}
