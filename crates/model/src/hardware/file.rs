//! Reads hardware files.

use std::collections::BTreeMap;

use toml::de::{DeArray, DeValue};

use super::{
    CAPACITY_ONE, ClusterPower, CpuClass, Governor, Hardware, HardwarePlaces, IdleState, Opp,
    SmtShare, Sysfs, parts_of, turbo,
};
use crate::CPUS_MAX;
use crate::file::{FileError, FileTable, FileValue, Problem, Source, describe, text, texts};
use crate::profile::values::{FREQUENCIES, SIZE, SIZES, TIME, TIMES, check_plain, exact, quantity};

/// Units of power, and microwatts in each.
const POWERS: [(&str, u64); 3] = [("uW", 1), ("mW", 1_000), ("W", 1_000_000)];

const FREQUENCY: &str = "a frequency with its unit (kHz, MHz, GHz), as \"1.8GHz\"";
const POWER: &str = "a power with its unit (uW, mW, W), as \"104mW\"";
const ORDER: &str = "a list of classes with the number of their cores, as [\"A55*4\", \"X1*2\"]";
const OPPS: &str = "a list of frequencies, as [[\"300MHz\", \"6055uW\"]] or [\"300MHz\"]";
const IDLE: &str =
    "a list of residency, exit latency and power, as [[\"2ms\", \"160us\", \"0uW\"]]";
const OFF: &str = "residency, exit latency and power, as [\"3500us\", \"1600us\", \"0uW\"]";

/// Millionths at least and at most, in words: a share or a speed against another one, how much
/// longer memory takes, and the power of two threads.
const SHARE: (u64, u64, &str) = (100_000, 1_000_000, "a number of 0.1 to 1");
const LONGER: (u64, u64, &str) = (1_000_000, 12_000_000, "a number of 1 to 12");
const BOTH: (u64, u64, &str) = (1_000_000, 2_000_000, "a number of 1 to 2");

/// Memory takes four times as long as the last-level cache, in 1/1024. Assumed: random reads take
/// 11.9 times as long (EPYC 7742, `AnandTech` 2019), and computers overlap them.
const PENALTY: u16 = 4096;
/// Memory of another node takes 1.7 times as long (EPYC 7601, two dies of a package), in 1/1024.
const REMOTE: u16 = 1740;

const TABLES: [&str; 8] = [
    "hardware", "class", "turbo", "llc", "nodes", "smt", "memory", "energy",
];

/// A figure from each node to each.
type NodeMatrix = Vec<Vec<u16>>;

/// Greatest frequency (kHz), power (uW), time (ps) and cache (bytes) that sums leave room for.
const MOST_KHZ: u64 = 100_000_000;
const MOST_UW: u64 = 1_000_000_000;
const MOST_TIME_PS: u64 = 1_000_000_000_000;
const MOST_BYTES: u64 = 1 << 34;

impl Hardware {
    /// Reads a hardware file. `file` is what messages call it.
    ///
    /// # Errors
    /// If `text` describes no hardware: the first mistake, with its place.
    pub fn parse(text: &str, file: &str) -> Result<Self, FileError> {
        let source = &Source { text, file };
        let root = source.toml()?;
        let mut root = FileTable::root(source, root.get_ref());
        let head = root.require("hardware", "a table with the hardware's name")?;
        // Else a class with a misspelt table is only unknown.
        for (name, at, _) in root.entries() {
            if !TABLES.contains(&name) {
                return Err(source.error(at, Problem::unknown("key", name, TABLES)));
            }
        }
        let mut reader = HardwareReader {
            source,
            head: FileTable::new(source, "[hardware]".to_owned(), head)?,
            root,
        };
        let hardware = reader.hardware()?;
        reader.head.finish()?;
        Ok(hardware)
    }
}

struct HardwareReader<'a> {
    source: &'a Source<'a>,
    root: FileTable<'a>,
    head: FileTable<'a>,
}

/// What a class says of its cores.
#[derive(Clone, Copy)]
struct CoreKind {
    threads: u16,
    /// Whether all of the class have one clock.
    one_clock: bool,
    /// Cores that share a cache of the second level.
    l2: u16,
}

/// A core: its class and its hardware threads.
type Core = (u16, u16);

impl<'a> HardwareReader<'a> {
    fn hardware(&mut self) -> Result<Hardware, FileError> {
        let name = self.head.require("name", "a string")?;
        let name = text(self.source, name, "a string")?;
        check_plain(self.source, name.text, name.place(0))?;
        let sysfs = self.word("sysfs", &Sysfs::NAMED)?;
        let governor = self.governor()?;
        let parts = self.head.text("parts", "what the power has, as \"cpu\"")?;
        let from = self
            .head
            .require("sources", "at least one source, as [\"a data sheet\"]")?;
        let sources = texts(self.source, from, "a list of strings")?;
        if sources.is_empty() {
            return Err(self.head.unexpected(from, "at least one source"));
        }
        let (mut classes, kinds) = self.classes()?;
        if let Some(value) = self.root.get("turbo") {
            turbo::read(self.source, value, &mut classes)?;
        }
        let is_smt = kinds.iter().any(|kind| kind.threads > 1);
        tell_capacities(&mut classes, sysfs, is_smt);
        let cores = self.cores(&classes, &kinds)?;
        let places = self.places(&kinds, &cores)?;
        let llc_bytes = self.llc_bytes(&places)?;
        let smt = self.smt()?;
        let (base_uw, smt_power) = self.energy()?;
        let penalty = self.penalty()?;
        let class_of = |core: &u16| cores[usize::from(*core)].0;
        let cpus = places.core.iter().map(class_of).collect();
        let hardware = Hardware {
            name: name.text.to_owned(),
            sysfs,
            governor: governor.unwrap_or_default(),
            parts: parts.map_or_else(String::new, |it| it.text.to_owned()),
            sources: sources.iter().map(|it| it.text.to_owned()).collect(),
            classes,
            cpus,
            smt,
            places: Some(places),
            llc_bytes,
            base_uw,
            smt_power,
            penalty: Some(penalty),
        };
        let all = u16::try_from(hardware.cpus.len()).unwrap_or(u16::MAX);
        let place = self.head.require("order", ORDER)?.span().start;
        let refused = |why: crate::Advised| {
            let expected = why.advice.unwrap_or_default();
            self.source
                .error(place, Problem::unexpected(why.what, expected))
        };
        hardware.check(all).map_err(refused)?;
        Ok(hardware)
    }

    fn word<T: Copy>(
        &mut self,
        key: &'static str,
        named: &[(&'static str, T)],
    ) -> Result<Option<T>, FileError> {
        let names: Vec<_> = named
            .iter()
            .map(|(name, _)| format!("\"{name}\""))
            .collect();
        let expected = names.join(", ");
        let Some(found) = self.head.text(key, &expected)? else {
            return Ok(None);
        };
        let value = named.iter().find(|(name, _)| *name == found.text);
        value.map(|(_, value)| Some(*value)).ok_or_else(|| {
            let problem = Problem::unexpected(format!("\"{}\"", found.text), expected);
            self.source.error(found.place(0), problem)
        })
    }

    fn governor(&mut self) -> Result<Option<Governor>, FileError> {
        self.word("governor", &Governor::NAMED)
    }

    /// `[class.NAME]`
    fn classes(&mut self) -> Result<(Vec<CpuClass>, Vec<CoreKind>), FileError> {
        let value = self
            .root
            .require("class", "at least one table [class.NAME]")?;
        let tables = FileTable::new(self.source, "[class.NAME]".to_owned(), value)?;
        let mut classes = Vec::new();
        let mut kinds = Vec::new();
        for (name, at, value) in tables.entries() {
            check_plain(self.source, name, at)?;
            let mut table = FileTable::new(self.source, format!("[class.{name}]"), value)?;
            let kind = self.kind(&mut table)?;
            classes.push(self.class(name, &mut table)?);
            kinds.push(kind);
            table.finish()?;
        }
        Ok((classes, kinds))
    }

    fn kind(&self, table: &mut FileTable<'a>) -> Result<CoreKind, FileError> {
        let mut number = |key, most| {
            let value = table.get(key);
            let found = value
                .map(|value| self.number(value, key, (1, most)))
                .transpose();
            found.map(|it| it.map_or(1, |it| it as u16))
        };
        let (threads, l2) = (number("threads", 2)?, number("l2", CPUS_MAX.into())?);
        let expected = "\"class\" or \"core\"";
        let one_clock = match table.text("domain", expected)? {
            None => false,
            Some(found) if found.text == "core" => false,
            Some(found) if found.text == "class" => true,
            Some(found) => {
                let problem = Problem::unexpected(format!("\"{}\"", found.text), expected);
                return Err(self.source.error(found.place(0), problem));
            }
        };
        Ok(CoreKind {
            threads,
            one_clock,
            l2,
        })
    }

    fn class(&self, name: &str, table: &mut FileTable<'a>) -> Result<CpuClass, FileError> {
        let one = u64::from(CAPACITY_ONE);
        let capacity = table.require("capacity", "1 to 1024")?;
        let capacity = self.number(capacity, "capacity", (1, one))?;
        let number = |key, table: &mut FileTable<'a>, limits| {
            let value = table.get(key);
            value
                .map(|value| self.number(value, key, limits))
                .transpose()
        };
        let shown = number("shown", table, (1, one))?;
        let cppc = number("cppc", table, (1, 255))?;
        let prefcore = number("prefcore", table, (1, 255))?;
        let opps = self.opps(table)?;
        let base = table.get("base");
        let base_khz = self.optional(base, (&FREQUENCIES, FREQUENCY), MOST_KHZ)?;
        let transition = table.get("transition");
        let transition = self.optional(transition, (&TIMES, TIME), MOST_TIME_PS)?;
        let core = self.optional(table.get("core"), (&SIZES, SIZE), MOST_BYTES)?;
        let memory = table.get("memory");
        let memory = memory.map(|value| self.parts(value, SHARE)).transpose()?;
        let idle = self.idle(table)?;
        let cluster = self.cluster(table, opps.len())?;
        Ok(CpuClass {
            name: name.to_owned(),
            capacity: capacity as u16,
            shown: shown.map(|it| it as u16),
            opps,
            turbo: Vec::new(),
            base_khz: base_khz.map(|it| it as u32),
            transition_ns: transition.unwrap_or(0) / 1_000,
            cppc: cppc.map(|it| it as u16),
            prefcore: prefcore.map(|it| it as u16),
            core_bytes: core.unwrap_or(0),
            memory: memory.unwrap_or(CAPACITY_ONE),
            idle,
            cluster,
        })
    }

    /// A number between two in 1/1024.
    fn parts(
        &self,
        value: FileValue<'a>,
        (least, most, expected): (u64, u64, &str),
    ) -> Result<u16, FileError> {
        let found = written(value).and_then(|it| parts_of(it, least..=most));
        found.ok_or_else(|| {
            let problem = Problem::unexpected(describe(value), expected);
            self.source.error(value.span().start, problem)
        })
    }

    fn number(
        &self,
        value: FileValue<'a>,
        what: &str,
        (least, most): (u64, u64),
    ) -> Result<u64, FileError> {
        let found = match value.get_ref() {
            DeValue::Integer(number) if number.radix() == 10 => exact(number.as_str(), 1),
            _ => None,
        };
        let found = found.filter(|it| (least..=most).contains(it));
        found.ok_or_else(|| {
            let problem = Problem::Range {
                what: format!("`{what}`"),
                found: describe(value),
                expected: format!("{least} to {most}"),
            };
            self.source.error(value.span().start, problem)
        })
    }

    fn limited(
        &self,
        value: FileValue<'a>,
        (units, expected): (&[(&str, u64)], &str),
        most: u64,
    ) -> Result<u64, FileError> {
        let found = quantity(self.source, value, units, expected)?;
        if found <= most {
            return Ok(found);
        }
        let problem = Problem::Range {
            what: "the value".to_owned(),
            found: describe(value),
            expected: "less".to_owned(),
        };
        Err(self.source.error(value.span().start, problem))
    }

    /// As [`Self::limited`], of what may be left out.
    fn optional(
        &self,
        value: Option<FileValue<'a>>,
        units: (&[(&str, u64)], &str),
        most: u64,
    ) -> Result<Option<u64>, FileError> {
        let found = value.map(|value| self.limited(value, units, most));
        found.transpose()
    }

    fn list(&self, value: FileValue<'a>, expected: &str) -> Result<&'a DeArray<'a>, FileError> {
        match value.get_ref() {
            DeValue::Array(list) => Ok(list),
            _ => {
                let problem = Problem::unexpected(describe(value), expected);
                Err(self.source.error(value.span().start, problem))
            }
        }
    }

    /// Frequencies that rise, with the power of each or of none.
    fn opps(&self, table: &mut FileTable<'a>) -> Result<Vec<Opp>, FileError> {
        let Some(value) = table.get("opps") else {
            return Ok(Vec::new());
        };
        let mut opps: Vec<Opp> = Vec::new();
        for opp in self.list(value, OPPS)? {
            let khz = |value| self.limited(value, (&FREQUENCIES, FREQUENCY), MOST_KHZ);
            let (khz, uw) = match opp.get_ref() {
                DeValue::Array(pair) if pair.len() == 2 => {
                    let uw = self.limited(&pair[1], (&POWERS, POWER), MOST_UW)?;
                    (khz(&pair[0])?, Some(uw))
                }
                _ => (khz(opp)?, None),
            };
            let wrong = |expected: &str| table.unexpected(opp, expected);
            if let Some(last) = opps.last() {
                if khz <= u64::from(last.khz) {
                    return Err(wrong("frequencies that rise"));
                }
                if uw.is_some() != last.uw.is_some() {
                    return Err(wrong("a power in all of them or in none"));
                }
                if uw < last.uw {
                    return Err(wrong("powers that do not fall with the frequency"));
                }
            } else if khz == 0 {
                return Err(wrong("a frequency above zero"));
            }
            opps.push(Opp {
                khz: khz as u32,
                uw,
            });
        }
        Ok(opps)
    }

    fn idle(&self, table: &mut FileTable<'a>) -> Result<Vec<IdleState>, FileError> {
        let Some(value) = table.get("idle") else {
            return Ok(Vec::new());
        };
        let mut states: Vec<IdleState> = Vec::new();
        for value in self.list(value, IDLE)? {
            let next = self.state(value, IDLE)?;
            if states
                .last()
                .is_some_and(|last| next.residency_ns <= last.residency_ns)
            {
                return Err(table.unexpected(value, "residencies that rise"));
            }
            states.push(next);
        }
        Ok(states)
    }

    /// An idle state of three words.
    fn state(&self, value: FileValue<'a>, expected: &str) -> Result<IdleState, FileError> {
        let triple = self.list(value, expected)?;
        if triple.len() != 3 {
            let problem = Problem::unexpected(describe(value), expected);
            return Err(self.source.error(value.span().start, problem));
        }
        let time = |at: usize| self.limited(&triple[at], (&TIMES, TIME), MOST_TIME_PS);
        Ok(IdleState {
            residency_ns: time(0)? / 1_000,
            exit_ns: time(1)? / 1_000,
            uw: self.limited(&triple[2], (&POWERS, POWER), MOST_UW)?,
        })
    }

    /// `cluster`, a power for each of `opps` frequencies, with `wfi` and `off`.
    fn cluster(
        &self,
        table: &mut FileTable<'a>,
        opps: usize,
    ) -> Result<Option<ClusterPower>, FileError> {
        let (cluster, wfi, off) = (table.get("cluster"), table.get("wfi"), table.get("off"));
        let Some(value) = cluster else {
            return match wfi.or(off) {
                None => Ok(None),
                Some(alone) => Err(table.unexpected(alone, "it beside `cluster`")),
            };
        };
        let expected = format!("{opps} powers, one for each of `opps`, as [\"12mW\"]");
        let power = |value| self.limited(value, (&POWERS, POWER), MOST_UW);
        let all = self.list(value, &expected)?;
        if all.len() != opps {
            return Err(table.unexpected(value, &expected));
        }
        Ok(Some(ClusterPower {
            uw: all.iter().map(power).collect::<Result<_, _>>()?,
            idle_uw: wfi.map(power).transpose()?.unwrap_or(0),
            off: off.map(|value| self.state(value, OFF)).transpose()?,
        }))
    }

    /// The cores in their order.
    fn cores(&mut self, classes: &[CpuClass], kinds: &[CoreKind]) -> Result<Vec<Core>, FileError> {
        let value = self.head.require("order", ORDER)?;
        let mut cores = Vec::new();
        for part in texts(self.source, value, ORDER)? {
            let (name, count) = part.text.split_once('*').unwrap_or((part.text, "1"));
            let fail = |problem| Err(self.source.error(part.place(0), problem));
            let names = || classes.iter().map(|class| class.name.as_str());
            let Some(class) = names().position(|it| it == name.trim()) else {
                return fail(Problem::unknown("class", name.trim(), names()));
            };
            let count = count.trim().parse::<u16>().ok();
            let Some(count) = count.filter(|it| (1..=CPUS_MAX).contains(it)) else {
                return fail(Problem::unexpected(format!("\"{}\"", part.text), ORDER));
            };
            cores.extend(vec![(class as u16, kinds[class].threads); count.into()]);
            let cpus: usize = cores.iter().map(|core: &Core| usize::from(core.1)).sum();
            if cpus > usize::from(CPUS_MAX) {
                let found = format!("{cpus} CPUs or more");
                return fail(Problem::unexpected(found, format!("at most {CPUS_MAX}")));
            }
        }
        Ok(cores)
    }

    /// Whether the second threads of all cores are numbered behind all first ones.
    fn halves(&mut self, cores: &[Core]) -> Result<bool, FileError> {
        let named = [("neighbours", false), ("halves", true)];
        let halves = self.word("siblings", &named)?.unwrap_or(false);
        if halves && cores.iter().any(|core| core.1 != 2) {
            let value = self.head.require("siblings", "\"halves\"")?;
            return Err(self
                .head
                .unexpected(value, "two threads in each core for \"halves\""));
        }
        Ok(halves)
    }

    /// Which CPUs belong together.
    fn places(&mut self, kinds: &[CoreKind], cores: &[Core]) -> Result<HardwarePlaces, FileError> {
        let halves = self.halves(cores)?;
        let mut of_core: Vec<u16> = Vec::new();
        for (number, core) in (0..).zip(cores) {
            of_core.extend(vec![number; core.1.into()]);
        }
        if halves {
            let first: Vec<u16> = (0..cores.len() as u16).collect();
            of_core = [first.clone(), first].concat();
        }
        let each = |of: &[u16]| of_core.iter().map(|core| of[usize::from(*core)]).collect();
        let llcs = self.blocks("llc", cores)?;
        let nodes = self.blocks("nodes", cores)?;
        self.check_nested(&llcs, &nodes)?;
        let (distances, remote) = self.between(&nodes)?;
        Ok(HardwarePlaces {
            l2: each(&numbered(cores, |at, class| {
                // Cores of a class that follow each other share one by so many.
                let run = cores[..at].iter().rev().take_while(|core| core.0 == class);
                (
                    class,
                    at as u16 - run.count() as u16 % kinds[usize::from(class)].l2,
                )
            })),
            domain: each(&numbered(cores, |at, class| {
                let one_clock = kinds[usize::from(class)].one_clock;
                (class, if one_clock { 0 } else { at as u16 })
            })),
            llc: each(&llcs),
            node: each(&nodes),
            core: of_core,
            distances,
            remote,
        })
    }

    /// The number of each core's block; `key` says how many CPUs each has.
    fn blocks(&mut self, key: &'static str, cores: &[Core]) -> Result<Vec<u16>, FileError> {
        let Some(value) = self.root.get(key) else {
            return Ok(vec![0; cores.len()]);
        };
        let mut table = FileTable::new(self.source, format!("[{key}]"), value)?;
        let value = table.require("cpus", "the CPUs of each, as [4, 4]")?;
        let all: u16 = cores.iter().map(|core| core.1).sum();
        let expected = format!("{all} CPUs together, as `order` has");
        let mut rest = cores.iter();
        let mut blocks = Vec::new();
        for (number, size) in (0..).zip(self.list(value, "the CPUs of each, as [4, 4]")?) {
            let size = self.number(size, "cpus", (1, CPUS_MAX.into()))?;
            let mut cpus = 0;
            while cpus < size {
                let Some(core) = rest.next() else {
                    return Err(table.unexpected(value, &expected));
                };
                cpus += u64::from(core.1);
                blocks.push(number);
            }
            if cpus > size {
                return Err(table.unexpected(value, "no block that ends within a core"));
            }
        }
        if rest.next().is_some() {
            return Err(table.unexpected(value, &expected));
        }
        Ok(blocks)
    }

    fn check_nested(&mut self, llcs: &[u16], nodes: &[u16]) -> Result<(), FileError> {
        let mut node_of = BTreeMap::new();
        for (llc, node) in llcs.iter().zip(nodes) {
            if node_of.insert(llc, node).is_some_and(|other| other != node) {
                let value = self.root.require("nodes", "a table [nodes]")?;
                let expected = "nodes that end where a last-level cache ends";
                return Err(self.root.unexpected(value, expected));
            }
        }
        Ok(())
    }

    /// From each node to each: what firmware tells, and how much longer memory takes.
    fn between(&mut self, nodes: &[u16]) -> Result<(NodeMatrix, NodeMatrix), FileError> {
        let count = nodes.last().map_or(1, |last| usize::from(*last) + 1);
        let Some(value) = self.root.get("nodes") else {
            return Ok((vec![vec![10]], Vec::new()));
        };
        let mut table = FileTable::new(self.source, "[nodes]".to_owned(), value)?;
        let _ = table.get("cpus");
        let usual = |near: u16, far: u16| -> NodeMatrix {
            let row = |a: usize| {
                (0..count)
                    .map(|b| if a == b { near } else { far })
                    .collect()
            };
            (0..count).map(row).collect()
        };
        let distance = |value| {
            self.number(value, "distance", (10, 254))
                .map(|it| it as u16)
        };
        let distances = match table.get("distance") {
            None => usual(10, 20),
            Some(value) => {
                let words = "distances, as [[10, 20], [20, 10]]";
                self.matrix(value, (count, words), distance)?
            }
        };
        let remote = match table.get("remote") {
            None => usual(CAPACITY_ONE, REMOTE),
            Some(value) => {
                let words = "numbers of 1 to 12, as [[1.0, 1.7], [1.7, 1.0]]";
                self.matrix(value, (count, words), |value| self.parts(value, LONGER))?
            }
        };
        table.finish()?;
        Ok((distances, remote))
    }

    /// A list of `count` lists of as many numbers.
    fn matrix(
        &self,
        value: FileValue<'a>,
        (count, words): (usize, &str),
        read: impl Fn(FileValue<'a>) -> Result<u16, FileError>,
    ) -> Result<Vec<Vec<u16>>, FileError> {
        let expected = format!("{count} lists of {count} {words}");
        let mut rows: Vec<Vec<u16>> = Vec::new();
        for row in self.list(value, &expected)? {
            let row = self.list(row, &expected)?.iter().map(&read);
            rows.push(row.collect::<Result<_, _>>()?);
        }
        if rows.len() == count && rows.iter().all(|row| row.len() == count) {
            return Ok(rows);
        }
        let problem = Problem::unexpected(describe(value), expected);
        Err(self.source.error(value.span().start, problem))
    }

    /// `[memory]`: how much longer memory takes than the last-level cache.
    fn penalty(&mut self) -> Result<u16, FileError> {
        let Some(value) = self.root.get("memory") else {
            return Ok(PENALTY);
        };
        let mut table = FileTable::new(self.source, "[memory]".to_owned(), value)?;
        let penalty = self.parts(table.require("penalty", LONGER.2)?, LONGER)?;
        table.finish()?;
        Ok(penalty)
    }

    fn llc_bytes(&mut self, places: &HardwarePlaces) -> Result<Vec<u64>, FileError> {
        let Some(value) = self.root.get("llc") else {
            return Ok(Vec::new());
        };
        let mut table = FileTable::new(self.source, "[llc]".to_owned(), value)?;
        let _ = table.get("cpus");
        let sizes = table.get("size");
        let count = places
            .llc
            .iter()
            .max()
            .map_or(1, |last| usize::from(*last) + 1);
        let Some(value) = sizes else {
            table.finish()?;
            return Ok(Vec::new());
        };
        let expected = format!("{count} sizes, as [\"32MiB\"]");
        let list = self.list(value, &expected)?;
        let size = |value| match self.limited(value, (&SIZES, SIZE), MOST_BYTES)? {
            0 => Err(table.unexpected(value, "a size above zero")),
            bytes => Ok(bytes),
        };
        let sizes: Vec<u64> = list.iter().map(size).collect::<Result<_, _>>()?;
        if sizes.len() != count {
            return Err(table.unexpected(value, &expected));
        }
        table.finish()?;
        Ok(sizes)
    }

    /// `[smt]`: one share, or one for each pair.
    fn smt(&mut self) -> Result<Option<SmtShare>, FileError> {
        let Some(value) = self.root.get("smt") else {
            return Ok(None);
        };
        let mut table = FileTable::new(self.source, "[smt]".to_owned(), value)?;
        let mut share = |key: &'static str| -> Result<u16, FileError> {
            self.parts(table.require(key, SHARE.2)?, SHARE)
        };
        let smt = SmtShare {
            cc: share("cc")?,
            cm: share("cm")?,
            mc: share("mc")?,
            mm: share("mm")?,
        };
        table.finish()?;
        Ok(Some(smt))
    }

    /// `[energy]`: the power that is there without any CPU, and that of both threads of a core
    /// against one.
    fn energy(&mut self) -> Result<(Option<u64>, Option<u16>), FileError> {
        let Some(value) = self.root.get("energy") else {
            return Ok((None, None));
        };
        let mut table = FileTable::new(self.source, "[energy]".to_owned(), value)?;
        let base = self.optional(table.get("base"), (&POWERS, POWER), MOST_UW)?;
        let both = table.get("smt_power");
        let both = both.map(|value| self.parts(value, BOTH)).transpose()?;
        table.finish()?;
        Ok((base, both))
    }
}

/// A number as it is written.
fn written(value: FileValue<'_>) -> Option<&str> {
    match value.get_ref() {
        DeValue::Float(number) => Some(number.as_str()),
        DeValue::Integer(number) => Some(number.as_str()),
        _ => None,
    }
}

/// What the kernel says of capacities. AMD's have 1024 each, and Intel's where cores have two
/// threads, because "the capacity of SMT threads is not deterministic even approximately".
///
/// Source: `drivers/cpufreq/intel_pstate.c`, kernel 6.12 and later.
fn tell_capacities(classes: &mut [CpuClass], sysfs: Option<Sysfs>, is_smt: bool) {
    let is_alike = match sysfs {
        Some(Sysfs::Amd) => true,
        Some(Sysfs::Intel) => is_smt,
        _ => false,
    };
    for class in classes.iter_mut().filter(|_| is_alike) {
        class.shown.get_or_insert(CAPACITY_ONE);
    }
}

/// A number for each core, from zero on: cores of one `key` have the same.
fn numbered<K: PartialEq>(cores: &[Core], key: impl Fn(usize, u16) -> K) -> Vec<u16> {
    let mut known = Vec::new();
    let number = |(at, core): (usize, &Core)| {
        let key = key(at, core.0);
        let at = known.iter().position(|it| *it == key).unwrap_or_else(|| {
            known.push(key);
            known.len() - 1
        });
        at as u16
    };
    cores.iter().enumerate().map(number).collect()
}

#[cfg(test)]
mod tests;
