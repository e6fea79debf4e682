//! Reads how the CPUs of `[machine]` differ.

use toml::de::{DeArray, DeValue};

use super::{FileReader, MachineFiles};
use model::file::{FileError, FileTable, FileValue, Problem, describe, text};
use model::{CAPACITY_ONE, Governor, Hardware, MachineSpec, SmtShare};

const LIST: &str = "a list with the capacity of each CPU, as [1024, 512], or ranges, as \
                    \"0-3:512, 4-7:1024\"";
const SHARE: &str = "\"low\", \"typical\", \"high\", or a number of 0.1 to 1";

impl<'a> FileReader<'a> {
    /// `machine` with what `hardware`, `governor`, `capacity` and `smt_share` say of its CPUs.
    pub(super) fn hardware(
        &self,
        table: &mut FileTable<'a>,
        machine: MachineSpec,
        files: MachineFiles<'_>,
    ) -> Result<MachineSpec, FileError> {
        let named = table.get("hardware");
        let governor = table.get("governor");
        let Some(value) = named else {
            if let Some(value) = governor {
                let expected = "`hardware`, whose frequencies a governor chooses from";
                return Err(table.unexpected(value, expected));
            }
            let hardware = self.told(table, &machine)?;
            return Ok(MachineSpec {
                hardware,
                ..machine
            });
        };
        let name = text(self.source, value, "the name of a machine, or a file")?;
        let mut hardware = match Hardware::find(name.text) {
            Some(shipped) => shipped,
            None => (files.hardware)(name.text).map_err(|why| {
                let what = format!("hardware `{}`", name.text);
                self.source
                    .error(name.place(0), Problem::Profile { what, why })
            })?,
        };
        if let Some(value) = governor {
            hardware.governor = self.choice(value, &Governor::NAMED)?;
            hardware.check_governor().map_err(|why| {
                let expected = why.advice.unwrap_or_default();
                let problem = Problem::unexpected(why.what, expected);
                self.source.error(value.span().start, problem)
            })?;
        }
        let cpus = hardware.cpus.len();
        for key in ["cpus", "smt", "llc", "node", "capacity", "smt_share"] {
            if let Some(value) = table.get(key) {
                let found = format!("`{key}` beside `hardware = \"{}\"`", name.text);
                let expected = format!("one of them: the hardware says it, with {cpus} CPUs");
                let problem = Problem::unexpected(found, expected);
                return Err(self.source.error(value.span().start, problem));
            }
        }
        Ok(machine.with_hardware(hardware))
    }

    /// What `capacity` and `smt_share` say of the CPUs of `machine`; `None` if neither is there.
    fn told(
        &self,
        table: &mut FileTable<'a>,
        machine: &MachineSpec,
    ) -> Result<Option<Box<Hardware>>, FileError> {
        let capacity = table.get("capacity");
        let share = table.get("smt_share");
        let mut capacities = vec![CAPACITY_ONE; machine.cpus.into()];
        if let Some(value) = capacity {
            capacities = self.capacities(value, machine.cpus)?;
        }
        let mut hardware = Hardware::of_capacities(&capacities);
        if let Some(value) = share {
            if machine.smt < 2 {
                let problem = Problem::unexpected("`smt_share` without `smt = 2`", "both or none");
                return Err(self.source.error(value.span().start, problem));
            }
            hardware.smt = Some(self.share(value)?);
        }
        Ok((capacity.is_some() || share.is_some()).then(|| Box::new(hardware)))
    }

    fn share(&self, value: FileValue<'a>) -> Result<SmtShare, FileError> {
        let written = match value.get_ref() {
            DeValue::String(text) => Some(text.as_ref()),
            DeValue::Float(number) => Some(number.as_str()),
            DeValue::Integer(number) => Some(number.as_str()),
            _ => None,
        };
        written.and_then(SmtShare::parse).ok_or_else(|| {
            let problem = Problem::unexpected(describe(value), SHARE);
            self.source.error(value.span().start, problem)
        })
    }

    /// One capacity for each of `cpus`.
    fn capacities(&self, value: FileValue<'a>, cpus: u16) -> Result<Vec<u16>, FileError> {
        let capacities = match value.get_ref() {
            DeValue::Array(list) => self.listed(list)?,
            _ => self.ranged(value, cpus)?,
        };
        let refuse = |found: String, expected: &str| {
            let problem = Problem::Range {
                what: "`capacity`".to_owned(),
                found,
                expected: expected.to_owned(),
            };
            Err(self.source.error(value.span().start, problem))
        };
        if capacities.len() != usize::from(cpus) {
            let found = format!("of {} CPUs", capacities.len());
            return refuse(found, &format!("one of each of the {cpus} CPUs"));
        }
        if !capacities.contains(&CAPACITY_ONE) {
            let found = "below 1024 everywhere".to_owned();
            return refuse(
                found,
                "1024 of the biggest CPU, and of others their share of it",
            );
        }
        Ok(capacities)
    }

    fn listed(&self, list: &DeArray<'a>) -> Result<Vec<u16>, FileError> {
        let capacity = |value| self.integer(value, 1..=i64::from(CAPACITY_ONE), "capacity");
        let narrow = |value: i64| u16::try_from(value).expect("the range was checked");
        list.iter()
            .map(|value| capacity(value).map(narrow))
            .collect()
    }

    /// `0-3:512, 4-7:1024`
    fn ranged(&self, value: FileValue<'a>, cpus: u16) -> Result<Vec<u16>, FileError> {
        let ranges = text(self.source, value, LIST)?;
        let mut capacities = vec![None; cpus.into()];
        let mut at = 0;
        for range in ranges.text.split(',') {
            let fail = |expected: &str| {
                let problem = Problem::unexpected(format!("\"{}\"", range.trim()), expected);
                self.source.error(ranges.place(at), problem)
            };
            let (first, last, capacity) = range_of(range).ok_or_else(|| fail(LIST))?;
            let part = capacities.get_mut(first..=last);
            let part = part.ok_or_else(|| fail(&format!("CPUs below {cpus}")))?;
            if part.iter().any(Option::is_some) {
                return Err(fail("each CPU once"));
            }
            part.fill(Some(capacity));
            at += range.len() + 1;
        }
        // Those that no range names are missed by the count.
        Ok(capacities.into_iter().flatten().collect())
    }
}

/// First and last CPU of `0-3:512`, and the capacity.
fn range_of(text: &str) -> Option<(usize, usize, u16)> {
    let (cpus, capacity) = text.split_once(':')?;
    let (first, last) = cpus.split_once('-').unwrap_or((cpus, cpus));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    let capacity = capacity.trim().parse().ok()?;
    ((1..=CAPACITY_ONE).contains(&capacity) && first <= last).then_some((first, last, capacity))
}
