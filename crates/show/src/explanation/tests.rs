use ask::trial::{Cure, CureTrial, Trials, Unproven};
use explain::why::{Act, Fault, Finding, QueueName, QueueView, Standing, Victim, Wait};
use model::{CpuId, Nanos, SimTime, TaskId};

use super::{Explanation, json, text};

fn finding(fault: Fault) -> Finding {
    let since = SimTime::from_nanos(1_500_000_000);
    Finding {
        fault,
        verdict: explain::why::Verdict {
            tier: fault.tier(),
            ..explain::why::Verdict::default()
        },
        time: since + Nanos::from_secs(2),
        scheduler: None,
        message: None,
        stopped: None,
        victim: Some(Victim {
            task: TaskId(0),
            name: "shell".to_owned(),
            pid: 100,
            since: Some(since),
            waited: Nanos::from_secs(2),
            standing: Standing::Queue(0),
            put: None,
            trigger: None,
        }),
        culprit: None,
        also: None,
        queue: None,
        idle: Vec::new(),
        holders: Vec::new(),
        longest: None,
        waiting: 1,
    }
}

fn kick(helped: u32, placebos_helped: u32) -> CureTrial {
    CureTrial {
        cure: Cure::Kick(CpuId(3)),
        at: SimTime::from_nanos(1_500_000_000),
        after: Some(Nanos::from_micros(12)),
        tried: 10,
        helped,
        placebos: 20,
        placebos_helped,
    }
}

fn explained(fault: Fault, tried: Vec<CureTrial>, unproven: Option<Unproven>) -> Explanation {
    Explanation {
        finding: Some(finding(fault)),
        trials: Some(Trials {
            is_contract: false,
            tried,
            unproven,
        }),
        ..Explanation::default()
    }
}

/// The text on a terminal of 80 columns, with single spaces.
fn said(explanation: &Explanation) -> String {
    let text = text::of(explanation, 80);
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_proof_says_what_was_tried_how_often_and_with_which_controls() {
    let explanation = explained(Fault::ForgottenKick, vec![kick(10, 0)], None);
    assert!(explanation.accuses());
    let text = said(&explanation);
    assert!(text.starts_with("forgotten-kick: "), "{text}");
    let words = "tried: With a kick of CPU 3 at 1.500000 s shell ran after 12.0 us (tried 10 \
        times; of 20 other trials none helped)";
    assert!(text.contains(words), "{text}");
    assert!(!text.contains("not proven"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&json::of(&explanation)).expect("JSON");
    assert_eq!(json["is_proven"], true);
    let trial = &json["trials"][0];
    assert_eq!(
        (&trial["intervention"], &trial["cpu"]),
        (&"kick".into(), &3.into())
    );
    assert_eq!(
        (&trial["tried"], &trial["helped"]),
        (&10.into(), &10.into())
    );
    assert_eq!(
        (&trial["placebos"], &trial["placebos_helped"]),
        (&20.into(), &0.into())
    );
}

#[test]
fn what_is_not_proven_is_called_supposed_and_says_why() {
    let explanation = explained(
        Fault::ForgottenKick,
        vec![kick(9, 5)],
        Some(Unproven::NoCure),
    );
    assert!(!explanation.accuses());
    let text = said(&explanation);
    assert!(text.starts_with("forgotten-kick (supposed): "), "{text}");
    assert!(
        text.contains("9 of 10 times; of 20 other trials 5 helped"),
        "{text}"
    );
    assert!(
        text.contains("not proven: nothing that was tried"),
        "{text}"
    );
    let json: serde_json::Value = serde_json::from_str(&json::of(&explanation)).expect("JSON");
    assert_eq!(json["is_proven"], false);
    assert!(json["not_proven"].is_string());
}

#[test]
fn what_accuses_nobody_is_no_supposition() {
    let untried = Some(Unproven::NotTried("no policy can end it".to_owned()));
    let text = said(&explained(Fault::Outranked, Vec::new(), untried));
    assert!(text.starts_with("outranked: "), "{text}");
    assert!(!text.contains("proven"), "{text}");
}

/// Before 7.0 classes above may take everything; later a server keeps some of it.
#[test]
fn a_wait_behind_a_higher_class_is_told_by_the_kernels_version() {
    let told = |has_server, message: Option<&str>| {
        let mut outranked = finding(Fault::Outranked);
        outranked.verdict.has_server = has_server;
        outranked.message = message.map(str::to_owned);
        said(&Explanation {
            finding: Some(outranked),
            ..Explanation::default()
        })
    };
    assert!(told(false, None).contains("no fault: before 7.0"));
    assert!(told(false, Some("shell[100] failed to run")).contains("its watchdog ends a policy"));
    for message in [None, Some("shell[100] failed to run")] {
        let text = told(true, message);
        assert!(text.contains("owes its tasks 50 ms"), "{text}");
    }
}

/// A single wait that was asked for is told with what was tried.
#[test]
fn a_single_wait_has_its_own_trials() {
    let run = explained(Fault::ForgottenKick, vec![kick(10, 0)], None);
    let wait = |trials| Explanation {
        waits: vec![Wait {
            span: Nanos::from_secs(2),
            finding: finding(Fault::ForgottenKick),
        }],
        wait_trials: vec![trials],
        ..Explanation::default()
    };
    let proven = wait(run.trials.clone().expect("some"));
    assert!(said(&proven).contains("tried: With a kick of CPU 3"));
    let json: serde_json::Value = serde_json::from_str(&json::of(&proven)).expect("JSON");
    assert_eq!(json["waits"][0]["is_proven"], true);
    let untried = wait(Trials::none(&finding(Fault::ForgottenKick), "it is over"));
    let text = said(&untried);
    assert!(text.contains("forgotten-kick (supposed)"), "{text}");
    assert!(text.contains("not proven: it is over"), "{text}");
}

#[test]
fn nine_of_ten_and_one_of_twenty_are_a_proof_and_no_less() {
    assert!(kick(10, 0).proves() && kick(9, 1).proves());
    assert!(!kick(8, 0).proves() && !kick(10, 2).proves());
    let cut = CureTrial {
        placebos: 10,
        ..kick(10, 0)
    };
    assert!(!cut.proves());
}

#[test]
fn a_scheduler_below_and_its_queues_are_named() {
    let mut told = finding(Fault::UnreadQueue);
    told.scheduler = Some("batch at /app".to_owned());
    let other = QueueName { of: None, id: 7 };
    let by = Act {
        time: told.time,
        cpu: CpuId(1),
        callback: "dispatch",
        place: None,
    };
    told.queue = Some(QueueView {
        id: 0,
        of: Some("app".to_owned()),
        is_passed_by: true,
        depth: 1,
        last_look: None,
        looks: (0, 0),
        overtaken: 0,
        readers: Vec::new(),
        empty_dispatch: None,
        other_look: Some((by, other)),
    });
    let explanation = Explanation {
        finding: Some(told),
        ..Explanation::default()
    };
    let text = said(&explanation);
    for words in [
        "scheduler: batch at /app, which the kernel ended; the others went on",
        "where: in the queue app/dsq 0",
        "handed: no CPU to app since the task came",
        "others: took a task from the queue 7 instead",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let json: serde_json::Value = serde_json::from_str(&json::of(&explanation)).expect("JSON");
    assert_eq!(json["finding"]["scheduler"], "batch at /app");
    assert_eq!(json["finding"]["queue"]["scheduler"], "app");
    assert_eq!(json["finding"]["queue"]["is_handed_down"], false);
}
