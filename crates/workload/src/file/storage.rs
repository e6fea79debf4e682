//! Reads the tables of disks and memory.

use super::{FileReader, small};
use crate::names::intern;
use crate::parser::{Parser, range};
use crate::{Cache, Disk, Dist, Elevator, Memory, PAGE};
use model::file::{FileError, Problem};
use model::file::{FileTable, FileValue, Text};
use model::{CpuId, Nanos};

/// Bytes of a disk that says nothing else: 64 GiB.
const DISK_BYTES: i64 = 64 << 30;
/// Longest request of a disk that says nothing else: 1 MiB, the usual limit of a block device.
const REQUEST_PAGES: u64 = 256;
/// Largest disk: 16 TiB.
const DISK_BYTES_MAX: i64 = 16 << 40;
/// Largest memory and cache: 64 GiB, which take about 100 bytes a page while they are used.
const MEMORY_BYTES_MAX: i64 = 64 << 30;
/// Share of a cache that may be dirty before writers write back: `vm.dirty_ratio`, Linux 6.18.
const DIRTY_PERCENT: u64 = 20;
/// Dirty bytes where nothing limits a cache.
const DIRTY_BYTES: u64 = 64 << 20;
/// `reclaim` begins below one 64th and ends at one 32nd of memory, unless the file says otherwise.
const LOW_SHARE: u64 = 64;

const _: () = assert!(PAGE == 4096, "sizes in messages speak of 4 KiB");

impl<'a> FileReader<'a> {
    pub(super) fn disks(&mut self) -> Result<Vec<Disk>, FileError> {
        let mut disks = Vec::new();
        for (name, at, value) in self.disks.clone() {
            self.check_name(name, at)?;
            let mut table = FileTable::new(self.source, format!("[disk.{name}]"), value)?;
            let base = self.dist(&mut table, "base")?;
            let seek = self.span(&mut table, "seek", true)?.unwrap_or(Nanos::ZERO);
            let bandwidth = table.get("bandwidth");
            let bandwidth = bandwidth
                .map(|value| self.integer(value, 1..=i64::MAX, "bandwidth"))
                .transpose()?;
            let size = table.get("size");
            let limits = 4096..=DISK_BYTES_MAX;
            let size = size.map_or(Ok(DISK_BYTES), |size| self.integer(size, limits, "size"))?;
            let request = self.pages(&mut table, "request")?;
            let ahead = self.pages(&mut table, "ahead")?;
            let elevator = table.get("elevator");
            let kinds = [
                ("fifo", Elevator::Fifo),
                ("scan", Elevator::Scan),
                ("deadline", Elevator::Deadline),
                ("anticipatory", Elevator::Anticipatory),
            ];
            let elevator =
                elevator.map_or(Ok(Elevator::Deadline), |value| self.choice(value, &kinds))?;
            let width = table.get("width");
            let width = width.map_or(Ok(1), |width| self.integer(width, 1..=65_536, "width"))?;
            let cache = self.cache(&mut table)?;
            let dirty = self.pages(&mut table, "dirty")?;
            let usual = match cache {
                Cache::Recent(Some(pages)) => (pages * DIRTY_PERCENT / 100).max(1),
                _ => DIRTY_BYTES / PAGE,
            };
            let sync = table.get("sync");
            let kinds = [("task", false), ("disk", true)];
            let sync_all = sync.map_or(Ok(false), |value| self.choice(value, &kinds))?;
            let cpu = table.get("cpu");
            let cpu = cpu.map_or(Ok(0), |cpu| self.integer(cpu, 0..=1023, "cpu"))?;
            let cost = self.dist(&mut table, "cost")?;
            table.finish()?;
            self.names.disks.push(name.to_owned());
            let mut counter = |what| intern(&format!("{name}_{what}"), &mut self.names.counters);
            let counters = [counter("reads"), counter("writes")];
            disks.push(Disk {
                name: name.to_owned(),
                base,
                seek,
                bandwidth: bandwidth.map(i64::unsigned_abs),
                pages: size.unsigned_abs() / PAGE,
                request: request.map_or(REQUEST_PAGES, |(pages, _)| pages),
                ahead: ahead.map_or(0, |(pages, _)| pages),
                elevator,
                width: small(width),
                cache,
                dirty: dirty.map_or(usual, |(pages, _)| pages),
                sync_all,
                cpu: CpuId(u16::try_from(cpu).expect("the range was checked")),
                cost,
                counters,
                line: self.source.line(at),
            });
        }
        Ok(disks)
    }

    fn dist(&mut self, table: &mut FileTable<'a>, key: &'static str) -> Result<Dist, FileError> {
        let text = table.text(key, "a span of time, as \"5us\", or a distribution")?;
        let dist = text.map(|text| self.read(text, Parser::dist)).transpose()?;
        Ok(dist.unwrap_or(Dist::Const(Nanos::ZERO)))
    }

    /// A size in pages, and where it stands.
    fn pages(
        &mut self,
        table: &mut FileTable<'a>,
        key: &'static str,
    ) -> Result<Option<(u64, FileValue<'a>)>, FileError> {
        let Some(value) = table.get(key) else {
            return Ok(None);
        };
        let bytes = self.integer(value, 4096..=MEMORY_BYTES_MAX, key)?;
        Ok(Some((bytes.unsigned_abs() / PAGE, value)))
    }

    fn cache(&mut self, table: &mut FileTable<'a>) -> Result<Cache, FileError> {
        let expected = "\"none\", \"percent:90\", \"lru:64MiB\" or \"lru\"";
        let Some(text) = table.text("cache", expected)? else {
            return Ok(Cache::None);
        };
        let within = |reader: &mut Self, text: Text, low: i64, high: i64| {
            let value = reader.read(text, Parser::constant)?;
            if (low..=high).contains(&value) {
                return Ok(value.unsigned_abs());
            }
            let problem = range("the cache", value, &format!("{low} to {high}"));
            Err(reader.source.error(text.place(0), problem))
        };
        if text.text == "none" {
            return Ok(Cache::None);
        }
        if text.text == "lru" {
            return Ok(Cache::Recent(None));
        }
        if let Some(percent) = text.after("percent:") {
            let percent = within(self, percent, 0, 100)?;
            return Ok(Cache::Chance(percent as u8));
        }
        if let Some(size) = text.after("lru:") {
            let bytes = within(self, size, 1 << 20, MEMORY_BYTES_MAX)?;
            return Ok(Cache::Recent(Some(bytes / PAGE)));
        }
        let problem = Problem::unexpected(format!("\"{}\"", text.text), expected);
        Err(self.source.error(text.place(0), problem))
    }

    pub(super) fn memory(&mut self) -> Result<Option<Memory>, FileError> {
        let Some(value) = self.memory else {
            return Ok(None);
        };
        let mut table = FileTable::new(self.source, "[mem]".to_owned(), value)?;
        let ram = table.require("ram", "how much memory there is, as \"128MiB\"")?;
        let bytes = self.integer(ram, 4 << 20..=MEMORY_BYTES_MAX, "ram")?;
        let pages = bytes.unsigned_abs() / PAGE;
        let swap = table.text("swap", "the disk that pages are written to")?;
        let swap =
            swap.ok_or_else(|| table.missing("swap", "the disk that pages are written to"))?;
        let swap = self.read(swap, Parser::disk)?;
        let low = self.pages(&mut table, "low")?;
        let high = self.pages(&mut table, "high")?;
        let low_pages = low.map_or((pages / LOW_SHARE).max(1), |(pages, _)| pages);
        let high_pages = high.map_or(low_pages * 2, |(pages, _)| pages);
        for (given, pages_given, what, least, most) in [
            (low, low_pages, "low", 1, pages / 2),
            (high, high_pages, "high", low_pages, pages / 2),
        ] {
            if !(least..=most).contains(&pages_given) {
                let (least, most) = (least * 4, most * 4);
                let problem = Problem::Range {
                    what: what.to_owned(),
                    found: format!("{} KiB", pages_given * 4),
                    expected: format!("{least} to {most} KiB, half of memory at most"),
                };
                let at = given.map_or(value, |(_, value)| value).span().start;
                return Err(self.source.error(at, problem));
            }
        }
        let lists = table.get("lists");
        let kinds = [("one", false), ("two", true)];
        let two_lists = lists.map_or(Ok(false), |value| self.choice(value, &kinds))?;
        table.finish()?;
        self.names.has_memory = true;
        Ok(Some(Memory {
            pages,
            swap,
            low: low_pages,
            high: high_pages,
            two_lists,
            line: self.source.line(value.span().start),
        }))
    }
}
