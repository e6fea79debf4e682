use model::{EventWords, NOWHERE, Rng, TaskId};

use super::*;
use crate::read::{EventReader, ReadError, replay};
use crate::testing::{self, StreamWriter};
use crate::words::{KINDS, Names, WordForm};

const CPUS: u16 = 4;

fn written(stream: &StreamWriter, end: u64) -> String {
    written_by(JsonLines::new(Vec::new()), stream, end)
}

fn written_with_decisions(stream: &StreamWriter, end: u64) -> String {
    written_by(JsonLines::with_decisions(Vec::new()), stream, end)
}

fn written_by(mut lines: JsonLines<Vec<u8>>, stream: &StreamWriter, end: u64) -> String {
    stream.feed(&mut lines, CPUS, end);
    String::from_utf8(lines.close().unwrap()).unwrap()
}

fn read(text: &str) -> Result<(Vec<Event>, Option<SimTime>), ReadError> {
    let mut reader = EventReader::new(text.as_bytes())?;
    let events = reader.by_ref().collect::<Result<_, _>>()?;
    Ok((events, reader.end()))
}

/// A random event of each kind, with every word that the kind has, after three births.
fn every_kind(rng: &mut Rng) -> StreamWriter {
    let mut stream = StreamWriter::new()
        .born(0, 0, 0, 0)
        .born(0, 1, 1, 0)
        .born(0, 2, 1, 1);
    let mut time = 0;
    for (kind, _, words) in KINDS {
        time += rng.below(1_000_000);
        let fixed = kind == model::EventKind::New;
        let task = if fixed { 3 } else { rng.below(3) as u32 };
        let event = testing::event(time, kind, rng.below(CPUS.into()) as u16, TaskId(task));
        let mut numbers = EventWords::default();
        for word in words {
            let value = match word.form {
                WordForm::Number | WordForm::Signed => rng.next_u64() & word.part.max(),
                WordForm::Maybe if rng.below(4) == 0 => NOWHERE.into(),
                WordForm::Maybe => rng.below(5),
                WordForm::Flag => rng.below(2),
                WordForm::Cpu => rng.below(CPUS.into()),
                WordForm::Task if rng.below(4) == 0 => TaskId::NONE.0.into(),
                WordForm::Task => rng.below(3),
                WordForm::Name(names) => rng.below(names.len() as u64),
                WordForm::Index(Names::Groups | Names::Phases) => rng.below(2),
                WordForm::Index(_) => 0,
            };
            word.part.set(&mut numbers, value);
        }
        let numbers = (numbers.detail, numbers.a, numbers.b);
        stream = stream.push(testing::with(event, numbers));
    }
    stream
}

#[test]
fn every_kind_survives_the_way_through_a_file_bit_for_bit() {
    for seed in 0..200 {
        let stream = every_kind(&mut Rng::new(seed, 0));
        let text = written_with_decisions(&stream, 1 << 40);
        let (events, end) = read(&text).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        // No file is asked for virtual times.
        let mut written = stream.events.clone();
        written.retain(|event| event.kind != model::EventKind::Vtime);
        assert_eq!(events, written, "seed {seed}");
        assert_eq!(end, Some(SimTime::from_nanos(1 << 40)));
    }
}

/// What stands behind a task is kept from line to line, and many tails have one place.
#[test]
fn a_line_does_not_depend_on_those_before_it() {
    let mut rng = Rng::new(7, 0);
    let mut lines = Lines::new();
    let write = |lines: &mut Lines, event: &Event| {
        let mut room = [0; LONGEST];
        let len = lines.write(event, &mut room);
        String::from_utf8(room[..len].to_vec()).unwrap()
    };
    let mut earlier: Vec<Event> = Vec::new();
    for round in 0..400 {
        for mut event in every_kind(&mut rng).events {
            // Some come again, for another task at another time.
            if rng.below(2) == 0 && !earlier.is_empty() {
                let (time, task) = (event.time, event.task);
                event = earlier[rng.below(earlier.len() as u64) as usize];
                (event.time, event.task) = (time, task);
            }
            let alone = write(&mut Lines::new(), &event);
            assert_eq!(write(&mut lines, &event), alone, "round {round}");
            earlier.push(event);
        }
    }
}

#[test]
fn the_header_survives_with_any_text_in_its_names() {
    let mut header = testing::header(CPUS);
    header.workload = "quote \" backslash \\ newline \n ü".to_owned();
    header.duration = Some(model::Nanos::from_secs(3));
    header.seed = u64::MAX;
    let mut lines = JsonLines::new(Vec::new());
    lines.begin(&header);
    let bytes = lines.close().unwrap();
    assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 1);
    // A name with the end of a line would begin a row of every table, so it is read as shown.
    header.workload = "quote \" backslash \\ newline \\u000a ü".to_owned();
    assert_eq!(EventReader::new(&bytes[..]).unwrap().header(), &header);
}

#[test]
fn lines_are_as_documented() {
    let stream = StreamWriter::new()
        .born(0, 0, 0, 0)
        .start(5, 0, 1)
        .switch(7, 1, None, Some(0))
        .on(8, model::EventKind::Change, 0, 0, (-5_i64).cast_unsigned());
    let text = written(&stream, 9);
    let birth = concat!(
        r#"{"time_ns":0,"event":"new","cpu":0,"task":0,"group":0,"index":0,"pid":1000,"#,
        "\"parent\":null}\n"
    );
    let want = r#"{"time_ns":5,"event":"wakeup","cpu":1,"task":0,"waker":null,"waker_cpu":1,"new":1}
{"time_ns":7,"event":"switch","cpu":1,"task":0,"prev_state":"idle","prev":null,"overhead_ns":0}
{"time_ns":8,"event":"change","cpu":0,"task":0,"what":"nice","value":-5}
{"time_ns":9,"event":"end"}
"#;
    let (header, events) = text.split_once('\n').unwrap();
    assert_eq!(events, format!("{birth}{want}"));
    assert!(header.starts_with(r#"{"runslice_events":4,"policy":"fifo","workload":"test","#));
}

#[test]
fn the_example_of_the_documentation_can_be_read() {
    let docs = include_str!("../../../../docs/events.md");
    let example = docs
        .split("```json\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let (events, end) = read(example).unwrap();
    assert_eq!(
        (events.len(), end),
        (3, Some(SimTime::from_nanos(9_000_000)))
    );
}

#[test]
fn replaying_a_file_gives_the_numbers_of_the_run() {
    let stream = StreamWriter::new()
        .born(0, 0, 0, 0)
        .start(5, 0, 1)
        .switch(7, 1, None, Some(0))
        .switch(50, 1, Some((0, model::PrevState::Sleeping)), None);
    let (mut direct, mut again) = (stats::Metrics::new(), stats::Metrics::new());
    stream.feed(&mut direct, CPUS, 90);
    replay(written(&stream, 90).as_bytes(), &mut again).unwrap();
    assert_eq!(again.report(), direct.report());
    assert_eq!(again.report().groups[0].times.run.get(), 43);
}

/// The message for a file whose line after the header and a birth is `line`.
fn message(line: &str) -> String {
    let text = written(&StreamWriter::new().born(10, 0, 0, 0), 20);
    let mut lines: Vec<&str> = text.lines().collect();
    lines.insert(2, line);
    read(&lines.join("\n")).unwrap_err().to_string()
}

#[test]
fn a_wrong_line_is_named_with_its_number_and_what_was_expected() {
    let cases = [
        (
            r#"{"time_ns":10"#,
            "line 3, column 13: EOF while parsing an object",
        ),
        (
            r#"{"time_ns":10,"event":"nap","cpu":0}"#,
            "line 3: there is no event `nap`",
        ),
        (
            r#"{"time_ns":9,"event":"exit","cpu":0,"task":0}"#,
            "line 3: `time_ns` is 9, and must be at least 10, the time of the line before",
        ),
        (
            r#"{"time_ns":11,"event":"exit","cpu":4,"task":0}"#,
            "line 3: `cpu` is 4, and must be a whole number up to 3",
        ),
        (
            r#"{"time_ns":11,"event":"exit","cpu":0,"task":1}"#,
            "line 3: `task` is 1, and must be null or under 1",
        ),
        (
            r#"{"time_ns":11,"event":"exit","cpu":0,"task":null}"#,
            "line 3: `task` is null, and must be a task",
        ),
        (
            r#"{"time_ns":11,"event":"exit","cpu":0,"task":0,"why":1}"#,
            "line 3: `exit` has no field `why`",
        ),
        (
            r#"{"time_ns":11,"event":"migrate","cpu":0,"task":0}"#,
            "line 3: `from` is missing, and must be a whole number up to 3",
        ),
        (
            r#"{"time_ns":11,"event":"count","cpu":0,"task":0,"counter":1,"by":1}"#,
            "line 3: `counter` is 1, and must be under 1",
        ),
        (
            r#"{"time_ns":11,"event":"change","cpu":0,"task":0,"what":"mood","value":1}"#,
            "line 3: `what` is \"mood\", and must be one of nice, affinity, class",
        ),
        (
            r#"{"time_ns":11,"event":"steal","cpu":0,"task":0,"span_ns":-1}"#,
            "line 3: `span_ns` is -1, and must be a whole number up to 18446744073709551615",
        ),
        (
            r#"{"time_ns":9007199254740993,"event":"end"}"#,
            "line 3: `time_ns` is 9007199254740993, and must be a whole number up to \
             9007199254740992",
        ),
    ];
    for (line, want) in cases {
        assert_eq!(message(line), want, "{line}");
    }
    let twin = concat!(
        r#"{"time_ns":11,"event":"new","cpu":0,"task":3,"group":0,"index":0,"pid":1,"#,
        r#""parent":null}"#
    );
    assert_eq!(message(twin), "line 3: `task` is 3, and must be 1");
    let after = message(r#"{"time_ns":11,"event":"end"}"#);
    assert_eq!(
        after,
        "line 4: the run is over, and nothing may follow `end`"
    );
}

#[test]
fn a_file_that_was_cut_off_says_so() {
    let text = written(&StreamWriter::new().born(10, 0, 0, 0), 20);
    let cut: String = text
        .lines()
        .take(2)
        .map(|line| format!("{line}\n"))
        .collect();
    let error = read(&cut).unwrap_err().to_string();
    assert_eq!(error, "the file was cut off after line 2: it has no `end`");
    let mut metrics = stats::Metrics::new();
    assert!(matches!(
        replay(cut.as_bytes(), &mut metrics),
        Err(ReadError::CutOff { line: 2 })
    ));
}

#[test]
fn only_a_header_of_this_version_is_accepted() {
    let text = written(&StreamWriter::new(), 20);
    let future = text.replace("\"runslice_events\":4", "\"runslice_events\":5,\"new\":0");
    let error = EventReader::new(future.as_bytes()).unwrap_err();
    let error = model::Advice::in_full(&error);
    assert!(error.starts_with(
        "the events have format version 5, and this runslice reads 1, 3 and 4; write"
    ));
    for older in ["1", "3"] {
        let text = text.replace(
            "\"runslice_events\":4",
            &format!("\"runslice_events\":{older}"),
        );
        assert!(EventReader::new(text.as_bytes()).is_ok(), "{older}");
    }
    for other in ["", "{}\n", "time,event\n", "[1]\n", "\"x\"\n"] {
        let error = EventReader::new(other.as_bytes()).unwrap_err();
        assert!(matches!(error, ReadError::NotEvents), "{other:?}: {error}");
    }
    let many = text.replace("\"cpus\":4", "\"cpus\":2000");
    let error = EventReader::new(many.as_bytes()).unwrap_err().to_string();
    assert_eq!(error, "line 1: `cpus` is 2000, and must be from 1 to 1024");
    let lacking = text.replace("\"seed\":7,", "");
    let error = EventReader::new(lacking.as_bytes())
        .unwrap_err()
        .to_string();
    assert!(error.ends_with(": missing field `seed`"), "{error}");
}

#[test]
fn no_text_makes_the_reader_panic() {
    let text = written_with_decisions(&every_kind(&mut Rng::new(1, 0)), 1 << 40);
    for seed in 0..2000 {
        let mut rng = Rng::new(seed, 1);
        let mut bytes = text.clone().into_bytes();
        for _ in 0..=rng.below(4) {
            let at = rng.below(bytes.len() as u64) as usize;
            match rng.below(3) {
                0 => bytes[at] = rng.below(256) as u8,
                1 => drop(bytes.remove(at)),
                _ => bytes.truncate(at.max(1)),
            }
        }
        let mut metrics = stats::Metrics::new();
        if replay(&bytes[..], &mut metrics).is_ok() {
            let _ = metrics.report();
        }
        let mut observer = explain::why::Observer::new(3, None);
        if replay(&bytes[..], &mut observer).is_ok() {
            let _ = (observer.finding(), observer.worst());
        }
    }
}

/// Fails after some bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self
            .0
            .checked_sub(bytes.len())
            .ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn the_first_error_of_the_writer_ends_the_writing() {
    let mut lines = JsonLines::new(Full(500));
    assert!(lines.wants().has(model::EventKind::Kick));
    lines.begin(&testing::header(CPUS));
    let birth = StreamWriter::new().born(0, 0, 0, 0);
    while lines.wants() != EventMask::NONE {
        lines.events(&birth.events);
    }
    lines.events(&birth.events);
    lines.finish(SimTime::from_nanos(1));
    let error = lines.close().err().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}

#[test]
fn a_large_batch_reaches_the_writer_in_pieces() {
    let event = testing::event(1, model::EventKind::Kick, 3, TaskId::NONE);
    let mut lines = JsonLines::new(Vec::new());
    lines.begin(&testing::header(CPUS));
    let batch = vec![event; 50_000];
    lines.events(&batch);
    assert!(
        lines.output.buffer().capacity() < 1 << 20,
        "memory grows with a batch"
    );
    let bytes = lines.close().unwrap();
    assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 50_001);
}

#[test]
fn texts_survive_and_a_plain_file_has_neither_them_nor_decisions() {
    let place = Text::Place {
        place: 5,
        function: "f".to_owned(),
        file: Some("a \"b\".c".to_owned()),
        line: 9,
    };
    let end = Exit {
        kind: ExitKind::ErrorStall,
        code: -1,
        message: "m".to_owned(),
        time: SimTime::from_nanos(3),
        fault: None,
    };
    let below = Text::Scheduler {
        scheduler: 2,
        policy: "below".to_owned(),
        cgroup: "/app".to_owned(),
    };
    let of_below = Text::SubExit {
        scheduler: 2,
        exit: end.clone(),
    };
    let exit = Text::Exit(end);
    let queue = testing::event(1, model::EventKind::Queue, 0, TaskId::NONE);
    let write = |mut lines: JsonLines<Vec<u8>>| {
        lines.begin(&testing::header(CPUS));
        lines.text(&place);
        lines.text(&below);
        lines.events(&[queue]);
        lines.text(&exit);
        lines.text(&of_below);
        lines.finish(SimTime::from_nanos(9));
        lines.close().unwrap()
    };
    let bytes = write(JsonLines::with_decisions(Vec::new()));
    let mut reader = EventReader::new(&bytes[..]).unwrap();
    assert_eq!(reader.by_ref().count(), 1);
    let all = [&place, &below, &exit, &of_below].map(Clone::clone);
    assert_eq!(reader.take_texts(), all);
    let plain = String::from_utf8(write(JsonLines::new(Vec::new()))).unwrap();
    assert!(
        plain.contains("\"runslice_events\":4") && plain.lines().count() == 2,
        "{plain}"
    );
}
