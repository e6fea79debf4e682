//! `run`, `set`, `status` and `stop` on real kernels, in virtual machines: `make test-vm`.

use std::path::Path;
use std::process::Command;

use runslice_tests::guest::KERNELS;
use runslice_tests::{guest, object};

/// Shell: waits until the kernel says `$1`, as long as the guest lives.
const BECOMES: &str = "\
    becomes() {
        until grep -qx $1 /sys/kernel/sched_ext/state; do sleep 0.1; done
    }
    # A session is there a moment after the policy.
    runs() {
        becomes enabled
        until runslice status | grep -q ^since; do sleep 0.1; done
    }
    left() {
        ls /sys/fs/bpf /sys/kernel/tracing/instances /run/runslice |
            grep -v -e ^lock -e :$ -e '^$' || true
    }
    ";

/// Runs a script that must end well, and returns all that was printed.
fn good(kernel: &str, script: &str, files: &[&Path]) -> String {
    guest!().kernel(kernel).good(script, files).text()
}

fn has(kernel: &str, text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{kernel}: no `{word}` in: {text}");
    }
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn a_knob_is_changed_while_the_policy_runs_and_the_policy_sees_it() {
    let echo = object!("echo");
    for kernel in KERNELS {
        let text = good(
            kernel,
            &format!(
                "{BECOMES}
                runslice run $1 & runs
                echo \"before: $(runslice status | grep ^sevens)\"
                runslice set $1 word=7
                runslice status | grep ^word
                while runslice status | grep -q '^sevens *0$'; do sleep 0.1; done
                echo 'the policy saw it'
                runslice set $1 word=10; echo \"status $?\"
                runslice set $1 fixed=4; echo \"status $?\"
                runslice set fifo slice_ns=5000; echo \"status $?\"
                runslice status --format json | grep '\"value\"'
                runslice stop; wait; left"
            ),
            &[&echo],
        );
        has(
            kernel,
            &text,
            &[
                "before: sevens              0\n",
                "word 1 -> 7 count\n",
                "word      7        1     0   9  count\n",
                "the policy saw it\n",
                "10 is out of range for `word`: 0 to 9 count",
                "`fixed` is a constant of the loaded programs",
                "echo is attached, not fifo",
                "\"value\": 7,",
                "echo is detached: the kernel's own scheduler has all tasks",
            ],
        );
        assert_eq!(text.matches("status 2\n").count(), 3, "{kernel}: {text}");
    }
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn status_names_a_policy_of_somebody_else_and_stop_refuses_it() {
    // The same program under another name, whose session is hidden, is a stranger.
    let text = good(
        "6.18",
        &format!(
            "{BECOMES}
            cp $(command -v runslice) /tmp/scx_other
            /tmp/scx_other run fifo & runs
            rm -r /run/runslice
            runslice status
            runslice status --format json | grep -e '\"name\": \"scx' -e '\"runslice\": null'
            for verb in stop 'run mlfq' 'run --replace mlfq' 'set fifo slice_ns=5000'; do
                runslice $verb; echo \"$verb: status $?\"
            done
            kill $!; becomes disabled
            runslice stop; runslice status"
        ),
        &[],
    );
    has(
        "6.18",
        &text,
        &[
            "policy     fifo\nrun by     scx_other, process ",
            "since      not known: not attached by runslice\n",
            "SCX_EV_",
            "\"name\": \"scx_other\"",
            "\"runslice\": null",
            "stop: status 1\n",
            "run mlfq: status 4\n",
            "run --replace mlfq: status 4\n",
            "set fifo slice_ns=5000: status 1\n",
            "which is not runslice's\n  end the process that runs it: kill ",
            "no policy is attached\n",
            "policy     none: the kernel's own scheduler has all tasks\n",
        ],
    );
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn whoever_is_not_root_may_look_and_is_told_how_to_do_the_rest() {
    let guest = guest!().with("setpriv");
    let text = guest.good(
        &format!(
            "{BECOMES}
            # By its path: the shell has a program of that name of its own.
            other() {{
                /usr/bin/setpriv --reuid 65534 --regid 65534 --clear-groups runslice \"$@\"
                echo \"$1: status $?\"
            }}
            runslice run fifo -- no-such-program; echo \"missing: status $?\"
            other run fifo -- true
            runslice run fifo & runs
            other status; other stop; other set fifo slice_ns=5000000
            cat /sys/kernel/sched_ext/state
            runslice stop; wait"
        ),
        &[],
    );
    has(
        "6.18",
        &text.text(),
        &[
            "cannot start no-such-program: there is no such program\n  check the name and",
            "missing: status 1\n",
            "this process may not administer the system\n",
            "run: status 4\n",
            "\nsince      ",
            "status: status 0\n",
            "try sudo runslice stop\n",
            "stop: status 4\n",
            "try sudo runslice set\n",
            "set: status 4\nenabled\n",
            "fifo is detached",
        ],
    );
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn a_service_goes_for_the_time_and_comes_back() {
    let text = good(
        "6.18",
        &format!(
            "{BECOMES}
            cp $(command -v runslice) /tmp/scx_other
            group=/sys/fs/cgroup/system.slice/scx.service
            mkdir -p $group
            cat >/tmp/start <<END
echo \\$\\$ >$group/cgroup.procs
echo \\$\\$ >/tmp/pid
exec /tmp/scx_other run fifo
END
            cat >/bin/systemctl <<'END'
#!/bin/sh
echo \"systemctl $*\"
case $1 in
    stop) kill $(cat /tmp/pid) ;;
    start) sh /tmp/start >/tmp/log 2>&1 & ;;
esac
END
            chmod +x /bin/systemctl
            sh /tmp/start & runs
            rm -r /run/runslice
            runslice run mlfq -- true; echo \"without: status $?\"
            runslice run --replace mlfq -- cat /sys/kernel/sched_ext/root/ops
            echo \"with: status $?, $(cat /sys/kernel/sched_ext/root/ops) is back\"
            kill $(cat /tmp/pid); becomes disabled"
        ),
        &[],
    );
    has(
        "6.18",
        &text,
        &[
            "by scx_other of scx.service (process ",
            "--replace stops scx.service for the time",
            "without: status 4\n",
            "systemctl stop scx.service\n",
            "run: scx.service is stopped for the time\n",
            "\nmlfq\n",
            "systemctl start scx.service\n",
            "run: scx.service runs again; fifo is the scheduler\n",
            "with: status 0, fifo is back\n",
        ],
    );
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn a_partial_policy_has_the_command_and_nobody_else() {
    for kernel in KERNELS {
        let text = good(
            kernel,
            &format!(
                "{BECOMES}
                runslice run --partial fifo -- sh -c '
                    echo all $(cat /sys/kernel/sched_ext/switch_all)
                    (echo of the policy: $(grep ext.enabled /proc/self/sched))
                    runslice status | grep ^tasks
                    echo outside: $(grep ext.enabled /proc/1/sched)'
                left"
            ),
            &[],
        );
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        has(
            kernel,
            &words,
            &[
                "all 0",
                "of the policy: ext.enabled : 1",
                "outside: ext.enabled : 0",
                "tasks those that ask for SCHED_EXT",
                "run when no other task wants the CPU",
            ],
        );
    }
}

/// A quota that nobody enforces any more is seen in what its group uses.
#[test]
#[ignore = "boots a kernel: make test-vm"]
fn a_quota_of_a_group_keeps_a_policy_out_unless_it_may_be_ignored() {
    for kernel in KERNELS {
        let text = guest!()
            .kernel(kernel)
            .counted()
            .options(&["--mips", "250"])
            .good(
                &format!(
                    "{BECOMES}
                cd /sys/fs/cgroup && echo +cpu >cgroup.subtree_control && mkdir web
                echo '20000 100000' >web/cpu.max
                (echo 0 >web/cgroup.procs; while :; do :; done) & hog=$!
                used() {{ sed -n 's/^usage_usec //p' web/cpu.stat; }}
                percent() {{
                    begun=$(used); sleep 5; echo $((($(used) - begun) / 50000))
                }}
                echo \"own scheduler: $(percent)\"
                runslice run fifo -- true; echo \"refused: status $?\"
                cat /sys/kernel/sched_ext/state
                runslice run fifo --ignore-cgroups & runs
                echo \"policy: $(percent)\"
                runslice stop; wait %2
                echo \"own scheduler: $(percent)\"
                runslice doctor | grep -A1 quota
                kill $hog; wait $hog; sleep 1; cd /; rmdir /sys/fs/cgroup/web"
                ),
                &[],
            );
        let text = text.text();
        has(
            kernel,
            &text,
            &[
                "the group /web has a quota (cpu.max), which no policy enforces\n  lift the quota, \
                 or give --ignore-cgroups\n",
                "refused: status 4\ndisabled\n",
                "run: breaks: the group /web has a quota (cpu.max)",
            ],
        );
        let percent = |begin: &str| -> Vec<u32> {
            let lines = text.lines().filter_map(|line| line.strip_prefix(begin));
            lines.map(|it| it.parse().expect("a number")).collect()
        };
        // A fifth, but for the parts of a period at both ends.
        let own = percent("own scheduler: ");
        assert!(
            own.len() == 2 && own.iter().all(|it| (19..=21).contains(it)),
            "{kernel}: {text}"
        );
        assert!(percent("policy: ")[0] > 90, "{kernel}: {text}");
    }
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn an_ejection_keeps_the_kernels_dump_and_ends_with_3() {
    let loser = object!("loser");
    for kernel in KERNELS {
        let text = good(
            kernel,
            &format!(
                "{BECOMES}
                cd /tmp; runslice run $1 --for 30s; echo \"status $?\"
                cat runslice-loser-1.dump
                left"
            ),
            &[&loser],
        );
        has(
            kernel,
            &text,
            &[
                "status 3\n",
                "was ejected: runnable task stall: ",
                "run: the kernel's dump is in ./runslice-loser-1.dump\n",
                "triggered exit kind 1026",
                "\nCPU states\n",
                "failed to run for",
            ],
        );
    }
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn a_play_under_a_policy_is_known_to_the_other_verbs_and_its_ejection_leaves_a_dump() {
    let loser = object!("loser");
    for kernel in KERNELS {
        let text = good(
            kernel,
            &format!(
                "{BECOMES}
                cd /tmp
                printf '[workload]\nname = \"hogs\"\n[task.hog]\ncount = 3\ndo = \"run(inf)\"\n' \
                    >hogs.toml
                runslice play hogs.toml --policy fifo & runs
                kib=$(sed -n 's/^VmLck:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/$!/status)
                [ $kib -gt 1000 ] && echo \"its memory is locked\"
                runslice status | grep -e ^policy -e '^run by'
                runslice run mlfq -- true; echo \"a second one: status $?\"
                runslice stop; wait $!; echo \"play: status $?\"
                runslice play hogs.toml --policy $1; echo \"loser: status $?\"
                cat runslice-loser-1.dump
                echo \"left: $(left)\""
            ),
            &[&loser],
        );
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        has(
            kernel,
            &words,
            &[
                "policy fifo run by runslice, process ",
                "its memory is locked",
                "runslice stop ends it",
                "a second one: status 4",
                "fifo is detached: the kernel's own scheduler has all tasks",
                "play: status 130",
                "play: loser was ejected: runnable task stall: ",
                "play: the kernel's dump is in ./runslice-loser-1.dump",
                "loser: status 3",
                "triggered exit kind 1026",
            ],
        );
        has(kernel, &text, &["left: \n"]);
    }
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn a_policy_without_callbacks_for_cpus_is_loaded_again_when_one_goes_and_comes() {
    let fixed = object!("fixed_cpus");
    for kernel in KERNELS {
        let text = good(
            kernel,
            &format!(
                "{BECOMES}
                runslice run $1 & runs
                cpu=/sys/devices/system/cpu/cpu1/online
                restarts() {{
                    until runslice status | grep -qx \"restarts  *$1\"; do sleep 0.1; done
                }}
                echo 0 >$cpu; restarts 1; echo 1 >$cpu; restarts 2
                echo 0 >$cpu; restarts 3; echo 1 >$cpu; restarts 4
                echo 0 >$cpu; restarts 5; echo 1 >$cpu
                wait $!; echo \"status $?, $(cat /sys/kernel/sched_ext/state)\"
                left"
            ),
            &[&fixed],
        );
        assert_eq!(
            text.matches("run: fixed_cpus is loaded again: unregistered from the main")
                .count(),
            5,
            "{kernel}: {text}"
        );
        has(
            kernel,
            &text,
            &["more than 5 restarts in a minute", "status 3, disabled\n"],
        );
    }
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn signals_and_sigkill_leave_the_default_scheduler_and_no_pins() {
    for kernel in KERNELS {
        let text = good(
            kernel,
            &format!(
                "{BECOMES}
                for signal in INT TERM; do
                    runslice run fifo & runs
                    kill -$signal $!; wait $!
                    echo \"$signal: status $?, $(cat /sys/kernel/sched_ext/state), left: $(left)\"
                done
                runslice run fifo & runs
                kill -KILL $!; becomes disabled
                echo \"before: $(left | wc -l)\"
                runslice status
                echo \"after: $(left | wc -l)\"
                runslice run fifo -- true; echo \"again: status $?\""
            ),
            &[],
        );
        has(
            kernel,
            &text,
            &[
                "INT: status 130, disabled, left: \n",
                "TERM: status 130, disabled, left: \n",
                // The folder of the pins, the record and the object; the trace buffer.
                "before: 4\n",
                "with fifo had left, which was killed\n",
                "after: 0\n",
                "again: status 0\n",
            ],
        );
    }
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn a_panic_leaves_the_default_scheduler() {
    const INSIDE: &str = "RUNSLICE_TEST_INSIDE";
    if std::env::var_os(INSIDE).is_some() {
        let fifo = policies::find("fifo").expect("fifo is shipped");
        let policy = live::Policy::open("fifo", fifo.object, None).expect("a policy");
        let mut attached = policy.load().expect("accepted").attach().expect("attached");
        let folder = Path::new("/sys/fs/bpf/runslice");
        let _pins = attached.pin(folder).expect("pinned");
        assert!(attached.is_alive() && folder.is_dir());
        panic!("while fifo is attached");
    }
    let me = std::env::current_exe().expect("this program has a file");
    let guest = guest!().with(&me.to_string_lossy());
    let text = guest.run(
        &format!(
            "{BECOMES}
            {INSIDE}=1 $1 --include-ignored --exact a_panic_leaves_the_default_scheduler
            echo \"status $?\"
            becomes disabled
            echo \"left: $(left 2>/dev/null)\"
            cat /sys/kernel/sched_ext/enable_seq"
        ),
        &[&me],
    );
    has(
        "6.18",
        &text.text(),
        &["while fifo is attached", "status 101\n", "left: \n1\n"],
    );
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn a_commands_tasks_are_counted_with_those_that_lived_shortly() {
    for kernel in KERNELS {
        let text = good(
            kernel,
            "runslice run fifo --format json -- sh -c '
                for i in 1 2 3 4 5 6 7 8 9 10; do (true) & done; wait'",
            &[],
        );
        let begin = text.find('{').expect("a document");
        let end = text.rfind('}').expect("a document") + 1;
        let json: serde_json::Value = serde_json::from_str(&text[begin..end]).expect("JSON");
        let command = &json["command"];
        let number = |name: &str| command[name].as_u64().expect("a number");
        // The shell and ten that it forked.
        assert_eq!(number("tasks"), 11, "{kernel}: {text}");
        assert_eq!(number("living") + number("unseen"), 0, "{kernel}: {text}");
        assert!(number("slices") >= 11, "{kernel}: {text}");
        assert!(number("run_ns") > 0, "{kernel}: {text}");
        assert_eq!(command["status"], 0);
        let counted = json["policy_counters"]["direct"].as_u64();
        assert!(counted.is_some_and(|count| count > 0), "{kernel}: {text}");
    }
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn a_schedulers_own_program_is_started_awaited_and_interrupted() {
    for kernel in KERNELS {
        // The program is runslice itself.
        let text = good(
            kernel,
            "run() { runslice run --scheduler \"$@\"; echo \"status $?\"; }
            state() { cat /sys/kernel/sched_ext/state; }
            run 'runslice run fifo' --loader-output /tmp/log -- cat /sys/kernel/sched_ext/root/ops
            cat /tmp/log; state
            run \"sh -c 'echo nothing to attach; exit 3'\"; state
            run \"sh -c 'runslice run fifo --for 2s; exit 5'\" -- sleep 4; state
            run \"sh -c 'trap : INT; runslice run fifo; while :; do sleep 1; done'\" --for 1s; state
            runslice bench --scheduler 'runslice run fifo' --runs 1 --folder /tmp/out -- true
            grep -c 'runslice run fifo' /tmp/out/runs.jsonl
            cat /tmp/out/logs/*.scheduler; state",
            &[],
        );
        has(
            kernel,
            &text,
            &[
                "fifo\ncommand ",
                "run: fifo is the scheduler",
                "run: the kernel's own scheduler is back after ",
                "attached no policy: it ended with exit status: 3; its last lines:\nnothing",
                "ended with exit status: 5; its last lines:",
                "did not end within 15 s of SIGINT and was killed",
            ],
        );
        assert_eq!(text.matches("\ndisabled\n").count(), 5, "{kernel}: {text}");
        for status in [0, 1, 3] {
            let line = format!("status {status}\n");
            assert!(text.contains(&line), "{kernel}: no {line} in {text}");
        }
    }
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn an_interrupted_verb_of_the_kernel_says_in_one_line_what_is_kept() {
    let load = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hour.toml");
    let text = "[workload]\nname = \"hour\"\n[task.t]\ndo = \"loop(inf)[run(1ms), sleep(9ms)]\"\n";
    std::fs::write(&load, text).expect("writable");
    let script = "\
        cp \"$1\" hour.toml
        # Ends the command once $1 looks for it in what the command does.
        cut() {
            far=$1; shift
            \"$@\" >out 2>said & pid=$!
            while ! eval \"$far\"; do sleep 0.1; done; sleep 1
            kill -INT $pid; wait $pid; echo \"status $?\"; cat said
        }
        policy='grep -qx enabled /sys/kernel/sched_ext/state'
        cut \"$policy\" runslice run fifo
        cut \"$policy\" runslice play hour.toml --policy fifo
        cut 'test -s b/runs.jsonl' runslice bench fifo --folder b -- sleep 1
        cut 'sleep 3' runslice trace queue sh --for 1000s
        cut 'test -s s.txt' runslice stat record s.txt --enable --every 100ms
        cut 'sleep 3' runslice record -o r.dat --for 1000s";
    let kernel = KERNELS[0];
    let guest = guest!().kernel(kernel).timeout("600s");
    let text = guest.good(script, &[&load]).text();
    let until = "the results are of the time until then; `runslice ";
    has(
        kernel,
        &text,
        &[
            &format!("interrupted: {until}run fifo` begins anew"),
            &format!("interrupted: {until}play hour.toml --policy fifo` begins anew"),
            "interrupted: the runs that are done are kept, ",
            " of this call, in b; `runslice bench fifo --folder b -- sleep 1` goes on from there",
            &format!("interrupted: {until}trace queue sh --for 1000s` begins anew"),
            "interrupted: what was recorded is kept in s.txt; `runslice stat record s.txt ",
            "interrupted: what was recorded is kept in r.dat; `runslice record -o r.dat ",
        ],
    );
    for said in ["interrupted", "status 130\n"] {
        assert_eq!(text.matches(said).count(), 6, "{said}: {text}");
    }
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn a_recording_has_its_events_on_other_kernels_and_programs_run_there() {
    let own = Path::new(env!("CARGO_BIN_EXE_runslice"));
    let bundle = Path::new(env!("CARGO_TARGET_TMPDIR")).join("on-other-kernels.bundle");
    let load = ["-w", "desk", "--duration", "300ms"];
    let said = |words: &[&str]| {
        let output = Command::new(own).args(words).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let command = format!("'{}' run mlfq", own.display());
    let scheduler = ["--scheduler", &command];
    let to = ["-o", bundle.to_str().expect("UTF-8")];
    said(&[&["bundle"], &scheduler[..], &load, &to].concat());
    let live = said(&[&["sim"], &scheduler[..], &load, &["--audit"]].concat());
    let (_, events) = live.split_once(": ").expect("a name stands first");
    for kernel in KERNELS {
        let script = format!(
            "runslice sim $1 --audit
            # A guest has no /var of its own.
            own=\"mkdir -p /var/run/scx/root && exec $(command -v runslice) run mlfq\"
            runslice sim --scheduler \"sh -c '$own'\" {load} --audit",
            load = load.join(" ")
        );
        let text = good(kernel, &script, &[&bundle]);
        assert!(text.contains(events.trim()), "{kernel}: {text}\n{live}");
        let whole = text.matches("every account adds up").count();
        assert_eq!(whole, 2, "{kernel}: {text}");
        assert!(!text.contains("ejected"), "{kernel}: {text}");
    }
}
