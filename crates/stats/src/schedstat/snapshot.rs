//! One reading of `/proc/schedstat`.

use std::io::{self, Write};
use std::ops::Range;

use super::layout::Layout;

/// All counters at one moment. CPUs stand in the file's order.
///
/// The numbers of all CPUs lie in one vector and the texts in one string: reading the next
/// snapshot into the same value allocates nothing.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub(super) layout: &'static Layout,
    pub(super) timestamp: u64,
    pub(super) cpus: Vec<CpuEntry>,
    pub(super) domains: Vec<DomainEntry>,
    pub(super) totals: Option<Vec<u64>>,
    pub(super) numbers: Vec<u64>,
    pub(super) text: String,
}

/// Where a CPU's data lie.
#[derive(Clone, Debug)]
pub(super) struct CpuEntry {
    pub cpu: u32,
    pub first: usize,
    pub domains: Range<usize>,
}

/// Where a domain's data lie.
#[derive(Clone, Debug)]
pub(super) struct DomainEntry {
    pub level: u32,
    pub name: Range<usize>,
    pub mask: Range<usize>,
    pub first: usize,
}

/// The counters of one CPU.
#[derive(Clone, Copy, Debug)]
pub struct CpuCounters<'a> {
    snapshot: &'a Snapshot,
    entry: &'a CpuEntry,
}

/// The counters of one scheduling domain of a CPU.
#[derive(Clone, Copy, Debug)]
pub struct DomainCounters<'a> {
    snapshot: &'a Snapshot,
    entry: &'a DomainEntry,
}

impl Snapshot {
    /// A snapshot without CPUs.
    #[must_use]
    pub fn new(layout: &'static Layout, timestamp: u64) -> Self {
        Self {
            layout,
            timestamp,
            cpus: Vec::new(),
            domains: Vec::new(),
            totals: None,
            numbers: Vec::new(),
            text: String::new(),
        }
    }

    /// Adds a CPU with its counters, in the order of [`Layout::cpu`].
    ///
    /// # Panics
    /// If `counters` has another length than the version's table.
    pub fn push_cpu(&mut self, cpu: u32, counters: &[u64]) {
        assert_eq!(counters.len(), self.layout.cpu.len(), "counters of a CPU");
        let first = self.numbers.len();
        self.numbers.extend_from_slice(counters);
        let domains = self.domains.len()..self.domains.len();
        self.cpus.push(CpuEntry {
            cpu,
            first,
            domains,
        });
    }

    /// Adds a domain to the CPU that was added last. `name` is ignored by versions without names.
    ///
    /// # Panics
    /// If `counters` has another length than the version's table, or there is no CPU yet.
    pub fn push_domain(&mut self, level: u32, name: &str, mask: &str, counters: &[u64]) {
        assert_eq!(
            counters.len(),
            self.layout.domain.len(),
            "counters of a domain"
        );
        let name = self.push_text(name);
        let mask = self.push_text(mask);
        let first = self.numbers.len();
        self.numbers.extend_from_slice(counters);
        self.domains.push(DomainEntry {
            level,
            name,
            mask,
            first,
        });
        let cpu = self.cpus.last_mut().expect("a domain belongs to a CPU");
        cpu.domains.end = self.domains.len();
    }

    /// Sets the line `totals` to the sums over the CPUs, as long as the version's own line.
    pub fn sum_totals(&mut self) {
        self.totals = self.layout.totals.first().map(|&length| self.sums(length));
    }

    /// The first counter of which the line `totals` says another sum than the CPUs have: its name,
    /// what the line says, and the sum. Kernels sum in words of 32 or 64 bits, and while they
    /// print the counters go on: a difference of a hundredth is none.
    #[must_use]
    pub fn contradiction(&self) -> Option<(&'static str, u64, u64)> {
        let totals = self.totals()?;
        let sums = self.sums(totals.len());
        let mut all = self.layout.cpu.iter().zip(totals.iter().zip(sums));
        let is_other = |said: u64, sum: u64| {
            let word = u64::from(u32::MAX);
            let far = |a: u64, b: u64| a.abs_diff(b) > a.max(b) / 100 + 16;
            far(said, sum) && far(said & word, sum & word)
        };
        let found = all.find(|(_, (said, sum))| is_other(**said, *sum));
        found.map(|(field, (said, sum))| (field.name, *said, sum))
    }

    fn sums(&self, length: usize) -> Vec<u64> {
        let mut sums = vec![0_u64; length];
        for cpu in self.cpus() {
            for (sum, value) in sums.iter_mut().zip(cpu.values()) {
                *sum = sum.wrapping_add(*value);
            }
        }
        sums
    }

    pub(super) fn push_text(&mut self, text: &str) -> Range<usize> {
        let start = self.text.len();
        self.text.push_str(text);
        start..self.text.len()
    }

    /// Which version, and which counter stands where.
    #[must_use]
    pub fn layout(&self) -> &'static Layout {
        self.layout
    }

    /// The kernel's clock when the counters were read, in jiffies.
    #[must_use]
    pub fn timestamp(&self) -> u64 {
        self.timestamp
    }

    /// The line `totals`, where the version has one: sums over the CPUs of the first counters.
    #[must_use]
    pub fn totals(&self) -> Option<&[u64]> {
        self.totals.as_deref()
    }

    /// The CPUs, in the file's order.
    #[must_use]
    pub fn cpus(&self) -> impl ExactSizeIterator<Item = CpuCounters<'_>> {
        self.cpus.iter().map(|entry| CpuCounters {
            snapshot: self,
            entry,
        })
    }

    /// The CPU with this number.
    #[must_use]
    pub fn cpu(&self, cpu: u32) -> Option<CpuCounters<'_>> {
        // Almost always the n-th line is CPU n.
        let near = self.cpus.get(cpu as usize).filter(|entry| entry.cpu == cpu);
        let entry = near.or_else(|| self.cpus.iter().find(|entry| entry.cpu == cpu))?;
        Some(CpuCounters {
            snapshot: self,
            entry,
        })
    }

    /// Writes the snapshot as the kernel prints it.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "version {}", self.layout.version)?;
        if self.layout.timestamp {
            writeln!(out, "timestamp {}", self.timestamp)?;
        }
        for cpu in self.cpus() {
            write!(out, "cpu{}", cpu.number())?;
            write_numbers(out, cpu.values())?;
            for domain in cpu.domains() {
                out.write_all(if self.layout.domains_inline {
                    b" "
                } else {
                    b"\n"
                })?;
                write!(out, "domain{}", domain.level())?;
                if self.layout.domain_names {
                    write!(out, " {}", domain.name())?;
                }
                write!(out, " {}", domain.mask())?;
                write_numbers(out, domain.values())?;
            }
            writeln!(out)?;
        }
        if let Some(totals) = &self.totals {
            write!(out, "totals")?;
            write_numbers(out, totals)?;
            writeln!(out)?;
        }
        Ok(())
    }
}

fn write_numbers(out: &mut impl Write, numbers: &[u64]) -> io::Result<()> {
    numbers
        .iter()
        .try_for_each(|number| write!(out, " {number}"))
}

impl<'a> CpuCounters<'a> {
    /// The CPU's number.
    #[must_use]
    pub fn number(self) -> u32 {
        self.entry.cpu
    }

    /// All counters, in the order of [`Layout::cpu`].
    #[must_use]
    pub fn values(self) -> &'a [u64] {
        let first = self.entry.first;
        &self.snapshot.numbers[first..first + self.snapshot.layout.cpu.len()]
    }

    /// The counter with this name; `None` when the version does not have it.
    #[must_use]
    pub fn get(self, name: &str) -> Option<u64> {
        Some(self.values()[self.snapshot.layout.cpu_index(name)?])
    }

    /// The CPU's domains, from the smallest to the largest.
    #[must_use]
    pub fn domains(self) -> impl ExactSizeIterator<Item = DomainCounters<'a>> {
        let Self { snapshot, entry } = self;
        snapshot.domains[entry.domains.clone()]
            .iter()
            .map(move |entry| DomainCounters { snapshot, entry })
    }
}

impl<'a> DomainCounters<'a> {
    /// The domain's number: 0 is the smallest.
    #[must_use]
    pub fn level(self) -> u32 {
        self.entry.level
    }

    /// The domain's name, as `SMT` or `MC`; empty before version 17.
    #[must_use]
    pub fn name(self) -> &'a str {
        &self.snapshot.text[self.entry.name.clone()]
    }

    /// The CPUs of the domain as the kernel prints masks: hexadecimal words with commas.
    #[must_use]
    pub fn mask(self) -> &'a str {
        &self.snapshot.text[self.entry.mask.clone()]
    }

    /// All counters, in the order of [`Layout::domain`].
    #[must_use]
    pub fn values(self) -> &'a [u64] {
        let first = self.entry.first;
        &self.snapshot.numbers[first..first + self.snapshot.layout.domain.len()]
    }

    /// The counter with this name; `None` when the version does not have it.
    #[must_use]
    pub fn get(self, name: &str) -> Option<u64> {
        Some(self.values()[self.snapshot.layout.domain_index(name)?])
    }
}

/// An empty snapshot of the oldest version, to be read into.
impl Default for Snapshot {
    fn default() -> Self {
        Self::new(&Layout::all()[0], 0)
    }
}

/// Two snapshots are equal when a file cannot tell them apart.
impl PartialEq for Snapshot {
    fn eq(&self, other: &Self) -> bool {
        self.layout.version == other.layout.version
            && self.timestamp == other.timestamp
            && self.totals == other.totals
            && self.cpus().eq(other.cpus())
    }
}

impl PartialEq for CpuCounters<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.number() == other.number()
            && self.values() == other.values()
            && self.domains().eq(other.domains())
    }
}

impl PartialEq for DomainCounters<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.level() == other.level()
            && self.name() == other.name()
            && self.mask() == other.mask()
            && self.values() == other.values()
    }
}
