//! Streams of events that tests are made of, here and in the crates above.

use model::{
    CpuId, Event, EventKind, EventWords, Header, MachineSpec, PrevState, SimTime, Sink, TaskGroup,
    TaskId,
};

/// A header with two groups (`solo` of one task, `pair` of two with nice 5) and one name of each
/// sort.
#[must_use]
pub fn header(cpus: u16) -> Header {
    let group = |name: &str, nice, count| TaskGroup {
        name: name.to_owned(),
        nice,
        count,
    };
    Header {
        policy: "fifo".to_owned(),
        workload: "test".to_owned(),
        machine: MachineSpec {
            cpus,
            ..MachineSpec::default()
        },
        seed: 7,
        duration: None,
        groups: vec![group("solo", 0, 1), group("pair", 5, 2)],
        spans: vec!["request".to_owned()],
        deadlines: vec![("frame".to_owned(), "missed frame".to_owned())],
        counters: vec!["messages".to_owned()],
        phases: vec!["think".to_owned(), "work".to_owned()],
    }
}

/// An event of these numbers: `detail`, `a` and `b`.
///
/// # Panics
/// If they mean nothing.
#[must_use]
pub fn raw(at: (SimTime, CpuId, TaskId), kind: EventKind, (detail, a, b): (u8, u64, u64)) -> Event {
    let event = Event::from_words(at, kind, EventWords { detail, a, b });
    event.expect("numbers that mean something")
}

/// `event` with the bits of these numbers beside its own.
///
/// # Panics
/// If they mean nothing.
#[must_use]
pub fn with(event: Event, (detail, a, b): (u8, u64, u64)) -> Event {
    let own = event.words();
    let words = (own.detail | detail, own.a | a, own.b | b);
    raw((event.time, event.cpu, event.task), event.kind, words)
}

/// An event without payload.
///
/// # Panics
/// If its kind needs one.
#[must_use]
pub fn event(ns: u64, kind: EventKind, cpu: u16, task: TaskId) -> Event {
    let time = SimTime::from_nanos(ns);
    raw((time, CpuId(cpu), task), kind, (0, 0, 0))
}

/// Writes a stream down in the order of its events. Every method appends one event.
#[derive(Default)]
pub struct StreamWriter {
    /// The events so far.
    pub events: Vec<Event>,
}

impl StreamWriter {
    /// Without events.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// `event` as it is.
    #[must_use]
    pub fn push(mut self, event: Event) -> Self {
        self.events.push(event);
        self
    }

    /// `task` comes to be as member `index` of `group`.
    #[must_use]
    pub fn born(self, ns: u64, task: u32, group: u32, index: u32) -> Self {
        let new = event(ns, EventKind::New, 0, TaskId(task));
        let pid = 1000 + u64::from(task);
        let parent = u64::from(TaskId::NONE.0) << 32;
        self.push(with(
            new,
            (0, u64::from(index) << 32 | u64::from(group), pid | parent),
        ))
    }

    /// The start of a new task, at `cpu`.
    #[must_use]
    pub fn start(self, ns: u64, task: u32, cpu: u16) -> Self {
        self.wake(ns, task, cpu, 1)
    }

    /// A wakeup by an interrupt on `cpu`, which also takes the task.
    #[must_use]
    pub fn wakeup(self, ns: u64, task: u32, cpu: u16) -> Self {
        self.wake(ns, task, cpu, 0)
    }

    fn wake(self, ns: u64, task: u32, cpu: u16, new: u64) -> Self {
        let wakeup = event(ns, EventKind::Wakeup, cpu, TaskId(task));
        self.push(with(
            wakeup,
            (0, u64::from(cpu) << 32 | u64::from(TaskId::NONE.0), new),
        ))
    }

    /// `cpu` changes from a task in a state, or from idle, to a task, or to idle.
    #[must_use]
    pub fn switch(
        self,
        ns: u64,
        cpu: u16,
        prev: Option<(u32, PrevState)>,
        next: Option<u32>,
    ) -> Self {
        let (prev, state) = prev.unwrap_or((TaskId::NONE.0, PrevState::Idle));
        let next = next.map_or(TaskId::NONE, TaskId);
        let switch = event(ns, EventKind::Switch, cpu, next);
        self.push(with(switch, (state as u8, u64::from(prev), 0)))
    }

    /// The last switch costs `ns`.
    ///
    /// # Panics
    /// If there is no event.
    #[must_use]
    pub fn overhead(mut self, ns: u64) -> Self {
        let last = self.events.last_mut().expect("a stream has a switch");
        *last = with(*last, (0, 0, ns));
        self
    }

    /// `task` comes from another CPU.
    #[must_use]
    pub fn migrate(self, ns: u64, task: u32, from: u16, to: u16) -> Self {
        let migrate = event(ns, EventKind::Migrate, to, TaskId(task));
        self.push(with(migrate, (0, u64::from(from), 0)))
    }

    /// `task` exits.
    #[must_use]
    pub fn exit(self, ns: u64, task: u32, cpu: u16) -> Self {
        self.push(event(ns, EventKind::Exit, cpu, TaskId(task)))
    }

    /// An interrupt takes `span` nanoseconds from `task`, or from an idle CPU.
    #[must_use]
    pub fn steal(self, ns: u64, cpu: u16, task: Option<u32>, span: u64) -> Self {
        let task = task.map_or(TaskId::NONE, TaskId);
        self.push(with(event(ns, EventKind::Steal, cpu, task), (0, span, 0)))
    }

    /// Any other event of a task on CPU 0.
    #[expect(clippy::too_many_arguments, reason = "the fields of an event")]
    #[must_use]
    pub fn on(self, ns: u64, kind: EventKind, task: u32, a: u64, b: u64) -> Self {
        self.push(with(event(ns, kind, 0, TaskId(task)), (0, a, b)))
    }

    /// Sends the stream to `sink`, on a machine of `cpus` CPUs, until `end`.
    pub fn feed(&self, sink: &mut dyn Sink, cpus: u16, end: u64) {
        sink.begin(&header(cpus));
        sink.events(&self.events);
        sink.finish(SimTime::from_nanos(end));
    }
}

/// Holds the part of docs/events.md that begins with the mark `mark` to be `want`, or writes it
/// there if the environment has `UPDATE_GOLDEN`.
///
/// # Panics
/// If it is another, or the document has no such part.
pub fn check_docs(mark: &str, want: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/events.md");
    let text = std::fs::read_to_string(path).unwrap();
    let opening = format!("<!-- {mark}: written by");
    let begin = text.find(&opening).expect("docs/events.md has the mark");
    let begin = begin + text[begin..].find("-->\n").unwrap() + 4;
    let end = begin
        + text[begin..]
            .find(&format!("<!-- end of {mark} -->"))
            .unwrap();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, format!("{}{want}{}", &text[..begin], &text[end..])).unwrap();
        return;
    }
    assert_eq!(
        &text[begin..end],
        want,
        "UPDATE_GOLDEN=1 rewrites docs/events.md"
    );
}
