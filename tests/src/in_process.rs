//! A scheduler's own program that is no process: it loads and attaches an object of the tests, and
//! then does what a test says.

use std::sync::Arc;

use bpf::{Image, Object, Target};
use model::user_space::{
    BpfAnswer, BpfCall, BpfId, ProgramEnd, ThreadId, ThreadKernel, ThreadTurn, TurnEnd, UserSpace,
    UserSpaceError,
};
use model::{Nanos, Sink, Summary};
use sim::{ProgramReport, Simulation};
use workload::RunSpec;

use crate::library::Library;

/// What a thread finds in its turn.
pub struct Within<'a> {
    /// What was loaded.
    pub library: &'a Library,
    /// Links of the programs that are no callbacks.
    pub links: &'a [BpfId],
    /// The machine.
    pub kernel: &'a mut dyn ThreadKernel,
    /// Whose turn it is.
    pub thread: ThreadId,
    /// The uptime.
    pub now: Nanos,
    /// Whether it was asked to end.
    pub interrupted: bool,
}

impl Within<'_> {
    /// The values of an array, or of the variables of a section.
    ///
    /// # Panics
    /// If the map cannot be read.
    pub fn read(&mut self, map: &str) -> Vec<u8> {
        let map = self.library.map_called(map);
        let lookup = BpfCall::Lookup {
            map,
            key: vec![0; 4],
            flags: 0,
            delete: false,
        };
        match self.kernel.bpf(self.thread, lookup) {
            Ok(BpfAnswer::Bytes(bytes)) => bytes,
            other => panic!("{other:?}"),
        }
    }
}

/// What a thread does in its turn: how the turn ends, and which threads it wakes.
pub type Step = Box<dyn FnMut(&mut Within<'_>) -> (TurnEnd, Vec<ThreadId>)>;

/// The program.
struct InProcess {
    file: Arc<[u8]>,
    image: Image,
    target: Target,
    /// Whether its programs that are no callbacks are attached.
    attaches: bool,
    step: Step,
    loaded: Option<(Library, Vec<BpfId>)>,
    /// The ring buffer that the first thread polls when it waits.
    polled: Option<&'static str>,
    interrupted: bool,
    ended: bool,
}

/// What every turn costs.
pub const TURN: Nanos = Nanos::from_micros(5);

/// Runs `spec` with a program that attaches all of its object in its first turn, the table last,
/// and does what `step` says at the end of that turn and in every other one. Programs that are no
/// callbacks are left alone unless it `attaches` them. When programs have written to the ring
/// buffer `polled`, its first thread wakes.
///
/// # Errors
/// As [`Simulation::start`].
///
/// # Panics
/// If the object cannot be loaded.
pub fn run(
    spec: &RunSpec,
    sink: &mut dyn Sink,
    polled: Option<&'static str>,
    (attaches, step): (bool, Step),
) -> Result<(Summary, ProgramReport), sim::Error> {
    let target = sim::target(&spec.machine);
    let file = Arc::clone(&spec.policy.object);
    let image = Object::parse(&file).and_then(|object| object.link(&target));
    let program = InProcess {
        image: image.expect("the object is linked"),
        file,
        target,
        attaches,
        step,
        loaded: None,
        polled,
        interrupted: false,
        ended: false,
    };
    let finished = Simulation::new(spec)
        .with_sink(sink)
        .with_program(Box::new(program), false)
        .start()?;
    let report = finished.program.expect("the run has a program");
    Ok((finished.summary, report))
}

impl InProcess {
    fn load(&mut self, thread: ThreadId, kernel: &mut dyn ThreadKernel) {
        kernel.spawn(thread, "loader");
        let mut call = |call| {
            let answer = kernel.bpf(thread, call);
            answer.map_err(|refused| format!("{refused:?}"))
        };
        let library = Library::load(&self.file, self.image.clone(), &self.target, &mut call);
        let links = if self.attaches {
            library.attach_programs(&mut call)
        } else {
            Vec::new()
        };
        for table in &library.image().struct_ops {
            library.attach(&mut call, table);
        }
        self.loaded = Some((library, links));
    }
}

impl UserSpace for InProcess {
    fn turn(
        &mut self,
        thread: ThreadId,
        now: Nanos,
        kernel: &mut dyn ThreadKernel,
    ) -> Result<ThreadTurn, UserSpaceError> {
        if self.loaded.is_none() {
            self.load(thread, kernel);
        }
        let (library, links) = self.loaded.as_ref().expect("just loaded");
        let (stop, woken) = (self.step)(&mut Within {
            library,
            links,
            kernel,
            thread,
            now,
            interrupted: self.interrupted,
        });
        self.ended |= stop == TurnEnd::Exit && thread == ThreadId(0);
        Ok(ThreadTurn {
            stop,
            cost: TURN,
            woken,
        })
    }

    fn woken(&mut self, kernel: &dyn ThreadKernel) -> Result<Vec<ThreadId>, UserSpaceError> {
        let (Some((library, _)), Some(polled)) = (&self.loaded, self.polled) else {
            return Ok(Vec::new());
        };
        let is_ready = kernel.is_ready(library.map_called(polled));
        Ok(is_ready.then_some(ThreadId(0)).into_iter().collect())
    }

    fn is_waiting_for_files(&self) -> bool {
        false
    }

    fn interrupt(&mut self) -> Result<Vec<ThreadId>, UserSpaceError> {
        self.interrupted = true;
        Ok(vec![ThreadId(0)])
    }

    fn waits(&self) -> Vec<String> {
        vec!["what the test says".to_owned()]
    }

    fn end(&self) -> Option<ProgramEnd> {
        self.ended.then(|| ProgramEnd {
            status: 0,
            last_lines: String::new(),
        })
    }
}
