//! A stub of the simulated machine, and a driver of the supervisor's turns: tasks run one after
//! another, by the time at which they are ready.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use loader::{Settings, Supervisor};
use model::user_space::{
    BpfAnswer, BpfCall, BpfId, MapCreate, Mappable, ProgramEnd, Refused, SchedExt, SetSched,
    ThreadId, ThreadKernel, TurnEnd, UserSpace,
};
use model::{CpuTimes, Nanos, SimTime};

/// Where the simulated machine's uptime begins.
pub const BOOT: Nanos = Nanos::from_secs(3600);

fn refuse<T>(errno: i32) -> Result<T, Refused> {
    Err(Refused {
        errno,
        log: String::new(),
    })
}

#[derive(Default)]
struct Map {
    made: MapCreate,
    elements: BTreeMap<Vec<u8>, Vec<u8>>,
    pages: Option<File>,
}

impl Map {
    const fn is_array(&self) -> bool {
        matches!(self.made.kind, 2 | 6)
    }

    fn len(&self, cpus: usize) -> usize {
        let size = self.made.value_size as usize;
        if matches!(self.made.kind, 5 | 6) {
            size.next_multiple_of(8) * cpus
        } else {
            size
        }
    }

    fn place(&self, key: &[u8]) -> u64 {
        let index = u32::from_le_bytes(key.try_into().unwrap_or_default());
        u64::from(index) * u64::from(self.made.value_size).next_multiple_of(8)
    }
}

/// A kernel that believes every program and keeps what maps hold.
#[derive(Default)]
pub struct Stub {
    pub cpus: u16,
    next: u32,
    maps: BTreeMap<BpfId, Map>,
    /// What happened, a line each.
    pub log: Vec<String>,
    pub spawned: Vec<ThreadId>,
    pub attached: Option<BpfId>,
    pub arenas: Vec<(BpfId, u64)>,
    pub ready: bool,
    /// Whether maps lose what is written to them.
    pub forgets: bool,
    threads: u32,
}

impl Stub {
    fn create(&mut self) -> BpfId {
        self.next += 1;
        BpfId(self.next)
    }

    /// Its own pages, until a program shares its own.
    fn give_pages(&mut self, map: BpfId) {
        if let Some(Mappable { len, .. }) = self.mappable(map) {
            let file = tempfile::tempfile().expect("a file");
            file.set_len(len).expect("it grows");
            self.maps.entry(map).or_default().pages = Some(file);
        }
    }

    fn lookup(&self, map: BpfId, key: &[u8]) -> Result<BpfAnswer, Refused> {
        let Some(map) = self.maps.get(&map) else {
            return refuse(9);
        };
        let len = map.len(self.cpus.into());
        if self.forgets {
            return Ok(BpfAnswer::Bytes(vec![0; len]));
        }
        if let Some(pages) = &map.pages {
            let mut bytes = vec![0; len];
            pages
                .read_exact_at(&mut bytes, map.place(key))
                .expect("in the file");
            return Ok(BpfAnswer::Bytes(bytes));
        }
        match map.elements.get(key) {
            Some(value) => Ok(BpfAnswer::Bytes(value.clone())),
            None if map.is_array() => Ok(BpfAnswer::Bytes(vec![0; len])),
            None => refuse(2),
        }
    }

    fn update(&mut self, map: BpfId, key: Vec<u8>, value: Vec<u8>) -> Result<BpfAnswer, Refused> {
        let Some(map) = self.maps.get_mut(&map) else {
            return refuse(9);
        };
        if let Some(pages) = &map.pages {
            pages
                .write_all_at(&value, map.place(&key))
                .expect("in the file");
        } else {
            map.elements.insert(key, value);
        }
        Ok(BpfAnswer::Done)
    }

    fn next_key(&self, map: BpfId, key: Option<&[u8]>) -> Result<BpfAnswer, Refused> {
        let Some(map) = self.maps.get(&map) else {
            return refuse(9);
        };
        let mut keys = map.elements.keys();
        let next = keys.find(|it| key.is_none_or(|key| it.as_slice() > key));
        next.map_or(refuse(2), |it| Ok(BpfAnswer::Bytes(it.clone())))
    }
}

impl ThreadKernel for Stub {
    fn bpf(&mut self, thread: ThreadId, call: BpfCall) -> Result<BpfAnswer, Refused> {
        match call {
            BpfCall::BtfLoad { bytes } => {
                self.log.push(format!("{} btf {}", thread.0, bytes.len()));
                Ok(BpfAnswer::Created(self.create()))
            }
            BpfCall::MapCreate(made) => {
                self.log
                    .push(format!("{} map {} {}", thread.0, made.kind, made.name));
                let id = self.create();
                let map = Map {
                    made,
                    ..Map::default()
                };
                self.maps.insert(id, map);
                self.give_pages(id);
                Ok(BpfAnswer::Created(id))
            }
            BpfCall::Lookup { map, key, .. } => self.lookup(map, &key),
            BpfCall::Update {
                map, key, value, ..
            } => self.update(map, key, value),
            BpfCall::Delete { map, key } => {
                let map = self
                    .maps
                    .get_mut(&map)
                    .and_then(|it| it.elements.remove(&key));
                map.map_or(refuse(2), |_| Ok(BpfAnswer::Done))
            }
            BpfCall::NextKey { map, key } => self.next_key(map, key.as_deref()),
            BpfCall::ProgLoad(program) => {
                self.log.push(format!(
                    "{} prog {} {}",
                    thread.0, program.kind, program.name
                ));
                if program
                    .code
                    .chunks(8)
                    .any(|it| it[0] == 0x18 && it[1] >> 4 == 2)
                    && program.name == "global_reloc"
                {
                    return Err(Refused {
                        errno: 22,
                        log: "direct value offset of 1073741824 is not allowed".into(),
                    });
                }
                Ok(BpfAnswer::Created(self.create()))
            }
            BpfCall::LinkCreate { attach_type, .. } => {
                self.log.push(format!("{} link {attach_type}", thread.0));
                let id = self.create();
                if attach_type == 44 {
                    self.attached = Some(id);
                }
                Ok(BpfAnswer::Created(id))
            }
            BpfCall::TestRun { context, .. } => Ok(BpfAnswer::Ran { result: 0, context }),
            BpfCall::Close { object } => {
                self.log.push(format!("{} closes {}", thread.0, object.0));
                if self.attached == Some(object) {
                    self.log.push(format!("{} end of the link", thread.0));
                    self.attached = None;
                }
                Ok(BpfAnswer::Done)
            }
            BpfCall::StreamRead { .. } | BpfCall::IterRead { .. } => {
                Ok(BpfAnswer::Bytes(Vec::new()))
            }
            BpfCall::Freeze { .. } | BpfCall::LinkDetach { .. } => Ok(BpfAnswer::Done),
        }
    }

    fn mappable(&self, map: BpfId) -> Option<Mappable> {
        let made = &self.maps.get(&map)?.made;
        let entries = u64::from(made.max_entries);
        let (len, address) = match made.kind {
            2 if made.flags & 0x400 != 0 => {
                let size = u64::from(made.value_size).next_multiple_of(8);
                ((size * entries).next_multiple_of(4096), None)
            }
            27 | 31 => (8192 + 2 * entries, None),
            33 => (entries * 4096, Some(made.extra).filter(|it| *it != 0)),
            _ => return None,
        };
        Some(Mappable { len, address })
    }

    fn share(&mut self, map: BpfId, pages: File) -> std::io::Result<()> {
        let has_place = self.arenas.iter().any(|(arena, _)| *arena == map);
        if let Some(map) = self.maps.get_mut(&map) {
            // An arena of no address has no pages on the simulated machine.
            if map.made.kind == 33 && map.made.extra == 0 && !has_place {
                return Err(std::io::ErrorKind::InvalidInput.into());
            }
            map.pages = Some(pages);
        }
        Ok(())
    }

    fn store(&mut self, map: BpfId, offset: u64, bytes: &[u8]) -> Result<(), Refused> {
        let Some(map) = self.maps.get_mut(&map) else {
            return refuse(9);
        };
        let pages = map.pages.as_ref().expect("made with the map");
        pages.write_all_at(bytes, offset).expect("in the file");
        Ok(())
    }

    fn arena_at(&mut self, map: BpfId, address: u64) -> Result<(), Refused> {
        self.arenas.push((map, address));
        Ok(())
    }

    fn is_ready(&self, _map: BpfId) -> bool {
        self.ready
    }

    fn spawn(&mut self, thread: ThreadId, name: &str) -> (u32, u32) {
        self.log.push(format!("{} {name} begins", thread.0));
        self.spawned.push(thread);
        self.threads += 1;
        (1000, 999 + self.threads)
    }

    fn set_sched(&mut self, thread: ThreadId, change: SetSched) -> Result<(), Refused> {
        self.log.push(format!("{} {change:?}", thread.0));
        Ok(())
    }

    fn run_time(&self) -> Option<SimTime> {
        None
    }

    fn cpu_frequencies(&self) -> Vec<u32> {
        Vec::new()
    }

    fn cpu_times(&self) -> Vec<CpuTimes> {
        vec![CpuTimes::default(); self.cpus.into()]
    }

    fn sched_ext(&self) -> SchedExt {
        SchedExt {
            attached: self.attached.map(|_| "stub".into()),
            hotplug: 0,
        }
    }
}

/// A program that runs on the stub.
pub struct Driven<U> {
    pub user: U,
    pub kernel: Stub,
    pub now: Nanos,
    queue: BTreeMap<(Nanos, u64), ThreadId>,
    order: u64,
    pub turns: u64,
}

/// The settings of a program on a machine of so many CPUs.
pub fn settings(cpus: u16) -> Settings {
    let mut settings = Settings::default();
    settings.shown.machine.cpus = cpus;
    settings
}

impl Driven<Supervisor> {
    pub fn subject(args: &[&str], settings: Settings) -> Self {
        Self::start(
            env!("CARGO_BIN_EXE_runslice-loader-subject"),
            args,
            settings,
        )
    }

    pub fn start(program: &str, args: &[&str], settings: Settings) -> Self {
        let args: Vec<String> = args.iter().map(|it| (*it).to_owned()).collect();
        let cpus = settings.shown.machine.cpus;
        let user = Supervisor::start(program.as_ref(), &args, settings).expect("it starts");
        Self::of(user, cpus)
    }

    pub fn out(&self) -> String {
        let [out, _] = self.user.output().expect("there is output");
        String::from_utf8(out).expect("text")
    }

    pub fn err(&self) -> String {
        let [_, err] = self.user.output().expect("there is output");
        String::from_utf8(err).expect("text")
    }
}

impl<U: UserSpace> Driven<U> {
    pub fn of(user: U, cpus: u16) -> Self {
        let kernel = Stub {
            cpus,
            ..Stub::default()
        };
        let mut driven = Self {
            user,
            kernel,
            now: BOOT,
            queue: BTreeMap::new(),
            order: 0,
            turns: 0,
        };
        driven.ready(ThreadId(0), BOOT);
        driven
    }

    pub fn ready(&mut self, thread: ThreadId, at: Nanos) {
        self.queue.retain(|_, it| *it != thread);
        self.order += 1;
        self.queue.insert((at, self.order), thread);
    }

    /// Runs until the program has ended, nothing can run, or that uptime is reached.
    pub fn run(&mut self, until: Nanos) -> Option<ProgramEnd> {
        self.try_run(until).expect("the program goes on")
    }

    pub fn try_run(&mut self, until: Nanos) -> Result<Option<ProgramEnd>, String> {
        while self.user.end().is_none() && self.turn(until)? {}
        Ok(self.user.end())
    }

    /// Lets so many turns pass: whether the program has ended.
    pub fn turns(&mut self, turns: u64) -> Result<bool, String> {
        for _ in 0..turns {
            if self.user.end().is_some() || !self.turn(Nanos::new(u64::MAX))? {
                return Ok(true);
            }
        }
        Ok(self.user.end().is_some())
    }

    /// Lets the next thread run for a turn; `false` if there is none until then.
    fn turn(&mut self, until: Nanos) -> Result<bool, String> {
        let Some((key, thread)) = self.queue.first_key_value() else {
            return Ok(false);
        };
        let (key, thread) = (*key, *thread);
        if key.0 > until {
            self.now = until;
            return Ok(false);
        }
        self.queue.remove(&key);
        self.now = self.now.max(key.0);
        self.turns += 1;
        let turn = self.user.turn(thread, self.now, &mut self.kernel);
        let turn = turn.map_err(|it| it.to_string())?;
        assert!(!turn.cost.is_zero(), "a turn is never free");
        let after = self.now + turn.cost;
        self.kernel
            .log
            .push(format!("{} {} {:?}", self.now, thread.0, turn.stop));
        match turn.stop {
            TurnEnd::Wait { until: Some(at) } => self.ready(thread, at.max(after)),
            TurnEnd::Wait { until: None } | TurnEnd::Exit => {}
            TurnEnd::Yield | TurnEnd::Again => self.ready(thread, after),
        }
        for spawned in std::mem::take(&mut self.kernel.spawned) {
            if spawned != thread {
                self.ready(spawned, after);
            }
        }
        for woken in turn.woken {
            self.ready(woken, after);
        }
        Ok(true)
    }

    pub fn interrupt(&mut self) {
        for thread in self.user.interrupt().expect("it can be interrupted") {
            self.ready(thread, self.now);
        }
    }

    /// A map was written to.
    pub fn look(&mut self) {
        for thread in self.user.woken(&self.kernel).expect("it can be looked at") {
            self.ready(thread, self.now);
        }
    }
}
