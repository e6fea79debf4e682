//! The paper's sample, each version there and back, logs, and what is refused.

use std::fmt::Write as _;

use model::Nanos;

use super::*;
use crate::Millionths;

/// Appendix A of "The Cursor Wiggles Faster" (2004).
const SAMPLE: &str = "version 4\ntimestamp 4295814751\n\
    cpu0 8909 9103 612 11869 264585 9821 392921 1065335 406 140662 1206403 62905 1192940 0 13440 \
    13469 0 0 0 0 82278 1497607 264615\n\
    cpu1 5138 5328 577 8126 265205 6270 402877 943453 1005 149999 1094457 77670 1074828 0 13469 \
    13440 0 0 0 0 200998 448842 265175\n\
    totals 14047 14431 1189 19995 529790 16091 795798 2008788 1411 290661 2300860 140575 2267768 \
    0 26909 26909 0 0 0 0\n";

/// `INITIAL_JIFFIES` of Linux 2.6 with HZ=1000: the clock starts 300 s before it wraps 32 bits.
const BOOT: u64 = (1 << 32) - 300_000;

fn read(text: &str) -> Vec<Snapshot> {
    SchedstatReader::new(text.as_bytes())
        .collect::<Result<_, _>>()
        .unwrap()
}

fn error(text: &str) -> String {
    let result: Result<Vec<_>, _> = SchedstatReader::new(text.as_bytes()).collect();
    model::Advice::in_full(&result.unwrap_err())
}

/// The machine of `after` when it booted: all counters are 0.
fn booted(after: &Snapshot, timestamp: u64) -> Snapshot {
    let mut snapshot = Snapshot::new(after.layout(), timestamp);
    for cpu in after.cpus() {
        snapshot.push_cpu(cpu.number(), &vec![0; cpu.values().len()]);
        for domain in cpu.domains() {
            let zeros = vec![0; domain.values().len()];
            snapshot.push_domain(domain.level(), domain.name(), domain.mask(), &zeros);
        }
    }
    snapshot
}

fn millis(ns: u64) -> u64 {
    (ns + 500) / 1_000
}

#[test]
fn the_papers_sample_reads_to_the_papers_values() {
    let snapshot = &read(SAMPLE)[0];
    let interval = Interval::new(&booted(snapshot, BOOT), snapshot).unwrap();
    assert_eq!(interval.jiffies(), 1_147_455);
    // The sample alone is one since boot.
    let alone = Interval::since_boot(snapshot, HZ_OF_4);
    assert_eq!(alone.jiffies(), interval.jiffies());
    assert_eq!(
        alone.figures(&alone.total(), 2, 1_000),
        interval.figures(&interval.total(), 2, 1_000)
    );
    let us = |nanos: Option<Nanos>| millis(nanos.unwrap().get());
    let figures: Vec<_> = interval
        .cpus
        .iter()
        .map(|cpu| interval.figures(cpu, 1, 1_000))
        .collect();
    // Microseconds: 5.660 ms and so on.
    assert_eq!(us(figures[0].latency), 5_660);
    assert_eq!(us(figures[1].latency), 1_693);
    assert_eq!(
        (us(figures[0].runslice), us(figures[1].runslice)),
        (311, 758)
    );
    let total = interval.figures(&interval.total(), 2, 1_000);
    // The document prints 3.674: 1,946,449 / 529,790 is 3.67400.
    assert_eq!((us(total.latency), us(total.runslice)), (3_674, 535));
    let ten_thousandths = |share: Option<Millionths>| (share.unwrap().0 + 50) / 100;
    let thousandths = |share: Option<Millionths>| (share.unwrap().0 + 500) / 1_000;
    let imbalance = |cpu: usize| &figures[cpu].imbalance[0];
    assert_eq!(imbalance(0).kind, "tasks");
    assert_eq!(ten_thousandths(imbalance(0).per_call), 521);
    assert_eq!(ten_thousandths(imbalance(1).per_call), 710);
    assert_eq!(thousandths(imbalance(0).per_found), 4_672);
    assert_eq!(thousandths(imbalance(1).per_found), 3_957);
    // Idle 92.8 % and 82.5 %.
    assert_eq!(thousandths(figures[0].busy), 1_000 - 928);
    assert_eq!(thousandths(figures[1].busy), 1_000 - 825);
}

#[test]
fn the_papers_totals_are_the_sums_of_its_cpus() {
    let snapshot = &read(SAMPLE)[0];
    let mut summed = snapshot.clone();
    summed.sum_totals();
    assert_eq!(snapshot.totals().unwrap().len(), 20);
    assert_eq!(snapshot, &summed);
}

#[test]
fn totals_of_23_fields_are_read_and_kept() {
    let long = SAMPLE.replace(
        "26909 26909 0 0 0 0\n",
        "26909 26909 0 0 0 0 283276 1946449 529790\n",
    );
    let snapshot = &read(&long)[0];
    assert_eq!(
        snapshot.totals().unwrap()[20..],
        [283_276, 1_946_449, 529_790]
    );
    let mut written = Vec::new();
    snapshot.write(&mut written).unwrap();
    assert_eq!(String::from_utf8(written).unwrap(), long);
}

/// A small generator with a period of 2^64; what it draws only has to differ.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let bits = self.0 >> 33;
        // Counters of all lengths, the largest included.
        (self.0 ^ (self.0 << 17)) >> (bits % 65).min(63)
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 1) % limit
    }

    fn numbers(&mut self, count: usize) -> Vec<u64> {
        (0..count).map(|_| self.next()).collect()
    }
}

fn random_snapshot(version: u32, draw: &mut Draw) -> Snapshot {
    let layout = Layout::of(version).unwrap();
    let now = draw.next();
    let mut snapshot = Snapshot::new(layout, if layout.timestamp { now } else { 0 });
    let mut cpu = 0;
    for _ in 0..=draw.below(6) {
        cpu += u32::try_from(1 + draw.below(3)).unwrap();
        snapshot.push_cpu(cpu, &draw.numbers(layout.cpu.len()));
        let domains = if layout.domain.is_empty() {
            0
        } else {
            draw.below(4)
        };
        for level in 0..u32::try_from(domains).unwrap() {
            let name = if layout.domain_names { "MC" } else { "" };
            let mask = format!("{:08x},{:08x}", draw.below(1 << 32), draw.below(1 << 32));
            let counters = draw.numbers(layout.domain.len());
            snapshot.push_domain(level, name, &mask, &counters);
        }
    }
    snapshot.sum_totals();
    snapshot
}

#[test]
fn every_version_is_read_as_it_was_written() {
    for version in VERSIONS {
        let mut draw = Draw(u64::from(version));
        let mut log = Vec::new();
        let snapshots: Vec<_> = (0..100)
            .map(|_| random_snapshot(version, &mut draw))
            .collect();
        for snapshot in &snapshots {
            snapshot.write(&mut log).unwrap();
        }
        let again = read(std::str::from_utf8(&log).unwrap());
        assert_eq!(again, snapshots, "version {version}");
    }
}

/// A file that ends anywhere is an error, or the snapshots before are all that is there.
#[test]
fn a_log_that_is_cut_anywhere_gives_its_whole_snapshots_and_an_error() {
    for version in VERSIONS {
        let mut draw = Draw(1_000 + u64::from(version));
        let snapshots = [
            random_snapshot(version, &mut draw),
            random_snapshot(version, &mut draw),
        ];
        let mut log = Vec::new();
        snapshots[0].write(&mut log).unwrap();
        let first = log.len();
        snapshots[1].write(&mut log).unwrap();
        for end in first + 1..log.len() {
            let mut reader = SchedstatReader::new(&log[..end]);
            assert_eq!(
                reader.next_snapshot().unwrap().as_ref(),
                Some(&snapshots[0])
            );
            // Between two lines of counters nothing shows that more were to come.
            let at_line = log[end - 1] == b'\n';
            match reader.next_snapshot() {
                Err(error) => assert!(error.to_string().contains("line "), "{error}"),
                Ok(read) => assert!(at_line && read.is_some(), "version {version}, {end}"),
            }
        }
    }
}

#[test]
fn a_log_of_a_shell_loop_is_a_row_of_snapshots() {
    let log = format!("{SAMPLE}\n{SAMPLE}{SAMPLE}");
    assert_eq!(read(&log).len(), 3);
}

#[test]
fn a_reader_uses_the_memory_of_its_snapshot_again() {
    let log = SAMPLE.repeat(3);
    let mut reader = SchedstatReader::new(log.as_bytes());
    let mut snapshot = reader.next_snapshot().unwrap().unwrap();
    let place = snapshot.numbers.as_ptr();
    assert!(reader.read_into(&mut snapshot).unwrap());
    assert_eq!(snapshot.numbers.as_ptr(), place);
    assert_eq!(snapshot, read(SAMPLE)[0]);
}

#[test]
fn counters_wrap_at_32_and_at_64_bits() {
    let layout = Layout::of(15).unwrap();
    let snapshot = |timestamp, run, wait| {
        let mut snapshot = Snapshot::new(layout, timestamp);
        snapshot.push_cpu(0, &[0, 0, 0, 0, 0, 0, run, wait, 10]);
        snapshot
    };
    let before = snapshot(
        u64::from(u32::MAX) - 4,
        u64::from(u32::MAX) - 1,
        u64::MAX - 2,
    );
    let after = snapshot(5, 8, 7);
    let interval = Interval::new(&before, &after).unwrap();
    assert_eq!(interval.jiffies(), 10);
    let cpu = &interval.cpus[0];
    assert_eq!(
        (cpu.get(layout, "cpu_time"), cpu.get(layout, "run_delay")),
        (Some(10), Some(10))
    );
    assert!(!cpu.restarted);
}

#[test]
fn a_counter_that_began_anew_is_told() {
    let layout = Layout::of(15).unwrap();
    let snapshot = |timestamp, slices| {
        let mut snapshot = Snapshot::new(layout, timestamp);
        snapshot.push_cpu(0, &[0, 0, 0, 0, 0, 0, 0, 0, slices]);
        snapshot
    };
    let interval = Interval::new(&snapshot(10, 500), &snapshot(20, 30)).unwrap();
    assert!(interval.cpus[0].restarted);
    assert_eq!(interval.cpus[0].get(layout, "pcnt"), Some(30));
}

#[test]
fn cpus_that_come_and_go_are_left_out_and_told() {
    let layout = Layout::of(15).unwrap();
    let snapshot = |timestamp, cpus: [u32; 3]| {
        let mut snapshot = Snapshot::new(layout, timestamp);
        for cpu in cpus {
            snapshot.push_cpu(cpu, &[timestamp; 9]);
        }
        snapshot
    };
    let interval = Interval::new(&snapshot(100, [0, 1, 2]), &snapshot(150, [0, 2, 7])).unwrap();
    let cpus: Vec<_> = interval.cpus.iter().map(|cpu| cpu.cpu).collect();
    assert_eq!(
        (cpus, interval.came.clone(), interval.gone.clone()),
        (vec![0, 2], vec![7], vec![1])
    );
    assert_eq!(interval.total().counters, [100; 9]);
}

#[test]
fn domains_are_compared_only_with_the_same_cpus_in_them() {
    let layout = Layout::of(17).unwrap();
    let snapshot = |timestamp, mask| {
        let mut snapshot = Snapshot::new(layout, timestamp);
        snapshot.push_cpu(0, &[0; 9]);
        snapshot.push_domain(0, "MC", mask, &[timestamp; 45]);
        snapshot
    };
    let same = Interval::new(&snapshot(10, "3"), &snapshot(14, "3")).unwrap();
    assert_eq!(same.cpus[0].domains[0].counters, [4; 45]);
    let kinds: Vec<_> = same.figures(&same.total(), 1, 250).imbalance;
    assert_eq!(
        kinds.iter().map(|kind| kind.kind).collect::<Vec<_>>(),
        ["load", "util", "task", "misfit"]
    );
    let other = Interval::new(&snapshot(10, "3"), &snapshot(14, "7")).unwrap();
    assert!(other.cpus[0].domains.is_empty());
}

#[test]
fn version_14_counts_jiffies_or_nanoseconds() {
    let layout = Layout::of(14).unwrap();
    let interval = |run: u64| {
        let snapshot = |timestamp, run| {
            let mut snapshot = Snapshot::new(layout, timestamp);
            snapshot.push_cpu(0, &[0, 0, 0, 0, 0, 0, 0, 0, 0, run, 2 * run, run / 10]);
            snapshot
        };
        Interval::new(&snapshot(1_000, 0), &snapshot(11_000, run)).unwrap()
    };
    let jiffies = interval(9_000);
    assert_eq!(jiffies.time_unit(), TimeUnit::Jiffies);
    let figures = jiffies.figures(&jiffies.cpus[0], 1, 1_000);
    assert_eq!(figures.runslice, Some(Nanos::from_millis(10)));
    assert_eq!(figures.busy, Some(Millionths(900_000)));
    let nanos = interval(9_000_000_000);
    assert_eq!(nanos.time_unit(), TimeUnit::Nanoseconds);
    assert_eq!(
        nanos.figures(&nanos.cpus[0], 1, 1_000).runslice,
        Some(Nanos::new(10))
    );
}

#[test]
fn a_reboot_and_another_kernel_end_a_row_of_intervals() {
    let old = &read(SAMPLE)[0];
    let new = booted(old, BOOT + 5);
    let error = Interval::new(old, &new).unwrap_err().to_string();
    assert!(error.contains("started anew"), "{error}");
    let mut draw = Draw(9);
    let error = Interval::new(old, &random_snapshot(17, &mut draw))
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "the first snapshot has version 4 and the second 17: another kernel"
    );
}

/// A clock of 5 s after a boot, and one of 2 s after the next: not 49 days, but a reboot. Five
/// minutes after a boot 32 bits do wrap.
#[test]
fn a_second_boot_within_five_minutes_is_no_wrap() {
    let at = |jiffies| booted(&read(SAMPLE)[0], BOOT + jiffies);
    let error = Interval::new(&at(5_000), &at(2_000)).unwrap_err();
    assert!(matches!(error, IntervalError::Rebooted { .. }), "{error}");
    let wrapped = booted(&read(SAMPLE)[0], 7_000);
    let interval = Interval::new(&at(299_000), &wrapped).unwrap();
    assert_eq!(interval.jiffies(), 8_000);
    // The first boot's clock has exceeded its word, the second one's has not.
    let error = Interval::new(&wrapped, &at(2_000)).unwrap_err();
    let want = "the clock jumped from 7000 to 4294669296 jiffies: the machine was started anew";
    assert_eq!(error.to_string(), want);
}

#[test]
fn domains_of_one_level_and_two_names_are_not_added_up() {
    let snapshot = |timestamp| {
        let mut snapshot = Snapshot::new(Layout::of(17).unwrap(), timestamp);
        for (cpu, name) in [(0, "SMT"), (1, "SMT"), (2, "MC")] {
            snapshot.push_cpu(cpu, &[0; 9]);
            snapshot.push_domain(0, name, &format!("{cpu}"), &[timestamp; 45]);
        }
        snapshot
    };
    let total = Interval::new(&snapshot(10), &snapshot(14)).unwrap().total();
    let sums: Vec<_> = total
        .domains
        .iter()
        .map(|domain| (domain.name.as_str(), domain.counters[0]))
        .collect();
    assert_eq!(sums, [("SMT", 8), ("MC", 4)]);
}

#[test]
fn counters_that_are_switched_off_are_no_zeros() {
    let interval = |version, calls: u64, slices: u64| {
        let layout = Layout::of(version).unwrap();
        let snapshot = |timestamp, calls: u64, slices: u64| {
            let mut snapshot = Snapshot::new(layout, timestamp);
            let value = |field: &LayoutField| match field.name {
                "sched_cnt" => calls,
                "pcnt" => slices,
                _ => 0,
            };
            let counters: Vec<u64> = layout.cpu.iter().map(value).collect();
            snapshot.push_cpu(0, &counters);
            snapshot
        };
        Interval::new(&snapshot(10, 7, 7), &snapshot(20, 7 + calls, 7 + slices)).unwrap()
    };
    assert_eq!(interval(17, 0, 30).counted(), Counted::Times);
    assert_eq!(interval(17, 20, 30).counted(), Counted::Part);
    assert_eq!(interval(17, 40, 30).counted(), Counted::All);
    // Nothing happened, or the version has no switch.
    assert_eq!(interval(17, 0, 0).counted(), Counted::All);
    assert_eq!(interval(14, 0, 30).counted(), Counted::All);
    let off = interval(17, 0, 30);
    assert_eq!(off.figures(&off.total(), 1, 250).imbalance, []);
    // Calls have 32 bits, slices 64: nobody switched anything off.
    for version in [14, 15, 17] {
        let wrapped = interval(version, 705_032_704, 5_000_000_000);
        assert_eq!(wrapped.counted(), Counted::Wrapped, "{version}");
        assert_eq!(wrapped.figures(&wrapped.total(), 1, 250).imbalance, []);
    }
    // Nobody can tell these from 8,294,967,296.
    let unknown = interval(17, 4_000_000_000, 3_000_000_000);
    assert_eq!(unknown.counted(), Counted::Wrapped);
    let known = interval(17, 4_000_000_000, 2_000_000_000);
    assert_eq!(known.counted(), Counted::All);
}

#[test]
fn lines_that_a_vendor_adds_are_passed_over_by_name() {
    let cpu = "cpu0 1 0 3 4 5 6 7 8 9\n";
    let plain = format!("version 15\ntimestamp 9\n{cpu}");
    let vendor = format!("{plain}eas 50510 0 0 29148 0 21362\n");
    assert_eq!(read(&vendor), read(&plain));
    let other = error(&format!("{plain}eas2 1\n"));
    assert!(other.contains("eas2 1"), "{other}");
}

#[test]
fn the_cpu_lines_of_a_later_version_are_read_on_demand() {
    let text = "version 18\ntimestamp 5\ncpu0 1 2 3 4 5 6 7 8 9\ndomain0 NEW f 1 2\n";
    assert_eq!(
        error(text),
        "line 1: statistics of version 18 are unknown; `stat report --cpu-lines` reads its \
         cpu lines as those of version 17"
    );
    let later = |text: &str| {
        let mut reader = SchedstatReader::new(text.as_bytes()).with_later_versions(true);
        reader.next_snapshot()
    };
    let snapshot = later(text).unwrap().unwrap();
    let cpu = snapshot.cpu(0).unwrap();
    assert_eq!((cpu.get("cpu_time"), cpu.get("pcnt")), (Some(7), Some(9)));
    assert_eq!((snapshot.layout().version, cpu.domains().len()), (18, 0));
    // A line that has changed is not guessed at, and neither is what came before version 4.
    assert!(later(&text.replace("8 9", "8 9 10")).is_err());
    assert!(later(&text.replace("18", "3")).is_err() && later(&text.replace("18", "41")).is_err());
}

#[test]
fn a_recording_may_say_its_hz() {
    let log = format!("{SAMPLE}# HZ=100\n{SAMPLE}");
    let mut reader = SchedstatReader::new(log.as_bytes());
    assert_eq!(reader.hz(), None);
    assert!(reader.next_snapshot().unwrap().is_some() && reader.next_snapshot().unwrap().is_some());
    assert!(reader.next_snapshot().unwrap().is_none());
    assert_eq!(reader.hz(), Some(100));
    assert!(error("# HZ=0\n").contains("line 1"));
    assert!(error("# anything else\n").contains("line 1"));
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn what_is_wrong_is_said_with_its_line() {
    let expectations = [
        (
            "",
            "empty: /proc/schedstat begins with `version`; has the kernel CONFIG_SCHEDSTATS?",
        ),
        (
            "hello\n",
            "line 1: `hello` where `version N` must stand; name what `stat record FILE` made",
        ),
        (
            "version 13\n",
            "line 1: statistics of version 13 are unknown; it was never released",
        ),
        (
            "version 2\n",
            "line 1: statistics of version 2 are unknown; the order of its fields was not \
             handed down",
        ),
        (
            "version 99\n",
            "line 1: statistics of version 99 are unknown; [3, 4, 5, 7, 9, 10, 11, 12, 14, 15, 16, \
             17] are read",
        ),
        ("version 15\n", "line 1: the file ends before the timestamp"),
        (
            "version 15\ntimestamp x\n",
            "line 2: `timestamp x` where `timestamp N` must stand",
        ),
        (
            "version 15\ntimestamp 5\n",
            "line 2: the file ends before the first CPU",
        ),
        (
            "version 15\ntimestamp 5\ncpu0 1 2 3\n",
            "line 3: `cpu0` has 3 fields, and version 15 has 9",
        ),
        (
            "version 15\ntimestamp 5\ncpu0 1 2 3 4 5 6 7 8 9 10\n",
            "line 3: `cpu0` has 10 fields, and version 15 has 9",
        ),
        (
            "version 15\ntimestamp 5\ncpu0 1 2 3 4 5 6 7 8 9",
            "line 3: the file ends before the end of the line",
        ),
        (
            "version 15\ntimestamp 5\ncpu0 1 2 3 4 5 6 7 8 -9\n",
            "line 3: `-9` is not a counter",
        ),
        (
            "version 15\ntimestamp 5\ncpu0 1 2 3 4 5 6 7 8 99999999999999999999\n",
            "line 3: `99999999999999999999` is not a counter",
        ),
        (
            "version 15\ntimestamp 5\ndomain0 1 2\n",
            "line 3: `domain0 1 2` where `cpuN, domainN or version N` must stand",
        ),
        (
            "version 15\ntimestamp 5\ncpu0 1 2 3 4 5 6 7 8 9\ncpu0 1 2 3 4 5 6 7 8 9\n",
            "line 4: cpu0 a second time in one snapshot; were two logs mixed?",
        ),
        (
            "version 17\ntimestamp 5\ncpu0 1 2 3 4 5 6 7 8 9\ndomain0 MC g 1\n",
            "line 4: `g` where `a mask of CPUs` must stand",
        ),
        (
            "version 17\ntimestamp 5\ncpu0 1 2 3 4 5 6 7 8 9\ndomain0 MC f 1 2\n",
            "line 4: `domain0` has 2 fields, and version 17 has 45",
        ),
    ];
    for (text, expected) in expectations {
        assert_eq!(error(text), expected, "for {text:?}");
    }
    let without_totals = SAMPLE.split("totals").next().unwrap();
    assert_eq!(
        error(without_totals),
        "line 4: the file ends before the line `totals`"
    );
}

#[test]
fn a_line_without_end_is_refused_before_memory_is() {
    let mut text = "version 15\ntimestamp 5\ncpu0".to_owned();
    while text.len() < 2 << 20 {
        write!(text, " 1").unwrap();
    }
    assert_eq!(error(&text), "line 3: longer than 1 MiB");
}

/// Read in guests of two CPUs, before and after six processes that compete, with
/// `kernel.sched_schedstats` turned on.
const KERNELS: [(&str, &str); 2] = [
    ("6.18", include_str!("golden/17-linux-6.18.txt")),
    ("7.2", include_str!("golden/17-linux-7.2.txt")),
];

#[test]
fn what_kernels_print_is_read_and_written_again() {
    for (kernel, text) in KERNELS {
        let snapshots = read(text);
        let mut written = Vec::new();
        for snapshot in &snapshots {
            snapshot.write(&mut written).unwrap();
        }
        assert_eq!(String::from_utf8(written).unwrap(), text, "{kernel}");
    }
}

/// No CPU runs for longer than the interval, and there was something to balance.
#[test]
fn what_kernels_print_makes_sense() {
    for (kernel, text) in KERNELS {
        let [before, after] = &read(text)[..] else {
            panic!("two snapshots of {kernel}")
        };
        let interval = Interval::new(before, after).unwrap();
        assert_eq!(interval.cpus.len(), 2);
        // Debian's kernels have HZ=250.
        let elapsed = interval.jiffies() * 4_000_000;
        for cpu in &interval.cpus {
            let run = u64::try_from(cpu.get(interval.layout(), "cpu_time").unwrap()).unwrap();
            // A turn counts when it ends, so one that began before the interval counts whole.
            assert!(
                run > 0 && run <= elapsed + 50_000_000,
                "{kernel}: {run} of {elapsed}"
            );
            assert_eq!(cpu.domains.len(), 1, "{kernel}");
            assert_eq!(cpu.domains[0].name, "MC");
        }
        let figures = interval.figures(&interval.total(), 2, 250);
        assert!(figures.latency.is_some() && figures.runslice.is_some());
        assert!(interval.total().balance_calls(interval.layout()).unwrap() > 0);
    }
}

#[test]
fn lines_that_a_paper_has_folded_are_read_as_one() {
    let folded =
        "version 15\ntimestamp 5\ncpu0 1 0 2 3 4\n5 6 7 8\ncpu1 1 0 2 3\n     4 5 6\n\t7 8\n";
    let whole = "version 15\ntimestamp 5\ncpu0 1 0 2 3 4 5 6 7 8\ncpu1 1 0 2 3 4 5 6 7 8\n";
    assert_eq!(read(folded), read(whole));
    let cut = "version 15\ntimestamp 5\ncpu0 1 0 2 3 4\n5 6";
    let mut reader = SchedstatReader::new(cut.as_bytes());
    let error = reader.next_snapshot().unwrap_err().to_string();
    assert!(error.contains("line 4"), "{error}");
}

#[test]
fn version_3_has_one_number_of_schedule_more_than_version_4_and_no_times() {
    let counters: Vec<String> = (1..=21).map(|it| it.to_string()).collect();
    let text = format!("version 3\ncpu0 {}\n", counters.join(" "));
    let snapshots = read(&text.repeat(2));
    assert_eq!(snapshots.len(), 2, "without timestamps");
    let interval = Interval::new(&snapshots[0], &snapshots[1]).unwrap();
    assert_eq!((interval.jiffies(), interval.counted()), (0, Counted::All));
    let cpu = snapshots[0].cpu(0).unwrap();
    let names = [
        "yld_cnt",
        "idle_while_queued",
        "sched_cnt",
        "lb_idle",
        "pt_gained",
        "bn_idle",
    ];
    assert_eq!(
        names.map(|name| cpu.get(name).unwrap()),
        [4, 7, 8, 9, 16, 21]
    );
    assert_eq!(cpu.get("pcnt"), None);
}

#[test]
fn totals_that_are_not_the_sums_of_the_cpus_are_found() {
    let mut snapshot = Snapshot::new(Layout::of(4).unwrap(), 5);
    snapshot.push_cpu(0, &[100_000; 23]);
    snapshot.push_cpu(1, &[100_000; 23]);
    snapshot.sum_totals();
    assert_eq!(snapshot.contradiction(), None);
    let mut text = Vec::new();
    snapshot.write(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let other = |said: &str| read(&text.replace("totals 200000", said))[0].contradiction();
    assert_eq!(
        other("totals 150000"),
        Some(("yld_both_empty", 150_000, 200_000))
    );
    assert_eq!(other("totals 200100"), None, "the kernel went on counting");
    assert_eq!(other("totals 4295167296"), None, "a word of 32 bits");
}

#[test]
fn calls_since_boot_are_unknown_where_so_many_turns_may_have_wrapped_them() {
    // 2,500,000,000 turns: 4,400,000,000 calls would read as 105,032,704, or more than the turns.
    for calls in [105_032_704_u64, 2_600_000_000] {
        let text = format!(
            "version 15\ntimestamp 9000000000\ncpu0 1 0 {calls} 3 4 5 6000000 7 2500000000\n"
        );
        let interval = Interval::since_boot(&read(&text)[0], 250);
        assert_eq!(interval.counted(), Counted::Wrapped, "{calls}");
    }
}

#[test]
fn times_since_boot_that_exceed_it_are_unknown() {
    // 300 s behind the boot. A counter of 32 bits that went below 0 reads as almost 2^32.
    let of = |run: u64, delay: u64| {
        let zeros = "0 ".repeat(20);
        let line = |name: &str, [run, delay, turns]: [u64; 3]| {
            format!("{name} {zeros}{run} {delay} {turns}\n")
        };
        let text = "version 4\ntimestamp 0\n".to_owned()
            + &line("cpu0", [run, delay, 800])
            + &line("cpu1", [4_000, 900, 800])
            + &line("totals", [run + 4_000, delay + 900, 1_600]);
        Interval::since_boot(&read(&text)[0], 1_000)
    };
    for (run, delay, is_beyond) in [
        (4_294_967_290, 900, true),
        (4_000, 4_294_967_200, true),
        // Many tasks may wait at once, each for less than the whole time.
        (300_900, 4_000_000, false),
    ] {
        let interval = of(run, delay);
        let wanted: &[u32] = if is_beyond { &[0] } else { &[] };
        assert_eq!(interval.beyond(1_000).collect::<Vec<_>>(), wanted);
        let total = interval.figures(&interval.total(), 2, 1_000);
        let own = interval.figures(&interval.cpus[0], 1, 1_000);
        for figures in [total, own] {
            let times = (figures.busy, figures.latency, figures.runslice);
            assert_eq!(times == (None, None, None), is_beyond);
            assert!(figures.slices.is_some());
        }
        let other = interval.figures(&interval.cpus[1], 1, 1_000);
        assert_eq!(other.runslice.map(Nanos::get), Some(5_000_000));
    }
}
