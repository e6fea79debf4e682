//! What `status` says of a machine that files describe.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::on_kernel::session::Session;

/// A root with these files that goes away.
struct Root(PathBuf);

impl Root {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let name = format!("runslice-status-{}-{name}", std::process::id());
        let root = Self(std::env::temp_dir().join(name));
        root.write("proc/sys/kernel/osrelease", "6.18.15\n");
        for (file, text) in files {
            root.write(file, text);
        }
        root
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A kernel with lavd of a service.
const LAVD: [(&str, &str); 7] = [
    ("sys/kernel/sched_ext/state", "enabled\n"),
    ("sys/kernel/sched_ext/switch_all", "1\n"),
    ("sys/kernel/sched_ext/root/ops", "lavd\n"),
    (
        "sys/kernel/sched_ext/root/events",
        "SCX_EV_A 3\nSCX_EV_B 0\n",
    ),
    ("proc/31/comm", "scx_lavd\n"),
    ("proc/31/cgroup", "0::/system.slice/scx.service\n"),
    ("proc/31/fdinfo/4", "link_type:\tstruct_ops\nmap_id:\t5\n"),
];

fn written(root: &Path, own: Option<Own>, form: Format) -> String {
    let situation = Situation::of(MachineFacts::below(root), &SchedExt::below(root), own);
    let mut text = Vec::new();
    situation.write(form, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn of_a_foreign_policy_it_says_what_is_known() {
    let root = Root::new("foreign", &LAVD);
    let want = "\
policy     lavd
run by     scx_lavd of scx.service, process 31
since      not known: not attached by runslice
tasks      all that have no real-time priority or deadline
tunables   not known: not attached by runslice
kernel     6.18.15

kernel counter  total
SCX_EV_A            3
SCX_EV_B            0
";
    assert_eq!(written(root.path(), None, Format::Human), want);
    let json = written(root.path(), None, Format::Json);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["policy"], "lavd");
    assert_eq!(json["run_by"]["service"], "scx.service");
    assert!(json["runslice"].is_null());
    assert_eq!(json["kernel_counters"][0]["total"], 3);
}

#[test]
fn without_the_right_to_look_into_processes_the_record_has_the_process() {
    let root = Root::new("unprivileged", &LAVD[..4]);
    let place = SessionPaths::below(root.path());
    let session = Session::begin(&place).unwrap();
    let record = SessionRecord {
        pid: 12,
        ..SessionRecord::of_this_process("fifo")
    };
    session
        .write(&record, Some(policies::find("fifo").unwrap().object))
        .unwrap();
    let own = Own::of(&record, &place, 0);
    let text = written(root.path(), Some(own), Format::Human);
    assert!(text.contains("run by     runslice, process 12\n"), "{text}");
    let text = written(root.path(), None, Format::Human);
    assert!(
        text.contains("a process that only the administrator sees"),
        "{text}"
    );
}

#[test]
fn without_a_policy_the_kernels_own_scheduler_is_named() {
    let root = Root::new("none", &[("sys/kernel/sched_ext/state", "disabled\n")]);
    let want = "policy     none: the kernel's own scheduler has all tasks\nkernel     6.18.15\n";
    assert_eq!(written(root.path(), None, Format::Human), want);
}

#[test]
fn of_its_own_policy_it_lists_the_knobs_and_says_what_it_cannot_read() {
    let root = Root::new("own", &LAVD);
    let place = SessionPaths::below(root.path());
    let session = Session::begin(&place).unwrap();
    let record = SessionRecord {
        since_unix_s: 951_782_400,
        restarts: 2,
        replaced: Some("scx.service".to_owned()),
        set: vec![("slice_ns".to_owned(), "5000000".to_owned())],
        counters: vec!["direct".to_owned()],
        ..SessionRecord::of_this_process("fifo:slice_ns=5000000")
    };
    session
        .write(&record, Some(policies::find("fifo").unwrap().object))
        .unwrap();
    let own = Own::of(&record, &place, 951_782_425);
    let knob = Tunable {
        name: "slice_ns".to_owned(),
        // There is no map in a folder.
        value: None,
        default: Some(20_000_000),
        min: Some(1000),
        max: Some(10_000_000_000),
        unit: "ns".to_owned(),
    };
    assert_eq!(own.knobs, [knob]);
    assert_eq!(own.notes.len(), 2, "{:?}", own.notes);
    assert!(
        own.notes[0].contains("runslice/data_knobs"),
        "{:?}",
        own.notes
    );
    assert!(
        own.notes[1].contains("runslice/counters"),
        "{:?}",
        own.notes
    );
    let text = written(root.path(), Some(own), Format::Human);
    for line in [
        "policy     fifo:slice_ns=5000000\nops name   lavd\n",
        "since      2000-02-29 00:00:00 UTC, for 25 s\n",
        "restarts   2\n",
        "instead of  scx.service, which is started again afterwards\n",
        "slice_ns      ?  20000000  1000  10000000000  ns\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn of_a_schedulers_own_program_it_says_who_runs_it_and_looks_for_no_knobs() {
    let root = Root::new("program", &LAVD);
    let place = SessionPaths::below(root.path());
    let session = Session::begin(&place).unwrap();
    let record = SessionRecord {
        since_unix_s: 951_782_400,
        ..SessionRecord::of_this_process("scx_lavd --performance")
    };
    session.write(&record, None).unwrap();
    let own = Own::of(&record, &place, 951_782_425);
    assert_eq!((own.knobs.len(), own.for_s), (0, 25));
    assert!(own.notes.is_empty(), "{:?}", own.notes);
    let text = written(root.path(), Some(own), Format::Human);
    assert!(text.contains("scx_lavd --performance"), "{text}");
}
