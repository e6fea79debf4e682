//! A recording in two halves: a load of the first, and what tasks went through in both.

use std::io::{BufRead as _, BufReader, Seek as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use model::{Advised, Event, EventMask, Header, Nanos, SimTime, Sink};
use stats::Blocks;
use traces::foreign::{Imported, Window};
use workload::{CostScale, RecordedLoad, Workload};

use super::{MOST_OPERATIONS, check_length, set_policies, stem};
use crate::error::UsageError;
use crate::goal::family;
use crate::kind::WordKind;
use crate::note::Topic;
use crate::services::{Content, Services};

/// A recording that was read once.
#[derive(Debug)]
pub struct KnownRecording {
    path: PathBuf,
    window: Window,
    /// Names, and the machine as far as the recording says.
    pub header: Header,
    /// Its last moment.
    pub end: SimTime,
    /// The kernel's release, if it is a trace of another program that says it.
    pub release: Option<String>,
    /// Whether it is a trace of another program.
    pub is_foreign: bool,
}

impl KnownRecording {
    /// Reads a recording for the first time, and says what was found in it.
    ///
    /// # Errors
    /// When it cannot be read again and again, or is no recording; the message names it.
    pub fn read(services: &Services<'_>, path: &Path, window: Window) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        let (file, is_foreign) = open(services, path)?;
        if is_foreign {
            let whole =
                traces::foreign::read(
                    file,
                    &stem(path),
                    window,
                    &mut |_| ControlFlow::Continue(()),
                );
            let Imported {
                header,
                end,
                findings,
                ..
            } = whole.with_context(|| name)?;
            for sentence in findings.sentences() {
                services.note(Topic::Recording, sentence);
            }
            return Ok(Self {
                path: path.to_owned(),
                window,
                header,
                end,
                release: findings.kernel,
                is_foreign,
            });
        }
        if window != Window::default() {
            bail!("{name}: --window is for traces of other programs, not for a file of --events");
        }
        let mut ends = Ends::default();
        traces::replay(file, &mut ends).with_context(|| name.clone())?;
        Ok(Self {
            path: path.to_owned(),
            window,
            header: ends.header.with_context(|| name)?,
            end: ends.end,
            release: None,
            is_foreign,
        })
    }

    /// Reads it again: what happened in each of so many blocks, and a load of what comes before
    /// `until`.
    ///
    /// # Errors
    /// When no task ran before `until`, or there is more of it than a load may have.
    pub fn cut(
        &self,
        services: &Services<'_>,
        blocks: usize,
        until: SimTime,
    ) -> anyhow::Result<(Blocks, Workload)> {
        let name = self.path.display().to_string();
        let mut halves = Halves {
            blocks: Blocks::new(self.end.since(SimTime::ZERO), blocks, family),
            load: RecordedLoad::new(),
            until,
        };
        self.replay(services, &mut halves)
            .with_context(|| name.clone())?;
        let Halves { blocks, load, .. } = halves;
        ensure!(
            load.operations() <= MOST_OPERATIONS,
            Advised::new(
                format!("{name}: half of it is too long for a load"),
                "take a part with --window"
            )
        );
        check_length(&load, &name)?;
        let load = load.into_workload(&name, CostScale::ONE);
        let load = load.filter(|load| !load.groups.is_empty());
        let load = load.with_context(|| format!("{name}: no task ran in its first half"))?;
        Ok((blocks, load))
    }

    fn replay(&self, services: &Services<'_>, to: &mut Halves) -> anyhow::Result<()> {
        let (file, is_foreign) = open(services, &self.path)?;
        ensure!(
            is_foreign == self.is_foreign,
            "it changed while it was read"
        );
        if !is_foreign {
            return Ok(traces::replay(file, to)?);
        }
        to.begin(&self.header);
        let imported =
            traces::foreign::read(file, &stem(&self.path), self.window, &mut |events| {
                to.events(events);
                ControlFlow::Continue(())
            })?;
        to.finish(imported.end);
        set_policies(&imported, &mut to.load);
        Ok(())
    }

    /// Its length.
    #[must_use]
    pub fn length(&self) -> Nanos {
        self.end.since(SimTime::ZERO)
    }
}

/// A file that can be read again, from its begin on, and whether it is a trace of another program.
fn open(
    services: &Services<'_>,
    path: &Path,
) -> anyhow::Result<(BufReader<Box<dyn Content>>, bool)> {
    if let Some(mistaken) = services.misplaced_file(path, WordKind::Recording) {
        return Err(UsageError::new(mistaken).into());
    }
    let name = path.display();
    let file = services.open(path).map_err(model::CannotRead::at(&name))?;
    ensure!(
        file.bytes.is_some(),
        "{name} is no plain file: a recording is read twice for a score"
    );
    let mut file = BufReader::new(file.content);
    let begin = file.fill_buf().map_err(model::CannotRead::at(&name))?;
    let is_foreign = traces::foreign::is_foreign(begin);
    file.rewind().map_err(model::CannotRead::at(&name))?;
    Ok((file, is_foreign))
}

/// The begin and the end of a recording.
#[derive(Debug, Default)]
struct Ends {
    header: Option<Header>,
    end: SimTime,
}

impl Sink for Ends {
    fn wants(&self) -> EventMask {
        EventMask::SCHED
    }

    fn begin(&mut self, header: &Header) {
        self.header = Some(header.clone());
    }

    fn events(&mut self, _: &[Event]) {}

    fn finish(&mut self, end: SimTime) {
        self.end = end;
    }
}

/// All events to the blocks, and those before a moment to the load.
struct Halves {
    blocks: Blocks,
    load: RecordedLoad,
    until: SimTime,
}

impl Sink for Halves {
    fn wants(&self) -> EventMask {
        EventMask::SCHED
    }

    fn begin(&mut self, header: &Header) {
        self.blocks.begin(header);
        self.load.begin(header);
    }

    fn events(&mut self, events: &[Event]) {
        self.blocks.events(events);
        let early = events.partition_point(|event| event.time < self.until);
        // What is refused later must not fill the memory before.
        if self.load.operations() <= MOST_OPERATIONS {
            self.load.events(&events[..early]);
        }
    }

    fn finish(&mut self, end: SimTime) {
        self.blocks.finish(end);
        self.load.finish(self.until.min(end));
    }
}
