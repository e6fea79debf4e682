//! What the programs `runslice-reproduce` and `runslice-mcp` share with this one, besides questions
//! (`ask`) and what shows answers (`show`): words of a command line, files, notes, exit statuses,
//! keys, kept results and sessions on kernels.

use std::io::{self, Write as _};
use std::process::ExitCode;

use ask::error::AdviceOf;

use crate::about::About;
use crate::cli::Verb;
use crate::{exit, interrupt, of_words, programs};

pub use crate::computer::COMPUTER;
pub use crate::exit::{Status, UnsupportedError, UsageError, in_full};
pub use crate::fidelity::KernelPlace;
pub use crate::kind::{EXPERIMENTS, WordKind, mistaken};
pub use crate::look::width;
pub use crate::say::say;
pub use crate::store::{RUNS_REAL, SIMULATES, Store};
pub use crate::verb::reproduce::{ExperimentMachine, Reproduce};

/// The command of this call, for results.
#[must_use]
pub fn command() -> String {
    About::command()
}

/// Keys of draws.
pub mod secret {
    pub use crate::secret::{read, sha256};
}

/// Files that results are written to.
pub mod output {
    pub use crate::output::{announce, can_write, form, make_folder, open, page_file, write_new};
}

#[cfg(not(feature = "live"))]
pub use crate::without_kernel::lacks as without_kernel;

/// Commands on kernels.
#[cfg(feature = "live")]
pub mod on_kernel {
    pub use crate::on_kernel::guest::{OWN_NAME, failure, own_name};
    pub use crate::on_kernel::running::{WAY, check_host, release};
    pub use crate::on_kernel::series::{Ran, SeriesPlan, SeriesRun, SeriesScheduler};
    pub use crate::programs::runslice;
}

/// The program `runslice-reproduce`: has `run` do what its words ask for. `knows` gives the advice
/// of errors of its own.
pub fn reproduce(
    knows: AdviceOf,
    run: impl FnOnce(&Reproduce) -> anyhow::Result<Status>,
) -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.len() == 1 && words.all(|it| it == "--version" || it == "-V") {
        // Nobody can be told when the output is closed.
        let _ = writeln!(io::stdout(), "{} {}", programs::REPRODUCE, About::VERSION);
        return ExitCode::SUCCESS;
    }
    programs::this_is(programs::REPRODUCE);
    exit::know(knows);
    interrupt::listen();
    let status = of_words(&programs::words(), |verb| match verb {
        Verb::Reproduce(request) => Ok(run(&request)?.into()),
        _ => unreachable!("the words begin with `reproduce`"),
    });
    // Who has closed standard output wants no more.
    let _ = io::stdout().flush();
    ExitCode::from(status)
}
