//! Dumps in the forms in which people mail them. The texts are our own.

use model::{CpuId, Nanos};

use super::*;

mod forms;

/// A dump of one CPU, on which `busy` runs and `hog` waits with the policy.
const DUMP: &str = "\
kworker/u8:0[12] triggered exit kind 1026:
  runnable task stall (hog[77] failed to run for 30.004s)

CPU states
----------

CPU 0   : nr_run=3 flags=0x1 cpu_rel=0 ops_qseq=57 pnt_seq=120
          curr=busy[70] class=ext_sched_class

 *R busy[70] -3ms
      scx_state/flags=3/0x1 dsq_flags=0x0 ops_state/qseq=0/0
      sticky/holding_cpu=-1/-1 dsq_id=(n/a)
      dsq_vtime=0 slice=18446744073709551615 weight=100
      cpus=3 no_mig=0

  R hog[77] -30004ms
      scx_state/flags=3/0x9 dsq_flags=0x0 ops_state/qseq=2/56
      sticky/holding_cpu=-1/-1 dsq_id=(n/a)
      dsq_vtime=0 slice=20000000 weight=100

  R hog two[78] -100ms
      scx_state/flags=3/0x9 dsq_flags=0x0 ops_state/qseq=0/0
      sticky/holding_cpu=-1/-1 dsq_id=0x7
      dsq_vtime=0 slice=20000000 weight=100
";

/// The only dump of the text.
fn one(text: &str) -> Dumped {
    let Dumps { mut each, left_out } = explain_dumps(text).expect("a dump");
    assert_eq!((each.len(), left_out), (1, 0), "{each:?}");
    each.remove(0)
}

fn victim_of(dumped: &Dumped) -> Option<(&str, u32)> {
    let victim = dumped.finding.victim.as_ref()?;
    Some((victim.name.as_str(), victim.pid))
}

#[test]
fn a_dump_says_where_the_stalled_task_is_and_what_it_does_not_tell() {
    let Dumped {
        finding, missing, ..
    } = one(DUMP);
    assert_eq!(finding.fault, Fault::Lost);
    let victim = finding.victim.unwrap();
    assert_eq!((victim.name.as_str(), victim.pid), ("hog", 77));
    assert_eq!(victim.waited, Nanos::from_millis(30_004));
    assert_eq!(victim.standing, Standing::Nowhere);
    assert_eq!(finding.holders[0].slice, Some(u64::MAX));
    assert_eq!((finding.waiting, missing.len()), (2, 3));
}

#[test]
fn a_dump_that_was_cut_is_read_up_to_there() {
    let lines: Vec<_> = DUMP.lines().collect();
    let head = lines[..13].join("\n") + "\n\n~~~~ TRUNCATED ~~~~\n";
    let dumped = one(&head);
    assert_eq!(dumped.finding.fault, Fault::Unknown);
    assert_eq!(dumped.finding.victim, None);
    assert!(dumped.missing[3].contains("cut"), "{dumped:?}");
    assert!(dumped.advice.unwrap().contains("all of the dump"));
    assert!(dumped.before[0].contains("hog[77]"), "{dumped:?}");
}

/// A real-time task has the only CPU that the task may use: no policy could run it.
#[test]
fn a_cpu_that_a_higher_class_has_is_held_and_the_class_is_named() {
    let above = DUMP
        .replace(
            "curr=busy[70] class=ext_sched_class",
            "curr=rt[70] class=rt_sched_class",
        )
        .replace(" *R busy[70] -3ms\n", "")
        .replace(
            "slice=20000000 weight=100\n\n",
            "slice=20000000 weight=100\n      cpus=1\n\n",
        );
    let Dumped {
        finding, missing, ..
    } = one(&above);
    assert_eq!(finding.fault, Fault::Outranked);
    assert_eq!(finding.holders[0].name, "rt[70], of rt_sched_class");
    assert_eq!(missing.len(), 3, "{missing:?}");
    // Where it may use a second one, of which the dump says nothing, that one may idle.
    let dumped = one(&above.replace("cpus=1", "cpus=3"));
    assert_eq!(dumped.finding.fault, Fault::Lost);
    assert!(
        dumped.missing[3].starts_with("what CPU 1 does: "),
        "{dumped:?}"
    );
}

#[test]
fn a_class_that_is_printed_as_an_address_is_unknown() {
    let of = |class: &str| {
        let text = DUMP.replace("class=ext_sched_class", class);
        one(&text
            .replace("ops_state/qseq=2/56", "ops_state/qseq=0/0")
            .replace(
                "dsq_id=(n/a)\n      dsq_vtime=0 slice=20000000 weight=100",
                "dsq_id=0x7\n      dsq_vtime=0 slice=20000000 weight=100\n      cpus=1",
            ))
    };
    assert_eq!(of("class=rt_sched_class").finding.fault, Fault::Outranked);
    let unknown = of("class=0xffffffff98000f20");
    // The current task has a slice that never ends, so it is the policy's.
    assert_eq!(unknown.finding.fault, Fault::CpuHeld, "{unknown:?}");
    assert!(
        unknown.missing.iter().any(|it| it.contains("an address")),
        "{unknown:?}"
    );
}

#[test]
fn the_stop_class_is_not_blamed_for_a_wait() {
    let text = DUMP
        .replace(
            "curr=busy[70] class=ext_",
            "curr=migration/0[18] class=stop_",
        )
        .replace(" *R busy[70] -3ms\n", "")
        .replace(
            "qseq=2/56\n      sticky/holding_cpu=-1/-1 dsq_id=(n/a)",
            "qseq=0/0\n      sticky/holding_cpu=-1/-1 dsq_id=0x7",
        )
        .replace("weight=100\n", "weight=100\n      cpus=1\n");
    let dumped = one(&text);
    assert_eq!(dumped.finding.fault, Fault::StuckInQueue, "{dumped:?}");
    assert!(
        dumped.missing.iter().any(|it| it.contains("stop class")),
        "{dumped:?}"
    );
}

#[test]
fn what_is_no_dump_is_refused_and_a_hostile_one_does_no_harm() {
    for text in ["", "hello", "R x[1] -5", "CPU x: nr_run=", "\u{0}\u{fffd}="] {
        assert_eq!(explain_dumps(text), Err(DumpError::NotADump), "{text:?}");
    }
    let hostile = "x triggered exit kind 99999999999:\n  (](] failed to run\n\
        CPU 65535 : nr_run=9\n R ][4294967295] -9223372036854775808ms\n\
        dsq_id=0xfffffffffffffffff\n\
        dsq_id=0x8000000000000002 slice=-1 ops_state/qseq=/\n";
    // A kind of a later kernel is an error whose message says what it is.
    let dumped = one(hostile);
    assert_eq!(dumped.finding.fault, Fault::Misuse);
    let stalled = one(&hostile.replace("99999999999", "1026"));
    let victim = stalled.finding.victim.unwrap();
    assert_eq!(victim.pid, u32::MAX);
}

#[test]
fn only_the_last_dumps_of_a_long_log_are_explained_and_the_others_counted() {
    let log: String = (0..40)
        .map(|number| DUMP.replace("30.004", &format!("{number}.004")))
        .collect();
    let dumps = explain_dumps(&log).unwrap();
    assert_eq!((dumps.each.len(), dumps.left_out), (16, 24));
    let last = dumps.each.last().unwrap();
    assert!(
        last.finding.message.as_ref().unwrap().contains(" 39.004s"),
        "{last:?}"
    );
}

#[test]
fn who_was_not_ejected_is_not_blamed_for_a_short_wait() {
    let asked = DUMP.replace(
        "kworker/u8:0[12] triggered exit kind 1026:\n  \
         runnable task stall (hog[77] failed to run for 30.004s)",
        "Debug dump triggered by SysRq-D",
    );
    assert_eq!(one(&asked).finding.fault, Fault::Lost);
    let short = asked.replace("-30004ms", "-304ms");
    assert_eq!(one(&short).finding.fault, Fault::Waited);
    assert_eq!(one(&short).finding.message, None);
}

#[test]
fn a_task_that_has_not_waited_is_nobodys_victim() {
    let text = DUMP
        .replace("hog[77] -30004ms", "idle one[79] +0ms")
        .replace("-100ms", "+0ms");
    let dumped = one(&text);
    assert_eq!(victim_of(&dumped), None, "{dumped:?}");
    assert_eq!(dumped.finding.fault, Fault::Unknown);
    assert!(dumped.before[0].contains("hog[77], which no line"));
}
