//! Reads workload files.

use toml::de::DeTable;

use super::names::Names;
use super::parser::Parser;
use super::{StopRule, Workload};
use model::file::{FileError, Problem};
use model::file::{FileTable, FileValue, Source, text, texts};
use model::{Advised, Hardware, Kernel, MachineSpec, Nanos, Profile, Textbook};

mod cgroups;
mod declarations;
mod devices;
mod hardware;
mod storage;
mod values;

/// Most instances of one declaration.
const COUNT_MAX: i64 = 1_000_000;

/// Tables of the language that nothing executes yet.
const NOT_SIMULATED: [&str; 2] = ["profile", "scenario"];

impl Workload {
    /// Reads a workload. `file` is what messages call it.
    ///
    /// # Errors
    /// If `text` is no workload: the first mistake, with its place.
    pub fn parse(text: &str, file: &str) -> Result<Self, FileError> {
        Self::parse_with(text, file, &[])
    }

    /// Reads a workload with other values for some parameters of its `scale`.
    ///
    /// # Errors
    /// If `text` is no workload, or has no such parameter.
    pub fn parse_with(text: &str, file: &str, scale: &[(String, i64)]) -> Result<Self, FileError> {
        let nowhere = |_: &str| {
            let names = Profile::SHIPPED.map(|profile| format!("\"{}\"", profile.name()));
            let expected = format!("expected {}", names.join(" or "));
            Err(Advised::new("there are no files here", expected))
        };
        let unknown = |_: &str| {
            let expected = "expected a machine of `runslice list --machines`";
            Err(Advised::new("there are no files here", expected))
        };
        let files = MachineFiles {
            profile: &nowhere,
            hardware: &unknown,
        };
        Self::parse_in(text, file, scale, files)
    }

    /// Parses a workload, and takes the machine's profile and hardware from files if the workload
    /// names some.
    ///
    /// # Errors
    /// The errors of [`parse_with`](Self::parse_with), and if a reader of files has one.
    pub fn parse_in(
        text: &str,
        file: &str,
        scale: &[(String, i64)],
        files: MachineFiles<'_>,
    ) -> Result<Self, FileError> {
        let source = Source { text, file };
        let root = source.toml()?;
        FileReader::new(&source, root.get_ref(), scale)?.workload(files)
    }
}

/// Readers of the files that `[machine]` may name. Each is given what stands in the workload, and
/// says what is wrong with it.
#[derive(Clone, Copy)]
pub struct MachineFiles<'a> {
    /// Of a profile.
    pub profile: &'a dyn Fn(&str) -> Result<Profile, Advised>,
    /// Of hardware that does not come with the program.
    pub hardware: &'a dyn Fn(&str) -> Result<Hardware, Advised>,
}

/// Tables of one kind, in the order of the file.
type Entries<'a> = Vec<(&'a str, usize, FileValue<'a>)>;

struct FileReader<'a> {
    source: &'a Source<'a>,
    names: Names,
    head: FileTable<'a>,
    machine: Option<FileValue<'a>>,
    cgroups: Entries<'a>,
    channels: Entries<'a>,
    locks: Entries<'a>,
    barriers: Entries<'a>,
    semaphores: Entries<'a>,
    conditions: Entries<'a>,
    listeners: Entries<'a>,
    requests: Entries<'a>,
    interrupts: Entries<'a>,
    disks: Entries<'a>,
    memory: Option<FileValue<'a>>,
    hotplugs: Entries<'a>,
    deadlines: Entries<'a>,
    groups: Entries<'a>,
}

impl<'a> FileReader<'a> {
    fn new(
        source: &'a Source<'a>,
        root: &'a DeTable<'a>,
        scale: &[(String, i64)],
    ) -> Result<Self, FileError> {
        let mut root = FileTable::root(source, root);
        let refused = root
            .entries()
            .into_iter()
            .find(|(name, ..)| NOT_SIMULATED.contains(name));
        if let Some((name, at, _)) = refused {
            return Err(source.error(at, Problem::NotSimulated(format!("[{name}]"))));
        }
        let head = root.require("workload", "a table with the workload's name")?;
        let reader = Self {
            source,
            names: Names::default(),
            head: FileTable::new(source, "[workload]".to_owned(), head)?,
            machine: root.get("machine"),
            cgroups: declared(source, &mut root, "cgroup")?,
            channels: declared(source, &mut root, "chan")?,
            locks: declared(source, &mut root, "lock")?,
            barriers: declared(source, &mut root, "barrier")?,
            semaphores: declared(source, &mut root, "sem")?,
            conditions: declared(source, &mut root, "cond")?,
            listeners: declared(source, &mut root, "listen")?,
            requests: declared(source, &mut root, "arrival")?,
            interrupts: declared(source, &mut root, "irq")?,
            disks: declared(source, &mut root, "disk")?,
            memory: root.get("mem"),
            hotplugs: declared(source, &mut root, "hotplug")?,
            deadlines: declared(source, &mut root, "deadline")?,
            groups: declared(source, &mut root, "task")?,
        };
        let no_task = root.missing("task", "at least one table [task.NAME]");
        root.finish()?;
        if reader.groups.is_empty() {
            return Err(no_task);
        }
        reader.with_scale(scale)
    }

    /// Reads the parameters: everything else may use them.
    fn with_scale(mut self, set: &[(String, i64)]) -> Result<Self, FileError> {
        let Some(value) = self.head.get("scale") else {
            return self.refuse_unknown_scale(set, 0);
        };
        let table = FileTable::new(self.source, "scale".to_owned(), value)?;
        for (name, at, value) in table.entries() {
            self.check_name(name, at)?;
            let file_value = self.integer(value, i64::MIN..=i64::MAX, name)?;
            let other = set.iter().rev().find(|(known, _)| known == name);
            let value = other.map_or(file_value, |(_, value)| *value);
            self.names.scale.push((name.to_owned(), value));
        }
        self.refuse_unknown_scale(set, value.span().start)
    }

    fn refuse_unknown_scale(self, set: &[(String, i64)], at: usize) -> Result<Self, FileError> {
        let known = || self.names.scale.iter().map(|(name, _)| name.as_str());
        for (name, _) in set {
            if !known().any(|scale| scale == name) {
                return Err(self
                    .source
                    .error(at, Problem::unknown("parameter", name, known())));
            }
        }
        Ok(self)
    }

    fn workload(mut self, files: MachineFiles<'_>) -> Result<Workload, FileError> {
        let cgroups = self.cgroups()?;
        let channels = self.channels()?;
        let locks = self.locks()?;
        let barriers = self.barriers()?;
        let deadlines = self.deadlines()?;
        let semaphores = self.semaphores()?;
        let conditions = self.conditions()?;
        let listeners = self.listeners()?;
        let disks = self.disks()?;
        let memory = self.memory()?;
        let requests = self.requests()?;
        for (name, at, _) in self.groups.clone() {
            self.check_name(name, at)?;
            self.names.groups.push(name.to_owned());
        }
        let groups = self.groups()?;
        let interrupts = self.interrupts()?;
        let hotplugs = self.hotplugs()?;
        let machine = self.machine(files)?;
        let name = self.head.require("name", "a string")?;
        let name = text(self.source, name, "a string")?;
        self.check_length(name.text, name.place(0))?;
        let name = name.text.to_owned();
        let seed = self.head.get("seed");
        let seed = seed.map_or(Ok(1), |seed| self.integer(seed, 0..=i64::MAX, "the seed"))?;
        let stop = self.stop()?;
        let start_jitter = self.start_jitter()?;
        self.head.finish()?;
        Ok(Workload {
            name,
            file: self.source.file.to_owned(),
            seed: seed.unsigned_abs(),
            stop,
            machine,
            start_jitter,
            begin: None,
            scale: self.names.scale,
            cgroups,
            channels,
            locks,
            barriers,
            semaphores,
            conditions,
            listeners,
            requests,
            interrupts,
            disks,
            memory,
            hotplugs,
            deadlines,
            groups,
            spans: self.names.spans,
            counters: self.names.counters,
            phases: self.names.phases,
        })
    }

    fn machine(&self, files: MachineFiles<'_>) -> Result<MachineSpec, FileError> {
        let mut machine = MachineSpec::default();
        let Some(value) = self.machine else {
            return Ok(machine);
        };
        let mut table = FileTable::new(self.source, "[machine]".to_owned(), value)?;
        if let Some(kind) = table.get("kind") {
            return self.by_the_book(table, kind);
        }
        let mut integer = |key, low, high| -> Result<Option<i64>, FileError> {
            table
                .get(key)
                .map(|value| self.integer(value, low..=high, key))
                .transpose()
        };
        let cpus = integer("cpus", 1, 1024)?;
        let smt = integer("smt", 1, 2)?;
        let llc = integer("llc", 0, 1024)?;
        let node = integer("node", 0, 1024)?;
        let hz = integer("hz", 100, 1000)?;
        let narrow = |value: i64| u16::try_from(value).expect("the range was checked");
        machine.cpus = cpus.map_or(machine.cpus, narrow);
        machine.smt = smt.map_or(machine.smt, narrow);
        machine.llc = llc.map_or(machine.llc, narrow);
        machine.node = node.map_or(machine.node, narrow);
        for (key, size) in [("llc", machine.llc), ("node", machine.node)] {
            if let Some(value) = table.get(key).filter(|_| size > machine.cpus) {
                let most = format!("at most {}, the number of CPUs", machine.cpus);
                return Err(table.unexpected(value, &most));
            }
        }
        if let Some(value) = table.get("hz") {
            machine.hz = small(hz.expect("the key is there"));
            if ![100, 250, 300, 1000].contains(&machine.hz) {
                return Err(table.unexpected(value, "100, 250, 300 or 1000"));
            }
        }
        if let Some(profile) = table.get("profile") {
            let name = text(self.source, profile, "a profile's name or file")?;
            machine.profile = match Profile::shipped(name.text) {
                Some(shipped) => shipped,
                None => (files.profile)(name.text).map_err(|why| {
                    let what = format!("profile `{}`", name.text);
                    self.source
                        .error(name.place(0), Problem::Profile { what, why })
                })?,
            };
        }
        if let Some(kernel) = table.get("kernel") {
            machine.kernel = self.kernel(kernel)?;
        }
        let machine = self.hardware(&mut table, machine, files)?;
        table.finish()?;
        Ok(machine)
    }

    /// A machine as textbooks have it: beside its kind there is the kernel's version, and one CPU.
    fn by_the_book(
        &self,
        mut table: FileTable<'a>,
        kind: FileValue<'a>,
    ) -> Result<MachineSpec, FileError> {
        let mut machine = MachineSpec::by_the_book(self.choice(kind, &Textbook::NAMED)?);
        if let Some(cpus) = table.get("cpus") {
            self.integer(cpus, 1..=1, "cpus")?;
        }
        if let Some(kernel) = table.get("kernel") {
            machine.kernel = self.kernel(kernel)?;
        }
        table.finish()?;
        Ok(machine)
    }

    fn kernel(&self, value: FileValue<'a>) -> Result<Kernel, FileError> {
        self.choice(value, &Kernel::ALL.map(|kernel| (kernel.name(), kernel)))
    }

    fn start_jitter(&mut self) -> Result<Nanos, FileError> {
        let expected = "a span of time, as \"4ms\"";
        match self.head.text("start_jitter", expected)? {
            Some(span) => self.read(span, Parser::span),
            None => Ok(Nanos::ZERO),
        }
    }

    fn stop(&mut self) -> Result<StopRule, FileError> {
        let mut stop = StopRule::default();
        let Some(value) = self.head.get("stop") else {
            return Ok(stop);
        };
        let expected = "\"all-exit\", \"duration:30s\", \"task:NAME\" or \"arrival:NAME\"";
        for text in texts(self.source, value, expected)? {
            if text.text == "all-exit" {
                continue;
            }
            if let Some(name) = text.after("task:") {
                stop.groups.push(self.read(name, Parser::group)?);
            } else if let Some(name) = text.after("arrival:") {
                stop.requests.push(self.read(name, Parser::requests)?);
            } else if let Some(span) = text.after("duration:") {
                let span = self.read(span, Parser::span)?;
                stop.after = Some(stop.after.map_or(span, |after| after.min(span)));
            } else {
                let problem = Problem::unexpected(format!("\"{}\"", text.text), expected);
                return Err(self.source.error(text.place(0), problem));
            }
        }
        Ok(stop)
    }
}

/// The tables `[kind.NAME]`.
fn declared<'a>(
    source: &'a Source<'a>,
    root: &mut FileTable<'a>,
    kind: &'static str,
) -> Result<Entries<'a>, FileError> {
    let Some(value) = root.get(kind) else {
        return Ok(Vec::new());
    };
    Ok(FileTable::new(source, format!("{kind}.NAME"), value)?.entries())
}

fn small(value: i64) -> u32 {
    u32::try_from(value).expect("the range was checked")
}
