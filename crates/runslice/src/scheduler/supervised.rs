//! A program under supervision, and what is wanted of it besides its run.

use std::cell::RefCell;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use anyhow::Context as _;
use ask::services::Supervised;
use loader::{Settings, Shown, Supervisor};
use model::user_space::{
    ProgramEnd, ThreadId, ThreadKernel, ThreadTurn, UserSpace, UserSpaceError,
};
use model::{Nanos, Program};
use workload::RunSpec;

use super::stats::{self, Client, KeptMetrics};
use crate::progress::{Bar, CallLines};
use crate::say::say;
use crate::{files, output};

/// The supervisor, and who asks the program for its metrics.
pub struct Started {
    supervisor: Supervisor,
    client: Option<Client>,
    /// Until it has attached its policy: no simulated time tells how far it is.
    loading: Option<Bar>,
    /// From then on.
    calls: CallLines,
    name: String,
}

impl Started {
    /// Starts the program on the machine of `spec`.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(program: &Program, spec: &RunSpec) -> anyhow::Result<Rc<RefCell<Self>>> {
        let target = sim::target(&spec.machine);
        let settings = Settings {
            shown: Shown {
                machine: spec.machine.clone(),
                btf: target.btf().to_vec(),
                config: target.configuration(),
                cgroups: sim::cgroups(&spec.workload.cgroups),
                files: Vec::new(),
            },
            folder: program.folder.clone(),
            net: program.net,
            ..Settings::default()
        };
        let (command, args) = program
            .command
            .split_first()
            .context("a command has a word")?;
        let real = |word: &String| files::real(Path::new(word)).into_owned();
        let args: Vec<PathBuf> = args.iter().map(real).collect();
        let supervisor = Supervisor::start(&real(command), &args, settings)
            .with_context(|| format!("--scheduler `{}`", spec.policy.name))?;
        let client = program.stats.as_ref().map(|(path, every)| {
            let to = KeptMetrics::into_file(path)?;
            anyhow::Ok(Client::new(*every, to))
        });
        Ok(Rc::new(RefCell::new(Self {
            client: client.transpose()?,
            loading: Some(Bar::of_calls(&spec.policy.name)),
            calls: CallLines::begin(),
            name: spec.policy.name.clone(),
            supervisor,
        })))
    }
}

impl Started {
    fn end_loading(&mut self) {
        if let Some(bar) = self.loading.take() {
            bar.end();
        }
    }
}

impl UserSpace for Started {
    fn turn(
        &mut self,
        thread: ThreadId,
        now: Nanos,
        kernel: &mut dyn ThreadKernel,
    ) -> Result<ThreadTurn, UserSpaceError> {
        let turn = self.supervisor.turn(thread, now, kernel)?;
        if let Some(bar) = &mut self.loading {
            bar.set(self.supervisor.calls());
        }
        if let Some(at) = kernel.run_time() {
            self.end_loading();
            let (now, calls) = (Instant::now(), self.supervisor.calls());
            if let Some(line) = self.calls.line_due(now, calls, (&self.name, at)) {
                say("runslice", &line);
            }
        }
        if let Some(client) = &mut self.client {
            client.is_running = kernel.run_time().is_some();
        }
        Ok(turn)
    }

    fn woken(&mut self, kernel: &dyn ThreadKernel) -> Result<Vec<ThreadId>, UserSpaceError> {
        if let (Some(client), Some(time)) = (&mut self.client, kernel.run_time()) {
            let failed = |error| UserSpaceError::from(format!("--scheduler-stats: {error}"));
            let connect = || self.supervisor.connect(stats::SOCKET);
            client.look(time, connect).map_err(failed)?;
        }
        self.supervisor.woken(kernel)
    }

    fn is_waiting_for_files(&self) -> bool {
        let asks = self.client.as_ref().is_some_and(|client| client.is_running);
        asks || self.supervisor.is_waiting_for_files()
    }

    fn interrupt(&mut self) -> Result<Vec<ThreadId>, UserSpaceError> {
        if let Some(client) = &mut self.client {
            client.hang_up();
        }
        self.supervisor.interrupt()
    }

    fn waits(&self) -> Vec<String> {
        self.supervisor.waits()
    }

    fn calls(&self) -> u64 {
        self.supervisor.calls()
    }

    fn end(&self) -> Option<ProgramEnd> {
        self.supervisor.end()
    }
}

impl Supervised for Started {
    // What it asked for and is not there, and what it did not tell, a line each.
    fn close(&mut self, program: &Program) -> anyhow::Result<Vec<String>> {
        self.end_loading();
        let mut notes = self.supervisor.summary();
        if let Some(client) = self.client.take() {
            notes.extend(client.close()?);
        }
        let Some(path) = &program.output else {
            return Ok(notes);
        };
        let printed = self.supervisor.output();
        let printed = printed.context("cannot read what the program has printed")?;
        let mut to = output::create(path)?;
        for text in printed {
            to.write_all(&text)?;
        }
        to.flush()?;
        Ok(notes)
    }
}
