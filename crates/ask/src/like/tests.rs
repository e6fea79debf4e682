use model::Nanos;
use model::{SimTime, TaskId};

use explain::why::Victim;

use super::*;

/// A dump of two CPUs. `db` waits in a queue of the policy and may only use CPU 1.
const DUMP: &str = "\
kworker/u8:0[12] triggered exit kind 1026:
  runnable task stall (db[77] failed to run for 30.004s)

CPU 1   : nr_run=2 flags=0x1 cpu_rel=0 ops_qseq=57 pnt_seq=120
          curr=busy[70] class=ext_sched_class

 *R busy[70] -3ms
      scx_state/flags=3/0x1 dsq_flags=0x0 ops_state/qseq=0/0
      sticky/holding_cpu=-1/-1 dsq_id=(n/a)
      dsq_vtime=0 slice=5000000 weight=100
      cpus=f no_mig=0

  R db[77] -30004ms
      scx_state/flags=3/0x9 dsq_flags=0x0 ops_state/qseq=0/0
      sticky/holding_cpu=-1/-1 dsq_id=0x7
      dsq_vtime=0 slice=20000000 weight=100
      cpus=f no_mig=1
";

fn found(fault: Fault, standing: Standing) -> Finding {
    let mut finding = Finding::blank(fault, SimTime::ZERO);
    finding.victim = Some(Victim {
        task: TaskId::NONE,
        name: "db.1".to_owned(),
        pid: 9,
        since: Some(SimTime::ZERO),
        waited: Nanos::from_secs(5),
        standing,
        put: None,
        trigger: None,
    });
    finding
}

fn load(text: &str) -> Workload {
    Workload::parse(text, "w.toml").unwrap()
}

/// The load is what was read, however its file is written.
#[test]
fn a_section_without_migration_is_found_wherever_it_stands() {
    let like = Like::read(DUMP).unwrap();
    let shows = |task: &str| {
        let load = load(&format!("[workload]\nname = \"w\"\n{task}"));
        like.is_shown_by(&found(Fault::UnreadQueue, Standing::Queue(3)), &load)
    };
    for pinned in [
        "[ task.db ] # the server\ndo = \"loop(3)[ choose(1: run(1ms), 2: migrate_disable) ]\"\n",
        "[task.\"db\"]\nmigration_disabled=true\ndo = \"run(1ms)\"\n",
    ] {
        assert!(shows(pinned), "{pinned}");
    }
    let free = "[task.db]\n# no migrate_disable\ndo = \"run(1ms)\"\n";
    assert!(!shows(free));
}

#[test]
fn the_search_begins_at_the_dumps_machine_and_task() {
    let like = Like::read(DUMP).unwrap();
    assert_eq!(like.cpus(), Some(4));
    let wanted = like.wanted();
    assert_eq!((wanted.name.as_str(), wanted.runnable), ("db", 2));
    assert_eq!((wanted.cpus, wanted.is_pinned), (vec![1], true));
    assert_eq!(
        like.text(),
        "`stuck-in-queue` of a task in a queue of the policy that may not migrate, first on 4 CPUs"
    );
}

#[test]
fn a_run_is_like_it_by_class_queue_and_section() {
    let like = Like::read(DUMP).unwrap();
    let pinned = "[workload]\nname = \"w\"\n[task.db]\ndo = \"migrate_disable, run(1ms), \
                  migrate_enable\"\n[task.x]\ndo = \"run(1ms)\"\n";
    let free = pinned
        .replace("[task.x]", "[task.db2]")
        .replace("[task.db]", "[task.x]");
    let (pinned, free) = (load(pinned), load(&free));
    let queue = || Standing::Queue(3);
    for fault in [
        Fault::UnreachableQueue,
        Fault::UnreadQueue,
        Fault::PassedOver,
    ] {
        assert!(
            like.is_shown_by(&found(fault, queue()), &pinned),
            "{fault:?}"
        );
    }
    assert!(!like.is_shown_by(&found(Fault::Lost, queue()), &pinned));
    assert!(!like.is_shown_by(&found(Fault::UnreadQueue, Standing::Nowhere), &pinned));
    assert!(!like.is_shown_by(&found(Fault::UnreadQueue, queue()), &free));
    let may_migrate = Like::read(&DUMP.replace("no_mig=1", "no_mig=0")).unwrap();
    assert!(may_migrate.is_shown_by(&found(Fault::UnreadQueue, queue()), &free));
}

/// What ended the policy at once is told by its message alone, but for names and numbers.
#[test]
fn a_message_is_the_same_whatever_the_task_is_called() {
    let ended = |message: &str| {
        let text = DUMP.replace("1026", "1025");
        let stall = "runnable task stall (db[77] failed to run for 30.004s)";
        text.replace(stall, &format!("scx_bpf_error ({message})"))
    };
    let like = Like::read(&ended("no room for db[77] on CPU 3")).unwrap();
    let with = |message: &str| {
        let mut finding = Finding::blank(Fault::OwnError, SimTime::ZERO);
        finding.message = Some(format!("scx_bpf_error ({message})"));
        finding
    };
    let load = load("[workload]\nname = \"w\"\n[task.db]\ndo = \"migrate_disable\"\n");
    let shows = |message: &str| {
        let mut finding = with(message);
        finding.victim = found(Fault::OwnError, Standing::Unknown).victim;
        like.is_shown_by(&finding, &load)
    };
    assert!(shows("no room for t0[5] on CPU 1"));
    assert!(!shows("no task t0[5] on CPU 1"));
}

#[test]
fn a_dump_without_a_fault_to_search_for_is_refused_and_says_why() {
    use model::Advice as _;
    let above = DUMP
        .replace("class=ext_sched_class", "class=rt_sched_class")
        .replace(" *R busy", "  R busy");
    let error = Like::read(&above).unwrap_err();
    assert!(error.to_string().contains("`outranked`"), "{error}");
    assert!(error.advice().is_some());
    assert!(matches!(Like::read("hello"), Err(LikeError::Dump(_))));
}
