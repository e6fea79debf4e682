//! Public forms: what kernels, logs and programs print around a dump, or in its place.

use super::*;

/// The head and one CPU of a dump whose policy misused an interface.
fn misused(kind: u32, reason: &str) -> String {
    format!(
        "worker[210] triggered exit kind {kind}:\n  {reason}\n\n\
         Backtrace:\n  scx_exit+0x58/0x80\n  \
         bpf_prog_33340da880198fec_mine_select_cpu+0x359/0xcd5\n\nCPU states\n----------\n\n\
         CPU 2   : nr_run=1 flags=0x1 cpu_rel=0 ops_qseq=44 ksync=90\n          \
         curr=worker[210] class=ext_sched_class\n  idle_to_kick   : 040\n\n \
         *R worker[210] -1ms\n      scx_state/flags=3/0x1 dsq_flags=0x0 ops_state/qseq=0/0\n      \
         sticky/holding_cpu=-1/-1 dsq_id=(n/a)\n      \
         dsq_vtime=0 slice=18446744073709551615 weight=100\n      cpus=ff no_mig=0\n\n  \
         R other[320] -3ms\n      scx_state/flags=3/0x9 dsq_flags=0x0 ops_state/qseq=0/0\n      \
         sticky/holding_cpu=-1/-1 dsq_id=0x1\n      dsq_vtime=0 slice=20000000 weight=100\n      \
         cpus=4 no_mig=0\n"
    )
}

/// Kind, message, class, and the task that the message names.
type ExitCase = (u32, &'static str, Fault, Option<(&'static str, u32)>);

const EXITS: [ExitCase; 12] = [
    (
        1024,
        "runtime error (SCX_DSQ_LOCAL[_ON] target CPU 5 not allowed for job[311])",
        Fault::CpuNotAllowed,
        Some(("job", 311)),
    ),
    (
        1024,
        "runtime error (SCX_DSQ_LOCAL[_ON] verdict target cpu 5 not allowed for a b[311])",
        Fault::CpuNotAllowed,
        Some(("a b", 311)),
    ),
    (
        1024,
        "runtime error (SCX_DSQ_LOCAL[_ON] cannot move migration disabled x[9] from CPU 5 to \
             0)",
        Fault::CpuNotAllowed,
        Some(("x", 9)),
    ),
    (
        1024,
        "runtime error (invalid CPU -1 from ops.select_cpu())",
        Fault::NoSuchCpu,
        None,
    ),
    (
        1024,
        "runtime error (non-existent DSQ 0x5 for other[320])",
        Fault::NoSuchQueue,
        Some(("other", 320)),
    ),
    (
        1024,
        "runtime error (invalid DSQ ID 0xfffffffffffffffe)",
        Fault::NoSuchQueue,
        None,
    ),
    (
        1024,
        "runtime error (other[320] already direct-dispatched)",
        Fault::InsertedTwice,
        None,
    ),
    (
        1024,
        "runtime error (soft lockup - CPU 3 stuck for 26s)",
        Fault::EndlessLoop,
        None,
    ),
    (
        1024,
        "runtime error (dispatch buffer overflow)",
        Fault::Misuse,
        None,
    ),
    (
        1025,
        "scx_bpf_error (lib/cpu.h:68: invalid CPU 9 for other[320])",
        Fault::OwnError,
        None,
    ),
    (
        66,
        "unregistered from the main kernel (cpu 3 going offline, exiting scheduler)",
        Fault::Restart,
        None,
    ),
    (65, "unregistered from BPF (enough)", Fault::OwnError, None),
];

/// The kernel's exit decides, and a task that happens to wait is not accused of it.
#[test]
fn the_exit_says_the_class_before_any_task_does() {
    for (kind, reason, fault, victim) in EXITS {
        let dumped = one(&misused(kind, reason));
        assert_eq!(dumped.finding.fault, fault, "{reason}");
        assert_eq!(victim_of(&dumped), victim, "{reason}");
        assert_eq!(dumped.finding.message.as_deref(), Some(reason));
        assert!(dumped.finding.holders.is_empty(), "{reason}");
        assert!(
            dumped
                .seen
                .iter()
                .any(|it| it.contains("`mine_select_cpu`")),
            "{dumped:?}"
        );
        // The same from one line, as a program or a mail has it.
        let line = format!("<summary>Error: EXIT: {reason}</summary>");
        let told = one(&line);
        assert_eq!((told.finding.fault, victim_of(&told)), (fault, victim));
        assert!(told.missing.iter().any(|it| it.contains("DEBUG DUMP")));
    }
}

#[test]
fn a_task_that_is_sent_to_a_wrong_cpu_is_named_with_the_cpus_that_it_may_use() {
    let reason = "runtime error (SCX_DSQ_LOCAL[_ON] target CPU 5 not allowed for other[320])";
    let dumped = one(&misused(1024, reason));
    let expected = "the task was sent to CPU 5; it may use CPU 2";
    assert_eq!(dumped.seen[0], expected);
    assert_eq!(dumped.finding.victim.unwrap().waited, Nanos::ZERO);
}

#[test]
fn the_log_of_a_kernel_tells_who_stalled() {
    let log = "\
        Sep 23 13:02:57 host kernel: sched_ext: BPF scheduler \"mine_1.0\" disabled (runnable task \
        stall)\n\
        Sep 23 13:02:57 host kernel: sched_ext: mine_1.0: kworker/10:1[105] failed to run for \
        7.040s\n\
        Sep 23 13:02:57 host kernel:    scx_watchdog_workfn+0x18d/0x220\n";
    let dumped = one(log);
    assert_eq!(dumped.finding.fault, Fault::Stall);
    assert_eq!(victim_of(&dumped), Some(("kworker/10:1", 105)));
    let victim = dumped.finding.victim.unwrap();
    assert_eq!(victim.waited, Nanos::from_millis(7040));
    // Of a terminal whose lines run into each other.
    let run_in = "[2427.529] sched_ext: BPF scheduler \"mine\" disabled (runtime error) [2427.543] \
                  sched_ext: mine: SCX_DSQ_LOCAL[_ON] verdict target cpu 21 not allowed for \
                  a[313]\n";
    let dumped = one(run_in);
    assert_eq!(dumped.finding.fault, Fault::CpuNotAllowed);
    assert_eq!(victim_of(&dumped), Some(("a", 313)));
    // The dump of the same ejection says more, and is no second one.
    let log = log.replace(
        "kworker/10:1[105] failed to run for 7.040s",
        "hog[77] failed to run for 30.004s",
    );
    let both = format!(
        "{log}{DUMP}Error: EXIT: runnable task stall (hog[77] failed to run for 30.004s)\n"
    );
    assert_eq!(one(&both), one(DUMP));
    let reason = "sched_ext: BPF scheduler \"mine\" disabled (unregistered from user space)\n";
    let ended = DumpError::Ended("unregistered from user space".to_owned());
    assert_eq!(explain_dumps(reason), Err(ended));
}

/// Journals of many languages, mails, terminals, and `journalctl -r`.
#[test]
fn a_dump_says_the_same_with_whatever_stands_around_its_lines() {
    let plain = one(DUMP);
    let with = |front: &str| {
        let lines = DUMP.lines().map(|line| format!("{front}{line}"));
        lines.collect::<Vec<_>>()
    };
    for front in [
        "> ",
        ">> ",
        "> > Ogos 20 15:55:20 host scx_mine[61]: ",
        "cze 22 09:26:35 host scx_loader[370]: ",
        "2026-11-19T02:27:31.335335Z host mine[1]: ",
        "[Thu Nov 19 02:27:31 2026] ",
        "  ",
        "    ",
        "\t",
        "\u{1b}[0m",
    ] {
        let lines = with(front);
        for end in ["\n", "\r\n", "          \n"] {
            assert_eq!(one(&lines.join(end)), plain, "{front:?} {end:?}");
        }
        let reversed: Vec<_> = lines.into_iter().rev().collect();
        assert_eq!(one(&reversed.join("\n")), plain, "{front:?} reversed");
    }
    let tabs = DUMP.replace("      ", "\t");
    assert_eq!(one(&tabs), plain);
    // Web pages put spaces that do not break.
    assert_eq!(one(&DUMP.replace("  ", "\u{a0}\u{a0}")), plain);
}

#[test]
fn several_dumps_in_one_log_are_told_apart() {
    let second = DUMP
        .replace("hog[77]", "db[300]")
        .replace("30.004s", "33.100s")
        .replace("-30004ms", "-33100ms")
        .replace("class=ext_sched_class", "class=rt_sched_class")
        .replace("weight=100\n", "weight=100\n      cpus=1\n");
    let both = explain_dumps(&format!("{DUMP}\nDEBUG DUMP\n====\n\n{second}")).unwrap();
    assert_eq!(both.each, [one(DUMP), one(&second)]);
    assert_eq!(both.each[1].finding.fault, Fault::Outranked);
    // The head of the second was cut off: a kernel shows each CPU once.
    let (_, headless) = second.split_once("CPU states").unwrap();
    let both = explain_dumps(&format!("{DUMP}{headless}")).unwrap();
    assert_eq!(both.each.len(), 2);
    assert_eq!(both.each[0], one(DUMP));
    assert_eq!(victim_of(&both.each[1]), Some(("db", 300)));
}

#[test]
fn the_kernels_victim_that_is_not_in_the_text_is_said_first() {
    let dumped = one(&DUMP.replace("(hog[77] failed", "(db[901] failed"));
    assert_eq!(victim_of(&dumped), Some(("hog", 77)));
    assert_eq!(
        dumped.before,
        [
            "the kernel names db[901], which no line of this text shows. It explains hog[77] \
          instead, another task"
        ]
    );
    assert!(dumped.is_likely);
}

#[test]
fn the_watchdogs_own_stall_is_explained_as_that() {
    let text = DUMP
        .replace("hog[77] failed to run", "watchdog failed to check in")
        .replace("hog two[78] -100ms", "kworker/u8:4[88] -29871ms");
    let dumped = one(&text);
    assert_eq!(victim_of(&dumped), Some(("kworker/u8:4", 88)));
    assert!(dumped.before[0].contains("unbound kworker"), "{dumped:?}");
    assert!(dumped.before[0].ends_with("kworker/u8:4[88] has waited longest of these"));
    let line = "Error: EXIT: runnable task stall (watchdog failed to check in for 30.001s)\n";
    let told = one(line);
    assert_eq!(told.finding.fault, Fault::Stall);
    assert!(told.before[0].contains("unbound kworker"), "{told:?}");
}

/// CPU 6 idles, and the task that may only use it was put where another CPU looks.
const PINNED: &str = "\
mine: root
kworker/u32:2[500] triggered exit kind 1026 on CPU 9:
  runnable task stall (shepherd[675] failed to run for 32.362s)

CPU states
----------

CPU 6   : nr_run=1 flags=0x1 cpu_rel=0 ksync=256
          curr=swapper/6[0] class=idle_sched_class

  R shepherd[675] *root -32362ms
      scx_state/flags=4/0x3 dsq_flags=0x1 ops_state/qseq=0/0
      sticky/holding_cpu=-1/-1 dsq_id=0x0
      dsq_vtime=397 slice=5000000 weight=305
      cpus=040 no_mig=1
      \\_ slice: 5000000   vtime: 397/444   lat_cri: 16/18
      \\_ cpdom_id: 0   scpu: 0   cgroup: shepherd[34] (not throttled)
    do_syscall_64+0x19a/0xb20
";

#[test]
fn a_task_that_was_put_where_its_cpu_does_not_look_is_likely_unreachable() {
    let dumped = one(PINNED);
    assert_eq!(dumped.finding.fault, Fault::UnreachableQueue);
    assert!(dumped.is_likely);
    assert_eq!(
        dumped.seen[0],
        "it was put there for CPU 0, and it may only use CPU 6"
    );
    assert!(
        dumped.missing.iter().any(|it| it.contains("only likely")),
        "{dumped:?}"
    );
    // On its own CPU, or without the policy's word, nothing says so.
    for (from, to) in [("scpu: 0", "scpu: 6"), ("scpu: 0", "")] {
        let other = one(&PINNED.replace(from, to));
        assert_eq!(other.finding.fault, Fault::StuckInQueue);
        assert!(!other.is_likely);
    }
    // A task that may not migrate may use the CPU where it stands, whatever its mask is.
    let wide = one(&PINNED.replace("cpus=040", "cpus=fff"));
    assert_eq!(wide.finding.fault, Fault::UnreachableQueue);
    let free = one(&PINNED.replace("cpus=040 no_mig=1", "cpus=fff no_mig=0"));
    assert_eq!(free.finding.fault, Fault::StuckInQueue);
    // In the local queue of a CPU that it may not use any more.
    let local = PINNED.replace("dsq_id=0x0", "dsq_id=0x8000000000000002");
    let local = local.replace("cpus=040 no_mig=1", "cpus=002 no_mig=0");
    assert_eq!(one(&local).finding.fault, Fault::UnreachableQueue);
}

#[test]
fn a_policys_own_words_do_not_replace_the_kernels() {
    let words = "      \\_ slice: 1\n      dsq_id=0x9 slice=1 cpus=2\n";
    let text = PINNED.replace("    do_syscall", &format!("{words}    do_syscall"));
    assert_eq!(one(&text), one(PINNED));
}

#[test]
fn a_cpu_whose_local_queue_is_refilled_is_said_not_to_dispatch() {
    let refilled = PINNED.replace("curr=swapper/6[0] class=idle", "curr=git[143] class=ext")
        + "\n  R less[144] *root -1ms\n      \
           scx_state/flags=4/0x3 dsq_flags=0x0 ops_state/qseq=0/0\n      \
           sticky/holding_cpu=-1/-1 dsq_id=0x8000000000000002\n      \
           dsq_vtime=28 slice=20000000 weight=100\n      cpus=ff no_mig=0\n";
    let refilled = refilled.replace("scpu: 0", "");
    let dumped = one(&refilled);
    assert_eq!(dumped.finding.fault, Fault::StuckInQueue);
    assert!(
        dumped.seen[0].starts_with("CPU 6 has less[144] in its local queue"),
        "{dumped:?}"
    );
    assert!(dumped.advice.unwrap().contains("refill"));
    let waits = refilled.replace("cpus=040 no_mig=1", "cpus=0c0 no_mig=0");
    assert_eq!(one(&waits).advice, None, "CPU 7 may look at the queue");
}

/// Kernels before 6.11 had the name and the number apart.
#[test]
fn a_dump_of_an_early_kernel_is_read() {
    let text = "\
kworker/u16:4[173] triggered exit kind 1026:
  runnable task stall (yes[1632] failed to run for 5.314s)

Runqueue states
---------------

CPU 0   : nr_run=2 flags=0x0 cpu_rel=0 ops_qseq=435 pnt_seq=440
          curr=stress[1643] class=ext_sched_class

 *R stress          : pid=1643 state/flags=3/0x5 dsq_flags=0x0
                      ops_state/qseq=0/0 run_at=-70ms
                      sticky/holding_cpu=-1/-1 dsq_id=(n/a)

  R yes             : pid=1632 state/flags=3/0x1 dsq_flags=0x0
                      ops_state/qseq=2/430 run_at=-5314ms
                      sticky/holding_cpu=-1/-1 dsq_id=(n/a)
";
    let dumped = one(text);
    assert_eq!(victim_of(&dumped), Some(("yes", 1632)));
    assert_eq!(dumped.finding.fault, Fault::Lost);
    let victim = dumped.finding.victim.unwrap();
    assert_eq!(victim.waited, Nanos::from_millis(5314));
}

#[test]
fn a_cpu_above_63_is_used_if_the_mask_has_it() {
    let text = PINNED
        .replace("CPU 6   :", "CPU 70  :")
        .replace(
            "cpus=040 no_mig=1",
            "cpus=00000040,00000000,00000000 no_mig=0",
        )
        .replace("scpu: 0", "scpu: 6");
    let dumped = one(&text);
    assert_eq!(dumped.finding.fault, Fault::UnreachableQueue);
    assert_eq!(dumped.finding.idle[0].cpu, CpuId(70));
}
