use std::fs;
use std::ops::ControlFlow;
use std::process::Command;

use folder::OwnFolder;
use model::{Event as Told, EventKind, Sink as _, What};

use super::*;

const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
                      \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
                      \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
                      \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";
const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                           \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
                           \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
                           \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
const HEADER_EVENT: &str = "# compressed entry header\n\ttype_len    :    5 bits\n\
                            \ttime_delta  :   27 bits\n\tarray       :   32 bits\n\n\
                            \tpadding     : type == 29\n\ttime_extend : type == 30\n\
                            \ttime_stamp : type == 31\n\tdata max type_len  == 28\n";
const SWITCH: &str = "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:1;\n\
                      \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
                      \tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n\
                      \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\
                      \tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:1;\n\
                      \tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n\
                      \tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n";
const WOKEN: &str = "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:1;\n\
                     \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
                     \tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n\
                     \tfield:int success;\toffset:32;\tsize:4;\tsigned:1;\n\
                     \tfield:int target_cpu;\toffset:36;\tsize:4;\tsigned:1;\n";

/// What a CPU reports: nanoseconds, and the bytes of the event.
type Reported = (u64, Vec<u8>);

fn common(id: u16, pid: u32) -> Vec<u8> {
    let mut bytes = id.to_ne_bytes().to_vec();
    bytes.extend([0, 0]);
    bytes.extend(pid.to_ne_bytes());
    bytes
}

fn comm(pid: u32) -> Vec<u8> {
    let name = if pid == 0 {
        "swapper".to_owned()
    } else {
        format!("task{pid}")
    };
    let mut bytes = name.into_bytes();
    bytes.resize(16, 0);
    bytes
}

fn switch(prev: u32, state: u64, next: u32) -> Vec<u8> {
    let mut bytes = common(314, prev);
    bytes.extend(comm(prev));
    bytes.extend(prev.to_ne_bytes());
    bytes.extend(120_u32.to_ne_bytes());
    bytes.extend(state.to_ne_bytes());
    bytes.extend(comm(next));
    bytes.extend(next.to_ne_bytes());
    bytes.extend(120_u32.to_ne_bytes());
    bytes
}

fn woken(id: u16, by: u32, pid: u32, cpu: u32) -> Vec<u8> {
    let mut bytes = common(id, by);
    bytes.extend(comm(pid));
    bytes.extend(pid.to_ne_bytes());
    for word in [120, 1, cpu] {
        bytes.extend(u32::to_ne_bytes(word));
    }
    bytes
}

/// Pages as the kernel's ring buffer lays them out (6.18, `include/linux/ring_buffer.h`): each as
/// full as it gets.
fn pages(reported: &[Reported]) -> Vec<u8> {
    let mut all = Vec::new();
    let mut page: Vec<u8> = Vec::new();
    let mut last = 0;
    let close = |page: &mut Vec<u8>, all: &mut Vec<u8>| {
        if let Some(long) = page.len().checked_sub(16) {
            page[8..16].copy_from_slice(&(long as u64).to_ne_bytes());
            page.resize(4096, 0);
            all.append(page);
        }
    };
    for (time, data) in reported {
        // At most an extension of the time, the head and the event.
        if page.is_empty() || page.len() + 12 + data.len() > 4096 {
            close(&mut page, &mut all);
            page.extend(time.to_ne_bytes());
            page.extend([0; 8]);
            last = *time;
        }
        let mut since = time - last;
        last = *time;
        if since >= 1 << 27 {
            let low = u32::try_from(since & ((1 << 27) - 1)).unwrap();
            page.extend((low << 5 | 30).to_ne_bytes());
            page.extend(u32::try_from(since >> 27).unwrap().to_ne_bytes());
            since = 0;
        }
        let words = u32::try_from(data.len() / 4).unwrap();
        assert!(data.len() % 4 == 0 && words <= 28);
        page.extend((u32::try_from(since).unwrap() << 5 | words).to_ne_bytes());
        page.extend(data);
    }
    close(&mut page, &mut all);
    all
}

/// 20 wakes 10 again and again; both share no CPU. Longer than a page on each CPU.
fn story() -> [Vec<Reported>; 2] {
    let (mut one, mut two) = (Vec::new(), Vec::new());
    let mut time = 5_000_000_000;
    two.push((time, switch(0, 0, 20)));
    for round in 0..100 {
        time += 1_000;
        two.push((time, woken(316, 20, 10, 0)));
        one.push((time + 10, woken(317, 0, 10, 0)));
        one.push((time + 20, switch(0, 0, 10)));
        one.push((time + 500, switch(10, 1, 0)));
        // Longer than the 27 bits of a time in an event's head.
        time += if round == 50 { 1 << 30 } else { 1_000 };
    }
    two.push((time, switch(20, 2, 0)));
    [one, two]
}

struct Fake {
    folder: OwnFolder,
}

impl Fake {
    fn of(story: &[Vec<Reported>]) -> Self {
        let folder = OwnFolder::new().unwrap();
        let fake = Self { folder };
        fake.file("events/header_page", HEADER_PAGE.as_bytes());
        fake.file("events/header_event", HEADER_EVENT.as_bytes());
        for (name, id, fields) in [
            ("sched/sched_switch", 314, SWITCH),
            ("sched/sched_waking", 316, WOKEN),
            ("sched/sched_wakeup", 317, WOKEN),
        ] {
            let event = name.split('/').next_back().unwrap();
            let format = format!(
                "name: {event}\nID: {id}\nformat:\n{COMMON}{fields}\nprint fmt: \"%d\", REC->{}\n",
                if id == 314 { "prev_pid" } else { "pid" }
            );
            fake.file(&format!("events/{name}/format"), format.as_bytes());
            fake.file(&format!("instance/events/{name}/enable"), b"0");
        }
        fake.file("saved_cmdlines", b"10 task10\n77 gone \x1b[2J\nnonsense\n");
        for name in ["tracing_on", "buffer_size_kb"] {
            fake.file(&format!("instance/{name}"), b"0");
        }
        fake.file("instance/trace_clock", b"---- [mono] tai");
        for (cpu, reported) in story.iter().enumerate() {
            let place = format!("instance/per_cpu/cpu{cpu}");
            fake.file(&format!("{place}/trace_pipe_raw"), &pages(reported));
            let stats = format!(
                "entries: 0\noverrun: 0\ncommit overrun: 0\nbytes: 0\ndropped events: {cpu}\nread \
                 events: {}\n",
                reported.len()
            );
            fake.file(&format!("{place}/stats"), stats.as_bytes());
        }
        fake
    }

    fn file(&self, name: &str, bytes: &[u8]) {
        let path = self.folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.folder.join(name)).unwrap()
    }

    fn start(&self, bytes_most: u64) -> Result<TraceRecorder, Error> {
        let wanted = WantedEvents::default();
        let asked = TraceOptions {
            root: self.folder.path(),
            tracefs: self.folder.path(),
            folder: self.folder.path(),
            wanted: &wanted,
            buffer_kib: Some(128),
            bytes_most,
        };
        let chosen = wanted.choose(self.folder.path())?;
        TraceRecorder::start_in(
            TraceInstance::at(self.folder.join("instance")),
            &asked,
            chosen.events,
        )
    }

    /// The `trace.dat` of all that is there.
    fn recorded(&self, snapshot: &[u8]) -> PathBuf {
        let mut recorded = self.start(u64::MAX).unwrap().stop().unwrap();
        assert_eq!(recorded.lost, 1);
        assert_eq!(recorded.events, 402);
        recorded.name([(20, "task20"), (30, "x\ny")]);
        let path = self.folder.join("trace.dat");
        let mut file = File::create(&path).unwrap();
        let bytes = recorded.write(&mut file, "Linux 4.19", snapshot).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), bytes);
        path
    }
}

fn import(path: &Path) -> (Vec<Told>, traces::foreign::Imported) {
    let mut events = Vec::new();
    let file = File::open(path).unwrap();
    let imported =
        traces::foreign::read(file, "t", traces::foreign::Window::default(), &mut |more| {
            events.extend_from_slice(more);
            ControlFlow::Continue(())
        });
    (events, imported.unwrap())
}

#[test]
fn pages_of_a_kernel_become_a_file_that_tells_the_same_events() {
    let fake = Fake::of(&story());
    let (events, imported) = import(&fake.recorded(b"{}"));
    let mut rules = stats::Conservation::new();
    rules.begin(&imported.header);
    rules.events(&events);
    rules.finish(imported.end);
    assert_eq!(rules.violation(), None);
    let findings = &imported.findings;
    assert_eq!(findings.clock.as_deref(), Some("mono"));
    assert_eq!(findings.records, 402);
    assert_eq!(
        (findings.wakeups.task, findings.unwoken, findings.mismatched),
        (100, 0, 0)
    );
    // Each turn of task 10 begins 20 ns after it was woken by 20, and lasts 480 ns.
    let ten = imported
        .tasks
        .iter()
        .position(|task| task.pid == 10)
        .unwrap();
    let of_ten = |event: &&Told| event.task.index() == ten && event.kind == EventKind::Switch;
    let begins: Vec<u64> = events
        .iter()
        .filter(of_ten)
        .map(|it| it.time.as_nanos())
        .collect();
    let want: Vec<u64> = story()[0]
        .iter()
        .skip(1)
        .step_by(3)
        .map(|(time, _)| time - 5_000_000_000)
        .collect();
    assert_eq!(begins, want);
    assert_eq!(imported.end.as_nanos(), (1 << 30) + 199_000);
}

#[test]
fn an_anonymous_recording_tells_the_same_events_without_names() {
    use model::snapshot::{GroupFacts, ThreadFacts};

    let fake = Fake::of(&story());
    let (events, named) = import(&fake.recorded(b"{}"));
    let thread = |pid: u32, comm: &str, kernel| ThreadFacts {
        pid,
        comm: comm.to_owned(),
        kernel,
        nice: 5,
        group: "/user.slice/anna".to_owned(),
        ..ThreadFacts::default()
    };
    let mut snapshot = model::Snapshot {
        recorder: 4242,
        ..model::Snapshot::default()
    };
    snapshot.begin.groups = ["/user.slice", "/user.slice/anna"]
        .map(|path| GroupFacts {
            path: path.to_owned(),
            ..GroupFacts::default()
        })
        .into();
    snapshot.begin.threads = vec![thread(10, "task10", false), thread(30, "kthread", true)];
    let mut recorded = fake.start(u64::MAX).unwrap().stop().unwrap();
    recorded.name([(20, "task20"), (30, "kthread")]);
    let probe = ("runslice_4242_7".to_owned(), Vec::new());
    recorded.formats.systems.push(probe);
    let counts = recorded.anonymise(&mut snapshot).unwrap();
    // task10, task20 and the one that is gone; 10, 20, 30, 77 and the recorder.
    assert_eq!((counts.names, counts.groups, counts.threads), (3, 2, 5));
    let path = fake.folder.join("anonymous.dat");
    let mut file = File::create(&path).unwrap();
    recorded.write(&mut file, "Linux 4.19", b"{}").unwrap();
    let bytes = fs::read(&path).unwrap();
    for secret in [&b"task10"[..], b"task20", b"gone", b"4242"] {
        let is_there = bytes.windows(secret.len()).any(|it| it == secret);
        assert!(!is_there, "{}", String::from_utf8_lossy(secret));
    }
    let (same, anonymous) = import(&path);
    // Whose name has a code may be of another group, and its number is another one.
    let told = |event: &Told| {
        let what = match event.what() {
            What::New { parent, .. } => What::New {
                group: 0,
                index: 0,
                pid: 0,
                parent,
            },
            what => what,
        };
        (event.time, event.task, event.cpu, what)
    };
    assert!(same.iter().map(told).eq(events.iter().map(told)));
    let name = |of: &traces::foreign::Imported| of.header.groups.clone();
    assert_ne!(name(&anonymous), name(&named));
    let [one, other] = &snapshot.begin.threads[..] else {
        panic!("two threads");
    };
    let groups: Vec<&str> = snapshot.begin.groups.iter().map(|it| &*it.path).collect();
    assert_eq!(groups, ["/g2", "/g2/g1"]);
    assert_eq!((&*one.group, one.nice), ("/g2/g1", 5));
    assert!(one.comm.starts_with('n') && other.comm == "kthread");
    let pids = [snapshot.recorder, one.pid, other.pid];
    assert!(
        pids.iter().all(|it| ![4242, 10, 30].contains(it)),
        "{pids:?}"
    );
}

#[test]
fn the_kernel_is_asked_for_what_is_wanted_and_told_to_stop() {
    let fake = Fake::of(&story());
    let recorder = fake.start(u64::MAX).unwrap();
    assert_eq!(recorder.kinds(), 3);
    assert_eq!(fake.text("instance/events/sched/sched_waking/enable"), "1");
    assert_eq!(fake.text("instance/tracing_on"), "1");
    assert_eq!(fake.text("instance/buffer_size_kb"), "128");
    drop(recorder.stop().unwrap());
    // Nothing is left beside what was there.
    assert!(!fs::read_dir(fake.folder.path()).unwrap().any(|entry| {
        let name = entry.unwrap().file_name();
        name.to_string_lossy().starts_with(".tmp")
    }));
}

#[test]
fn a_recording_ends_by_itself_at_its_limit() {
    let fake = Fake::of(&story());
    let recorder = fake.start(4096).unwrap();
    let patience = Instant::now() + Duration::from_secs(60);
    while recorder.ended().is_none() {
        assert!(Instant::now() < patience, "it goes on");
        thread::yield_now();
    }
    let recorded = recorder.stop().unwrap();
    assert_eq!(recorded.ended, Some(RecorderEnd::Limit));
    assert!(recorded.bytes >= 4096);
}

#[test]
fn what_the_kernel_does_not_have_is_an_error_that_names_the_file() {
    for (file, want) in [
        ("instance/tracing_on", "tracing_on"),
        ("instance/per_cpu", "per_cpu"),
        ("events/header_page", "header_page"),
        (
            "instance/events/sched/sched_switch/enable",
            "sched_switch/enable",
        ),
        (
            "instance/per_cpu/cpu1/trace_pipe_raw",
            "cpu1/trace_pipe_raw",
        ),
    ] {
        let fake = Fake::of(&story());
        let path = fake.folder.join(file);
        if path.is_dir() {
            fs::remove_dir_all(&path).unwrap();
        } else {
            fs::remove_file(&path).unwrap();
        }
        let error = fake.start(u64::MAX).unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
    }
    let fake = Fake::of(&story());
    fake.file(
        "events/header_page",
        b"field: char data; offset:16; size:99999999999;",
    );
    let error = fake.start(u64::MAX).unwrap_err().to_string();
    assert!(error.contains("how long a page"), "{error}");
}

#[test]
fn a_buffer_takes_a_share_of_the_memory_and_no_more() {
    // 8 MiB for each CPU, unless that is more than an eighth of the free memory.
    assert_eq!(buffer_kib(None, 8 << 20, 4).unwrap(), 8 << 10);
    assert_eq!(buffer_kib(None, 256 << 10, 16).unwrap(), 2 << 10);
    assert_eq!(buffer_kib(None, 0, 64).unwrap(), 64);
    assert_eq!(buffer_kib(Some(1), 8 << 20, 4).unwrap(), 64);
    assert_eq!(buffer_kib(Some(1 << 20), 8 << 20, 4).unwrap(), 1 << 20);
    let error = buffer_kib(Some(2 << 20), 8 << 20, 4).unwrap_err();
    let error = model::Advice::in_full(&error);
    assert!(error.contains("at most 1048576 KiB"), "{error}");
}

#[test]
fn trace_cmd_reads_the_file_and_says_nothing_against_it() {
    if Command::new("trace-cmd").output().is_err() {
        println!("left out: trace-cmd is not installed");
        return;
    }
    let fake = Fake::of(&story());
    let path = fake.recorded(b"{\"runslice_snapshot\":1}");
    let report = Command::new("trace-cmd")
        .arg("report")
        .arg("-i")
        .arg(&path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&report.stderr);
    assert!(report.status.success(), "{said}");
    assert!(
        !said.contains("unknown") && !said.contains("rror"),
        "{said}"
    );
    let text = String::from_utf8_lossy(&report.stdout);
    assert_eq!(
        text.lines()
            .filter(|line| line.contains("sched_switch"))
            .count(),
        202,
        "{text}"
    );
    assert_eq!(
        text.lines()
            .filter(|line| line.contains("sched_waking"))
            .count(),
        100
    );
    // The names come from the list that we wrote.
    assert!(text.contains("task20-20"), "{text}");
}
