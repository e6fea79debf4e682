//! Damaged files: an error that says where, or events that obey the rules. Nothing else.

use model::Sink as _;

use super::snapshot;
use super::story::story;
use super::trace_files::with_snapshot;
use super::written::{FORMATS, written};
use super::{Window, import};

/// A `trace.dat` of `runslice record`.
const SNAPSHOT: &str = "record";

/// A generator of numbers, the same every time (xorshift64*, Vigna 2016).
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let word = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(word).unwrap() % most
    }
}

/// Changes a few bytes, cuts the end off, or puts a part elsewhere.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(3) {
        let long = bytes.len();
        if long < 16 {
            return;
        }
        let at = random.below(long);
        match random.below(6) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = [0, 0xff, 0x7f, 0x80][random.below(4)],
            2 => bytes.truncate(at),
            3 => {
                let until = (at + random.below(8)).min(long);
                bytes[at..until].fill(0xff);
            }
            4 => {
                let from = random.below(long);
                let many = random.below(64).min(long - from).min(long - at);
                bytes.copy_within(from..from + many, at);
            }
            _ => {
                let until = (at + random.below(32)).min(long);
                bytes.drain(at..until);
            }
        }
    }
}

fn mutate(format: &str, times: usize) {
    let whole = match format {
        SNAPSHOT => {
            let json = serde_json::to_vec(&snapshot()).unwrap();
            with_snapshot(&story(), &json)
        }
        format => written(format, &story()),
    };
    for seed in 1..=times {
        let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ seed as u64);
        let mut bytes = whole.clone();
        damage(&mut bytes, &mut random);
        let Ok((events, imported)) = import(&bytes, Window::default()) else {
            continue;
        };
        let mut rules = stats::Conservation::new();
        rules.begin(&imported.header);
        rules.events(&events);
        rules.finish(imported.end);
        assert_eq!(rules.violation(), None, "{format}: seed {seed}");
        // Whatever is said of it can be said.
        assert!(!imported.findings.sentences().is_empty());
    }
}

#[test]
fn damage_makes_an_error_or_events_that_obey_the_rules() {
    for format in FORMATS {
        mutate(format, 300);
    }
    mutate(SNAPSHOT, 1_000);
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn damage_of_a_hundred_thousand_kinds_does_so_too() {
    for format in FORMATS {
        mutate(format, 100_000);
    }
    mutate(SNAPSHOT, 100_000);
}

#[test]
fn a_file_that_breaks_off_is_read_up_to_there_or_refused_with_the_place() {
    for format in FORMATS {
        let whole = written(format, &story());
        for cut in (0..whole.len()).step_by(7) {
            match import(&whole[..cut], Window::default()) {
                Ok(_) => {}
                Err(error) => {
                    let said = error.to_string();
                    let has_place = said.contains("byte ")
                        || said.contains("neither perf.data")
                        || said.contains("no `sched_switch`");
                    assert!(has_place, "{format}, {cut} bytes: {said}");
                }
            }
        }
    }
}
