//! What is said of who is best, and of what: from files to the texts of each form.

use std::fs;
use std::path::PathBuf;

use ask::compare::{Compare, refuse_nothing};
use ask::load_source::LoadSource;
use ask::policy;
use ask::simulate::Simulate;
use runslice::COMPUTER;
use runslice_tests::{command, object};

/// A folder of one test's own.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("verdicts-{name}");
        Self(command::empty_folder(env!("CARGO_TARGET_TMPDIR"), &name))
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).expect("writable");
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).expect("a file")
    }

    /// What a command that ends with `status` prints.
    fn said(&self, arguments: &str, status: i32) -> String {
        let words: Vec<&str> = arguments.split_whitespace().collect();
        let (out, err) = command::said(env!("CARGO_BIN_EXE_runslice"), &self.0, &words, status);
        out + &err
    }
}

/// A server that gets more requests than it can answer, or half as many.
fn served(every: &str) -> String {
    format!(
        "[workload]\nname = \"served\"\nstop = \"duration:4s\"\n[machine]\ncpus = 1\n\
         [chan.requests]\nkind = \"queue\"\n[arrival.answer]\nkind = \"poisson\"\n\
         every = \"{every}\"\nsend = \"requests\"\n[task.worker]\n\
         do = \"loop(inf)[ recv(requests), run(exp(1ms)), done(answer) ]\"\n"
    )
}

#[test]
fn a_queue_that_still_grows_gets_no_verdict_in_any_form() {
    let folder = Folder::new("grows");
    folder.write("over.toml", &served("800us"));
    folder.write("under.toml", &served("2ms"));
    let grows = "this figure grows with the duration";
    let text = folder.said("sim fifo mlfq -w over.toml --wide", 0);
    assert!(text.contains(&format!("worker: answer p99  no verdict: {grows}")));
    assert!(text.contains("In short: Nothing can be ranked."), "{text}");
    assert!(!text.contains("does best"), "{text}");
    for form in ["markdown", "junit"] {
        let text = folder.said(&format!("sim fifo mlfq -w over.toml --format {form}"), 0);
        assert!(text.contains(grows), "{text}");
    }
    let text = folder.said("sim fifo mlfq -w over.toml -o over.html", 0);
    assert!(text.contains(grows) && folder.read("over.html").contains(grows));
    folder.said(
        "sim fifo mlfq -w over.toml --runs 6 --format json -o over.json",
        0,
    );
    let runs: serde_json::Value = serde_json::from_str(&folder.read("over.json")).expect("JSON");
    assert_eq!(runs["runs"][0]["report"]["spans"][0]["grows"], 1);
    // The time that the clock ends is alike for certain.
    let said = folder.said("compare over.json", 0).replace('\n', " ");
    assert!(said.contains(grows), "{said}");
    assert!(
        !said.contains("better") && !said.contains("worse"),
        "{said}"
    );
    let said = folder
        .said("choose fifo mlfq -w over.toml", 6)
        .replace('\n', " ");
    assert!(said.contains(grows), "{said}");
    // So do the waits of who answers, though they are short.
    let goal = [
        "choose",
        "fifo",
        "mlfq",
        "-w",
        "over.toml",
        "--goal",
        "p99 wait",
    ];
    let said = command::said(env!("CARGO_BIN_EXE_runslice"), &folder.0, &goal, 6).0;
    assert!(said.replace('\n', " ").contains(grows), "{said}");
    let text = folder.said("sim fifo mlfq -w under.toml", 0);
    assert!(!text.contains("duration"), "{text}");
}

#[test]
fn lateness_of_periods_that_queue_up_gets_no_verdict() {
    let folder = Folder::new("periods");
    for (passed, grows) in [("queue", true), ("skip", false)] {
        let load = format!(
            "[workload]\nname = \"late\"\nstop = \"duration:4s\"\n[machine]\ncpus = 1\n\
             [deadline.d]\nperiod = \"10ms\"\npassed = \"{passed}\"\n[task.a]\ncount = 3\n\
             do = \"loop(inf)[ release(d), run(5ms), complete(d) ]\"\n"
        );
        folder.write("late.toml", &load);
        let text = folder.said("sim fifo mlfq -w late.toml", 0);
        assert_eq!(text.contains("this figure grows with the duration"), grows);
        let told = "fifo: a: d grows with the duration: periods came faster than they were done";
        assert_eq!(text.contains(told), grows, "{text}");
    }
}

#[test]
fn a_file_of_events_says_which_figures_grow_as_its_run_does() {
    let folder = Folder::new("grown-events");
    let forked = "[workload]\nname = \"forked\"\nstop = \"duration:4s\"\n[machine]\ncpus = 1\n\
                  [task.maker]\ndo = \"loop(inf)[ fork(job), sleep(1ms) ]\"\n\
                  [task.job]\ndo = \"run(1500us)\"\n";
    folder.write("forked.toml", forked);
    folder.write("over.toml", &served("800us"));
    folder.write("under.toml", &served("2ms"));
    for load in ["forked", "over", "under"] {
        folder.said(&format!("sim cfs -w {load}.toml --events {load}.jsonl"), 0);
    }
    let said = folder.said("report forked.jsonl -o page.html", 0);
    let page = folder.read("page.html");
    assert!(
        said.contains("No verdict on wakeup p99 and delay mean"),
        "{said}"
    );
    assert!(page.contains("these figures grow with the duration"));
    let said = folder.said("report over.jsonl -o page.html", 0);
    assert!(
        said.contains("this figure grows with the duration"),
        "{said}"
    );
    let said = folder.said("report under.jsonl -o page.html", 0);
    assert!(!said.contains("duration"), "{said}");
    let said = folder.said("score forked.jsonl", 0).replace('\n', " ");
    assert!(
        said.contains("No verdict on waits and responses: these figures grow with the duration"),
        "{said}"
    );
}

/// A task that gets more messages from interrupts than it can take, or half as many.
fn interrupted(every: &str) -> String {
    format!(
        "[workload]\nname = \"keys\"\nstop = \"duration:4s\"\n[machine]\ncpus = 1\n\
         [chan.key]\nkind = \"queue\"\n[deadline.answer]\nslack = \"20ms\"\nmiss = \"late\"\n\
         [irq.keys]\npoisson = \"{every}\"\nsend = \"key\"\n[task.worker]\ndo = \"loop(inf)[ \
         recv(key), release(answer), run(exp(1ms)), complete(answer) ]\"\n"
    )
}

#[test]
fn a_queue_of_interrupts_that_still_grows_gets_no_verdict_in_any_form() {
    let folder = Folder::new("interrupted");
    folder.write("over.toml", &interrupted("800us"));
    folder.write("under.toml", &interrupted("2ms"));
    let grows = "this figure grows with the duration";
    let text = folder.said("sim fifo mlfq -w over.toml --wide", 0);
    assert!(text.contains(&format!("no verdict: {grows}")), "{text}");
    assert!(
        text.contains("fifo: the queue key grows with the duration"),
        "{text}"
    );
    assert!(text.contains("In short: Nothing can be ranked."), "{text}");
    for form in ["markdown", "junit"] {
        let text = folder.said(&format!("sim fifo mlfq -w over.toml --format {form}"), 0);
        assert!(text.contains(grows), "{text}");
    }
    let text = folder.said("sim fifo mlfq -w over.toml -o over.html", 0);
    assert!(text.contains(grows) && folder.read("over.html").contains(grows));
    let many = "sim fifo mlfq -w over.toml --runs 6 --format json -o over.json";
    folder.said(many, 0);
    let runs: serde_json::Value = serde_json::from_str(&folder.read("over.json")).expect("JSON");
    let report = &runs["runs"][0]["report"];
    assert_eq!(report["deadlines"][0]["grows"], 1);
    assert_eq!(report["groups"][0]["grows"], 1);
    let said = folder.said("compare over.json", 0).replace('\n', " ");
    assert!(
        said.contains(grows) && !said.contains("than mlfq"),
        "{said}"
    );
    for goal in ["late answer", "p99 wait of worker"] {
        let words = ["choose", "fifo", "mlfq", "-w", "over.toml", "--goal", goal];
        let (out, err) = command::said(env!("CARGO_BIN_EXE_runslice"), &folder.0, &words, 6);
        let said = (out + &err).replace('\n', " ");
        assert!(said.contains(grows), "{said}");
    }
    let plan = "workload = [\"over.toml\"]\npolicy = [\"fifo\", \"mlfq\"]\nseeds = 6\n";
    folder.write("plan.toml", plan);
    folder.said("sweep plan.toml -d swept", 0);
    let said = folder.said("compare swept", 0).replace('\n', " ");
    assert!(said.contains(grows), "{said}");
    let text = folder.said("sim fifo mlfq -w under.toml", 0);
    assert!(!text.contains("duration"), "{text}");
}

#[test]
fn an_ejected_policy_is_said_first_and_is_neither_best_nor_worst() {
    let folder = Folder::new("ranked");
    fs::copy(object!("loser"), folder.0.join("loser.bpf.o")).expect("writable");
    let text = folder.said("sim fifo ./loser.bpf.o mlfq -w desk --duration 3s", 3);
    let line = text.lines().nth(2).expect("behind the heading");
    assert!(line.starts_with("loser was ejected at 1."), "{text}");
    assert!(!text.contains("worst loser"), "{text}");
    assert!(text.contains("In short: loser was ejected at 1."), "{text}");
    let short = text.split("In short: ").nth(1).expect("a summary");
    assert!(
        !short.contains("loser does") && short.contains("fifo does worst"),
        "{short}"
    );
    let alone = folder.said("sim fifo ./loser.bpf.o -w desk --duration 3s", 3);
    assert!(
        !alone.contains("does best") && !alone.contains("does worst"),
        "{alone}"
    );
    for form in ["markdown", "junit"] {
        let text = folder.said(
            &format!("sim fifo ./loser.bpf.o -w desk --duration 3s --format {form}"),
            3,
        );
        assert!(text.contains("loser was ejected at 1."), "{text}");
        assert!(!text.contains("does worst"), "{text}");
    }
}

#[test]
fn a_span_behind_a_wait_is_warned_of_in_each_form_of_a_load() {
    let folder = Folder::new("late-span");
    let load = "[workload]\nname = \"w\"\nstop = \"duration:100ms\"\n[task.worker]\n\
                do = \"loop(inf)[ sleep(1ms), span_begin(answer), run(1us), span_end(answer) ]\"\n";
    folder.write("w.toml", load);
    let text = folder.said("sim fifo -w w.toml", 0);
    for part in [
        "w.toml:5",
        "`answer` of worker begins after `sleep`",
        "[arrival.answer]",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = folder.said("sim fifo -w desk --duration 100ms", 0);
    assert!(!text.contains("begins after"), "{text}");
}

#[test]
fn a_job_that_comes_by_a_sleep_is_warned_of_and_has_the_textbooks_wait_as_one_with_a_start() {
    let folder = Folder::new("empty-turn");
    let load = |jobs: [&str; 2]| {
        let [first, second] = jobs;
        format!(
            "[workload]\nname = \"w\"\n[machine]\ncpus = 1\n[task.long]\n{first}\n\
             [task.short]\n{second}\n"
        )
    };
    let by_sleep = ["sleep(1ms), run(100ms)", "sleep(2ms), run(10ms)"];
    let by_sleep = by_sleep.map(|it| format!("do = \"{it}\""));
    folder.write("sleep.toml", &load(by_sleep.each_ref().map(String::as_str)));
    let by_start = [("1ms", 100), ("2ms", 10)];
    let by_start = by_start.map(|(at, ms)| format!("start = \"{at}\"\ndo = \"run({ms}ms)\""));
    folder.write("start.toml", &load(by_start.each_ref().map(String::as_str)));
    let text = folder.said("sim fcfs -w sleep.toml", 0);
    for part in [
        "sleep.toml:6: long begins with `sleep`",
        "comes late",
        "`start`",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // (0 + 99) / 2 ms, and of the empty turns there is no wait.
    let mean = "     49.5 ms\n";
    assert!(text.contains(mean), "{text}");
    let text = folder.said("sim fcfs -w start.toml", 0);
    assert!(
        text.contains(mean) && !text.contains("begins with"),
        "{text}"
    );
}

#[test]
fn a_recording_of_many_threads_has_a_row_for_each_name_that_waited_most() {
    let folder = Folder::new("names");
    let mut trace = String::from("cpus=1\n");
    for round in 0..3 {
        for thread in 0..40_u32 {
            let name = match thread {
                0..7 => "rustc".to_owned(),
                _ => format!("job{}", char::from(b'A' + thread as u8 - 7)),
            };
            let (pid, at) = (100 + thread, 100_000 + round * 10_000 + thread * 200);
            let time = |us: u32| format!("{}.{:06}", us / 1000, us % 1000 * 1000);
            trace += &format!(
                "  <idle>-0 [000] {}: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 \
                 prev_state=R ==> next_comm={name} next_pid={pid} next_prio=120\n  {name}-{pid} \
                 [000] {}: sched_switch: prev_comm={name} prev_pid={pid} prev_prio=120 \
                 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120\n",
                time(at),
                time(at + 100),
            );
        }
    }
    folder.write("t.txt", &trace);
    let text = folder.said("sim fifo --from t.txt", 0);
    let table = text.split("task ").nth(1).expect("a table");
    assert!(text.contains("rustc (7)"), "{text}");
    assert!(text.contains("and 14 more names"), "{text}");
    assert!(
        table
            .lines()
            .take_while(|it| !it.starts_with("and "))
            .count()
            <= 21
    );
    let all = folder.said("sim fifo --from t.txt --wide", 0);
    assert!(!all.contains("more names"), "{all}");
    assert!(all.matches("rustc-10").count() >= 7, "{all}");
}

#[test]
fn the_summary_names_who_ties_with_the_best() {
    let folder = Folder::new("ties");
    let text = folder.said("sim cfs eevdf fifo -w desk --duration 3s", 0);
    let tied = |line: &str| line.contains("best cfs and eevdf 0.0 %");
    assert_eq!(text.lines().filter(|it| tied(it)).count(), 2, "{text}");
    let short = text.split("In short: ").nth(1).expect("a summary");
    let short = short.replace('\n', " ");
    let want = "cfs does best at all 3 things that can be ranked, at 2 of them alike with eevdf. \
                fifo does worst.";
    assert!(short.starts_with(want), "{short}");
    // The line of what all do alike has no winner, and is not among the three.
    assert!(text.contains("shell: slow keys       all alike"), "{text}");
}

#[test]
fn the_summary_says_what_the_best_policy_costs_and_missed_has_no_plural() {
    let folder = Folder::new("trade-off");
    folder.write(
        "both.toml",
        "[workload]\nname = \"both\"\nstop = \"duration:2s\"\n[machine]\ncpus = 1\n\
         [deadline.frame]\nperiod = \"10ms\"\n[task.ui]\n\
         do = \"loop(inf)[ release(frame), run(2ms), complete(frame) ]\"\n\
         [task.hog]\ncount = 2\ndo = \"run(inf)\"\n[task.batch]\n\
         do = \"loop(inf)[ run(exp(3ms)), count(compiled, 1), sleep(exp(1ms)) ]\"\n",
    );
    let text = folder.said("sim cfs eevdf fifo mlfq -w both.toml", 0);
    let short = text.split("In short: ").nth(1).expect("a summary");
    let short = short.replace('\n', " ");
    assert!(short.starts_with("cfs does best"), "{short}");
    let cost = "But cfs does less of batch: compiled: ";
    let cost = short.split(cost).nth(1).expect("a trade-off");
    assert!(cost.trim_end().ends_with("under mlfq."), "{short}");
    assert!(!short.contains("Not ranked"), "said once: {short}");
    assert!(
        text.contains("ui: missed  ") && !text.contains("misseds"),
        "{text}"
    );
    // Alone, or beside one that does less of it, the best policy costs nothing.
    let text = folder.said("sim cfs fifo -w both.toml", 0);
    assert!(
        text.contains("cfs does best") && !text.contains("But cfs"),
        "{text}"
    );
}

/// `tune` judges what it has found by this call.
#[test]
fn the_judge_of_a_search_makes_no_verdict_of_a_figure_that_grows() {
    let judged = |every: &str| {
        let load = LoadSource::of_text(&COMPUTER, "served.toml", &served(every));
        let schedulers = ["fifo", "mlfq"].map(|it| policy::open(&COMPUTER, it).expect("built in"));
        let question = Simulate {
            schedulers: schedulers.into(),
            load: Some(load.expect("a workload")),
            runs: Some(8),
            goals: vec!["p99 span answer of worker".parse().expect("a goal")],
            ..Simulate::default()
        };
        let simulated = question.ask(&COMPUTER).expect("runs");
        let compare = Compare {
            files: Vec::new(),
            baseline: None,
            again: None,
            metrics: Vec::new(),
            margin: 0.03,
            resample_seed: 1,
            fail_if: None,
        };
        let judged = compare.judge(vec![simulated.goal_file(&question.goals)]);
        let rows = judged.expect("a comparison").rows;
        refuse_nothing(&rows).map(|()| show::comparison::verdict(&rows).join(" "))
    };
    let refused = judged("800us").expect_err("no verdict").to_string();
    assert!(
        refused.contains("this figure grows with the duration"),
        "{refused}"
    );
    let other = match judged("2ms") {
        Ok(said) => said,
        Err(failure) => failure.to_string(),
    };
    assert!(!other.contains("duration"), "{other}");
}
