use super::{Line, bare, parse};
use crate::foreign::record::{CURRENT, Comm, CpuContext, InterruptSource, Left, RecordWhat, Who};

fn who(pid: u32, comm: &str, prio: i16) -> Who {
    Who {
        pid,
        comm: Comm::new(comm.as_bytes()),
        prio: Some(prio),
    }
}

/// The time, CPU, thread and context of a line.
fn head(line: &str) -> (u64, u32, u32, CpuContext) {
    match parse(line.as_bytes()) {
        Line::Record(it, _) => (it.time, it.cpu, it.pid, it.context),
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn the_begin_of_a_line_is_read_in_every_form() {
    let fields = "sched_process_exit: comm=x pid=5 prio=120";
    let cases = [
        // ftrace of 6.x and of 4.19, and with `record-tgid`.
        (
            "  bash-12   [003] d..2. 7.000001: ",
            (7_000_001_000, 3, 12, CpuContext::Task),
        ),
        (
            "  bash-12   [003] d.h2  7.000001: ",
            (7_000_001_000, 3, 12, CpuContext::Hard),
        ),
        (
            "  bash-12   (   11) [003] d.s2. 7.000001: ",
            (7_000_001_000, 3, 12, CpuContext::Soft),
        ),
        (
            "  <...>-12  (-----) [003] dNH3. 7.000001: ",
            (7_000_001_000, 3, 12, CpuContext::Hard),
        ),
        // trace-cmd report: with flags and without, with nanoseconds, with the buffer's name.
        (
            "  a:b-c-12   [1023] 7.000001: ",
            (7_000_001_000, 1023, 12, CpuContext::Unsaid),
        ),
        (
            "top: kworker/0:1-12 [000] d..2. 7.000001002: ",
            (7_000_001_002, 0, 12, CpuContext::Task),
        ),
        // A name with brackets and a number, as a CPU would have.
        (
            "  x [001] y-12  [002] .... 7.000001: ",
            (7_000_001_000, 2, 12, CpuContext::Task),
        ),
        // perf script, with the process too.
        (
            "  Web Content  12 [002]  7.000001:  sched:",
            (7_000_001_000, 2, 12, CpuContext::Unsaid),
        ),
        (
            "  Web Content  11/12 [002]  7.000001: sched:",
            (7_000_001_000, 2, 12, CpuContext::Unsaid),
        ),
        (
            "swapper     0 [000] 24689.108402:       sched:",
            (24_689_108_402_000, 0, 0, CpuContext::Unsaid),
        ),
    ];
    for (begin, want) in cases {
        assert_eq!(head(&format!("{begin}{fields}\n")), want, "{begin}");
    }
    // ftrace's `latency-format`, with each mark of a delay; times count from the trace's begin.
    for delay in [
        "12us+:", "12us!:", "12us#:", "12us*:", "12us@:", "12us$:", "12us :",
    ] {
        let line = format!("  <idle>-0       3d.h2.   {delay} {fields}\n");
        assert_eq!(head(&line), (12_000, 3, 0, CpuContext::Hard), "{delay}");
    }
    // `perf script -F +period`, and a thread that perf does not know.
    let line = format!("p     9 [002] 7.000001:     250000 sched:{fields}\n");
    assert_eq!(head(&line), (7_000_001_000, 2, 9, CpuContext::Unsaid));
    let line = format!(":-1    -1 [002] 7.000001: sched:{fields}\n");
    assert_eq!(head(&line), (7_000_001_000, 2, CURRENT, CpuContext::Unsaid));
}

#[test]
fn what_is_no_record_is_passed_over() {
    let cases = [
        ("# tracer: nop", Line::Other),
        ("", Line::Other),
        (
            "        ffffffff81 __schedule+0x1 ([kernel.kallsyms])",
            Line::Unknown,
        ),
        (
            "bash-12 [003] 7.000001: sched_stat_runtime: comm=x pid=1 runtime=5 [ns]",
            Line::Other,
        ),
        (
            "bash-x [003] 7.000001: sched_process_exit: comm=x pid=5",
            Line::Damaged,
        ),
        (
            "bash-12 [99999999999999999999] 7.000001: sched_process_exit: comm=x pid=5",
            Line::Damaged,
        ),
        (
            "bash-12 [003] 99999999999999999999.1: sched_process_exit: comm=x pid=5",
            Line::Damaged,
        ),
        ("bash-12 [003", Line::Unknown),
    ];
    for (line, want) in cases {
        assert_eq!(parse(line.as_bytes()), want, "{line}");
    }
    // Its name may have a newline, so that the rest stands in the next line.
    let cut = b"bash-12 [003] 7.000001: sched_switch: prev_comm=";
    assert_eq!(parse(cut), Line::Cut);
    assert_eq!(parse(b"cpus=4"), Line::Cpus(4));
    assert_eq!(parse(b"CPU:1 [LOST 12 EVENTS]"), Line::Lost(12));
    assert_eq!(parse(b"CPU:1 [LOST EVENTS]"), Line::Lost(0));
    assert_eq!(parse(b"CPU:2 [EVENTS DROPPED]"), Line::Lost(0));
    let counter = b"bash-12 [003] d..2. 700: sched_process_exit: comm=x pid=5";
    assert_eq!(parse(counter), Line::Ticks);
}

fn what(fields: &str) -> Option<RecordWhat> {
    bare(format!("x-1 [000] .... 1.000000: {fields}").as_bytes())
}

#[test]
fn a_switch_is_read_as_kernels_and_as_plugins_print_it() {
    let want = |left| RecordWhat::Switch {
        prev: who(7, "a b:[c] prev_pid=3", 120),
        left,
        next: who(0, "swapper/1", 120),
    };
    let states = [
        ("R", Left::Runnable),
        ("R+", Left::Runnable),
        ("S", Left::Sleeping),
        ("D", Left::Blocked),
        ("D|K", Left::Blocked),
        ("I", Left::Sleeping),
        ("X", Left::Dead),
        ("x", Left::Dead),
        ("Z", Left::Dead),
    ];
    for (state, left) in states {
        let kernel = format!(
            "sched_switch: prev_comm=a b:[c] prev_pid=3 prev_pid=7 prev_prio=120 \
             prev_state={state} ==> next_comm=swapper/1 next_pid=0 next_prio=120"
        );
        // A name has 16 bytes in a trace; this one is cut like any.
        assert_eq!(what(&kernel), Some(want(left)), "{state}");
        let plugin = format!("sched_switch: a b:7 [120] {state} ==> swapper/1:0 [120]");
        let Some(RecordWhat::Switch {
            prev, left: found, ..
        }) = what(&plugin)
        else {
            panic!("{plugin}");
        };
        assert_eq!((prev, found), (who(7, "a b", 120), left), "{state}");
    }
}

#[test]
fn wakeups_are_read_as_kernels_from_4_19_on_and_plugins_print_them() {
    let x = who(9, "x y", 98);
    let cases = [
        (
            "sched_waking: comm=x y pid=9 prio=98 target_cpu=003",
            RecordWhat::Waking(x, Some(3)),
        ),
        (
            "sched_waking: comm=x y pid=9 prio=98 success=1 target_cpu=003",
            RecordWhat::Waking(x, Some(3)),
        ),
        (
            "sched_waking: x y:9 [98] CPU:003",
            RecordWhat::Waking(x, Some(3)),
        ),
        (
            "sched_wakeup: x y:9 [98] success=1 CPU:003",
            RecordWhat::Wakeup {
                who: x,
                cpu: Some(3),
                new: false,
            },
        ),
        (
            "sched_wakeup_new: comm=x y pid=9 prio=98 target_cpu=003",
            RecordWhat::Wakeup {
                who: x,
                cpu: Some(3),
                new: true,
            },
        ),
    ];
    for (text, want) in cases {
        assert_eq!(what(text), Some(want), "{text}");
    }
    let deadline = what("sched_waking: comm=d pid=9 prio=-1 target_cpu=003");
    assert_eq!(deadline, Some(RecordWhat::Waking(who(9, "d", -1), Some(3))));
}

#[test]
fn the_other_events_are_read() {
    let child = Who {
        prio: None,
        ..who(6, "c d", 0)
    };
    let cases = [
        (
            "sched_migrate_task: comm=m n pid=9 prio=120 orig_cpu=2 dest_cpu=3",
            RecordWhat::Migrate {
                who: who(9, "m n", 120),
                from: 2,
                to: 3,
            },
        ),
        (
            "sched_process_fork: comm=p q pid=5 child_comm=c d child_pid=6",
            RecordWhat::Fork { parent: 5, child },
        ),
        (
            "sched_process_exec: filename=/bin/a b pid=5 old_pid=4",
            RecordWhat::Exec { pid: 5, old: 4 },
        ),
        (
            "sched_process_exit: comm=x y pid=5 prio=120 group_dead=true",
            RecordWhat::Exit(5),
        ),
        (
            "signal_generate: sig=14 errno=0 code=128 comm=a pid=5 b pid=7 grp=1 res=0",
            RecordWhat::Alarm(7),
        ),
        (
            "signal_generate: sig=14 errno=0 code=-2 comm=a pid=7 grp=0 res=0",
            RecordWhat::Alarm(7),
        ),
        (
            "task_rename: pid=6 oldcomm=a newcomm=c d oom_score_adj=0",
            RecordWhat::Rename(child),
        ),
        (
            "irq_handler_entry: irq=30 name=arch_timer",
            RecordWhat::Enter(InterruptSource::Device { clock: true }),
        ),
        (
            "irq_handler_entry: irq=31 name=virtio0",
            RecordWhat::Enter(InterruptSource::Device { clock: false }),
        ),
        (
            "softirq_entry: vec=1 [action=TIMER]",
            RecordWhat::Enter(InterruptSource::Soft { clock: true }),
        ),
        (
            "softirq_exit: vec=3 [action=NET_RX]",
            RecordWhat::Leave(InterruptSource::Soft { clock: false }),
        ),
        (
            "local_timer_entry: vector=236",
            RecordWhat::Enter(InterruptSource::Timer),
        ),
    ];
    for (text, want) in cases {
        assert_eq!(what(text), Some(want), "{text}");
    }
    // Another program's signal, and one that is no alarm clock's.
    for other in ["sig=14 errno=0 code=0", "sig=15 errno=0 code=128"] {
        let text = format!("signal_generate: {other} comm=a pid=7 grp=1 res=0");
        assert_eq!(what(&text), None, "{text}");
    }
}

/// `cpus=8` is how `trace-cmd report` begins. As a later line it is one of a workload.
#[test]
fn a_workload_that_names_its_cpus_is_no_trace() {
    let workload = b"[machine]\ncpus=8\n[task.t]\ndo = \"run(inf)\"\n";
    assert!(!crate::foreign::is_trace(workload));
    assert!(crate::foreign::is_trace(b"cpus=8\n"));
}

/// What `trace-cmd report -R` writes, and `trace-cmd report` where libtraceevent fails.
#[test]
fn raw_fields_are_read_with_and_without_the_mark_of_libtraceevent() {
    let want = |left| RecordWhat::Switch {
        prev: who(7, "a b", 120),
        left,
        next: who(0, "swapper/1", 120),
    };
    let states = [
        ("0", Left::Runnable),
        ("1", Left::Sleeping),
        ("2", Left::Blocked),
        ("0x10", Left::Dead),
        ("64", Left::Sleeping),
        ("4096", Left::Runnable),
    ];
    for (state, left) in states {
        let raw = format!(
            "prev_comm=a b prev_pid=7 prev_prio=120 prev_state={state} next_comm=swapper/1 \
             next_pid=0 next_prio=120"
        );
        assert_eq!(what(&format!("sched_switch: {raw}")), Some(want(left)));
        let failed = format!("sched_switch:   [FAILED TO PARSE] {raw}");
        assert_eq!(what(&failed), Some(want(left)), "{state}");
    }
    let child = Who {
        prio: None,
        ..who(6, "c", 0)
    };
    let fork = "sched_process_fork: parent_comm=p parent_pid=5 child_comm=c child_pid=6";
    assert_eq!(what(fork), Some(RecordWhat::Fork { parent: 5, child }));
}

/// What `trace-cmd report -l` writes: the CPU and the flags are one word.
#[test]
fn the_latency_format_is_read() {
    let fields = "sched_process_exit: comm=x pid=5 prio=120";
    let cases = [
        (
            "trace-cm-1394    1dNh3  7.000001: ",
            (1, 1394, CpuContext::Hard),
        ),
        (
            "  <idle>-0      12d..2  7.000001: ",
            (12, 0, CpuContext::Task),
        ),
        (
            "a 1d..2 b-9     0d.s2.. 7.000001: ",
            (0, 9, CpuContext::Soft),
        ),
    ];
    for (begin, (cpu, pid, context)) in cases {
        let want = (7_000_001_000, cpu, pid, context);
        assert_eq!(head(&format!("{begin}{fields}\n")), want, "{begin}");
    }
    for line in [
        "x-1 1d..2: 7.000001: ",
        "x-1 1 d..2 7.000001: ",
        "x-1 1d..2 7: ",
    ] {
        let read = parse(format!("{line}{fields}").as_bytes());
        assert!(!matches!(read, Line::Record(..)), "{line}");
    }
}

#[test]
fn the_name_of_the_thread_that_ran_is_known_unless_the_kernel_forgot_it() {
    let cases = [
        ("  a b-12   [003] d..2. 7.000001: ", "a b"),
        ("  <...>-12 (-----) [003] d..2. 7.000001: ", ""),
        (
            "  Web Content  11/12 [002]  7.000001: sched:",
            "Web Content",
        ),
        ("  Web Content  12 [002]  7.000001: sched:", "Web Content"),
        ("hog-12  3d..2 7.000001: ", "hog"),
    ];
    for (begin, want) in cases {
        let line = format!("{begin}sched_process_exit: comm=x pid=5 prio=120");
        let Line::Record(_, name) = parse(line.as_bytes()) else {
            panic!("{line}");
        };
        assert_eq!(name.to_string(), want, "{line}");
    }
}

/// A name may have any byte but NUL.
#[test]
fn names_of_any_bytes_are_read_newlines_included() {
    let name = b"\x1b[2J\n\x01\xff\x7f\r\x0b";
    let mut text = b"# tracer: nop\n".to_vec();
    for (time, state) in [(1, "S"), (2, "R+")] {
        let head = format!("  <idle>-0 [000] d..2. {time}.000001: sched_switch: prev_comm=");
        text.extend(head.as_bytes());
        text.extend(name);
        text.extend(format!(" prev_pid=7 prev_prio=120 prev_state={state}").as_bytes());
        text.extend(b" ==> next_comm=");
        text.extend(name);
        text.extend(b" next_pid=8 next_prio=120\n");
    }
    text.extend(b"  <idle>-0 [000] d..2. 3.000001: sched_switch: prev_comm=cut off\n");
    assert!(crate::foreign::is_trace(&text));
    let input = std::io::Cursor::new(&text);
    let read = crate::foreign::read(
        input,
        "names",
        crate::foreign::Window::default(),
        &mut |_| std::ops::ControlFlow::Continue(()),
    );
    let imported = read.unwrap();
    assert_eq!(imported.findings.records, 2);
    assert_eq!(imported.tasks[0].comm.bytes(), name);
    let shown = imported.header.groups[0].name.clone();
    assert_eq!(shown, r"\u001b[2J\u000a\u0001\xff\u007f\u000d\u000b-7");
}

#[test]
fn an_arrow_in_a_name_is_no_border() {
    let want = RecordWhat::Switch {
        prev: who(5, "a ==> b", 120),
        left: Left::Sleeping,
        next: who(6, "c ==> d", 120),
    };
    let by_name = "sched_switch: prev_comm=a ==> b prev_pid=5 prev_prio=120 prev_state=S ==> \
                   next_comm=c ==> d next_pid=6 next_prio=120";
    let by_colon = "sched_switch: a ==> b:5 [120] S ==> c ==> d:6 [120]";
    assert_eq!(what(by_name), Some(want));
    assert_eq!(what(by_colon), Some(want));
}

/// Each bracket of a line was looked at up to the line's end.
#[test]
fn a_line_of_brackets_is_looked_at_in_its_begin_only() {
    let line = [
        b"[1] ".repeat(1 << 14),
        b"[2] 1.000001: sched_switch: ".to_vec(),
    ]
    .concat();
    assert_eq!(parse(&line), Line::Unknown);
}

#[test]
fn a_page_with_a_long_head_is_a_trace_by_its_first_words() {
    let page = format!("<!DOCTYPE html>\n<html><!--{}", "x".repeat(10_000));
    assert!(crate::foreign::is_trace(&page.as_bytes()[..4096]));
    assert!(crate::foreign::is_trace(b"version = 6\ncpus=2\n"));
    assert!(!crate::foreign::is_trace(b"version = 6\n[task.t]\n"));
}
