//! The verbs that take a kernel.

mod bench;
mod doctor;
mod load;
mod play;
mod record;
mod run;
mod set;
mod status;
mod stop;
mod vm;

use clap::Subcommand;

use crate::exit::{Status, statuses};

const VM_EXIT_STATUSES: &str = "\
Exit status: that of the command, and without one
  1    failure: a bad file, or the computer refused something
  2    usage: an unknown option or program
  4    this computer lacks what a virtual machine needs; the message says what to do
  6    inconclusive: the command ran out of time, or the guest gave no result";

/// Commands on a kernel.
#[derive(Debug, Subcommand)]
pub enum KernelVerb {
    /// Attach a policy to this machine, for a time or for a command.
    #[command(after_help = statuses(&[Status::Ejected, Status::Unsupported, Status::Interrupted]))]
    Run(Box<run::Run>),

    /// Change knobs of the attached policy.
    #[command(after_help = statuses(&[Status::Unsupported]))]
    Set(set::Set),

    /// Show the scheduler of this machine, with its knobs and counters.
    #[command(after_help = statuses(&[Status::Unsupported]))]
    Status(status::StatusOf),

    /// Detach the policy; check that the kernel's own scheduler is back.
    #[command(after_help = statuses(&[Status::Unsupported]))]
    Stop(stop::Stop),

    /// Run a workload with real processes; print latency and CPU time.
    #[command(after_help = statuses(&[Status::Ejected, Status::Unsupported, Status::Interrupted]))]
    Play(Box<play::Play>),

    /// Record the load of this machine, for `sim --from` and `choose`.
    ///
    /// A recording has which task ran where and who woke whom. It takes root, and any Linux from
    /// 4.19 on. See docs/import.md.
    #[command(after_help = statuses(&[Status::Unsupported, Status::Interrupted]))]
    Record(Box<record::Record>),

    /// Run a benchmark on this machine, such as hackbench or a build.
    ///
    /// It runs under the scheduler that is active. To choose a policy, write `runslice run POLICY
    /// -- runslice load NAME`; to compare several, use `bench`.
    #[command(after_help = statuses(&[Status::Unsupported, Status::Interrupted]))]
    Load(Box<load::Load>),

    /// Run a command on another kernel, in a VM.
    #[command(after_help = VM_EXIT_STATUSES)]
    Vm(vm::Vm),

    /// Check whether this machine can run policies; say what to do.
    #[command(after_help = statuses(&[Status::Unsupported]))]
    Doctor(doctor::Doctor),

    /// Run a command under several schedulers and compare its time.
    #[command(after_help = statuses(&[
        Status::Ejected,
        Status::Unsupported,
        Status::Inconclusive,
        Status::Interrupted,
    ]))]
    Bench(Box<bench::Bench>),
}

/// Does what the user asked for.
///
/// # Errors
/// When a file is bad, the command line names something that does not exist, or this computer
/// refuses something.
pub fn run(verb: KernelVerb) -> anyhow::Result<u8> {
    let status: Status = match verb {
        // A command's own status, whatever it is.
        KernelVerb::Vm(request) => return vm::run(&request),
        KernelVerb::Run(request) => run::run(&request),
        KernelVerb::Set(request) => set::run(&request),
        KernelVerb::Status(request) => status::run(&request),
        KernelVerb::Stop(request) => stop::run(&request),
        KernelVerb::Doctor(request) => doctor::run(&request),
        KernelVerb::Play(request) => play::run(&request),
        KernelVerb::Record(request) => record::run(&request),
        KernelVerb::Load(request) => load::run(&request),
        KernelVerb::Bench(request) => bench::run(&request),
    }?;
    Ok(status.into())
}
