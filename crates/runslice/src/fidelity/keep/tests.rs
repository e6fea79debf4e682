//! What is written to a folder of plays, and read from it.

use ask::fidelity::asked::VERSION;
use ask::fidelity::simulated;
use folder::OwnFolder;
use model::{MachineSpec, Nanos, Profile};
use stats::compare::machines::{MachineRun, Waits};

use super::*;
use crate::look::LookOptions;
use crate::report::{Format, Results, Shape, TableName, World};
use crate::runner::Runner;

const LOAD: &str =
    "[workload]\nname = \"x\"\n[task.t]\ndo = \"loop(inf)[ run(1ms), sleep(1ms) ]\"\n";

fn asked(policies: &[&str], loads: &[&str]) -> AskedPlays {
    let owned = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
    AskedPlays {
        runslice_fidelity: VERSION,
        machine: "vm".to_owned(),
        kernel: "6.18".to_owned(),
        cpus: 2,
        duration_ns: Nanos::from_millis(200).get(),
        seed: 1,
        times: 2,
        events: true,
        policies: owned(policies),
        workloads: owned(loads),
    }
}

/// A request for plays of loads that are all the same.
fn of(folder: &OwnFolder, policies: &[&str], loads: &[&str]) -> anyhow::Result<PlaysRequest> {
    let texts = vec![LOAD.to_owned(); loads.len()];
    request(asked(policies, loads), texts, folder.path())
}

fn with_two_groups(folder: &OwnFolder) -> PlaysRequest {
    let text = "[workload]\nname = \"load\"\n[task.hog]\ncount = 3\ndo = \"run(inf)\"\n\
                [task.short]\ndo = \"loop(inf)[ run(1ms), sleep(7ms) ]\"\n";
    let asked = asked(&["fifo:slice_ns=5ms"], &["load"]);
    request(asked, vec![text.to_owned()], folder.path()).unwrap()
}

fn read(request: &PlaysRequest, play: &Play) -> anyhow::Result<Option<Kept>> {
    Kept::read(&COMPUTER, request, play)
}

/// What a play of the same would print: the figures are those of a simulation.
fn document(request: &PlaysRequest, play: &Play) -> String {
    let machine = MachineSpec {
        cpus: 2,
        hz: 1000,
        ..MachineSpec::default()
    };
    let nothing = MachineRun {
        load: String::new(),
        policy: String::new(),
        seed: 0,
        before_ns: 0,
        elapsed_ns: 0,
        switches: 0,
        groups: Vec::new(),
    };
    let kept = Kept {
        machine: machine.clone(),
        run: nothing,
    };
    let spec = simulated::spec(&COMPUTER, (request, play, &kept), &Profile::default()).unwrap();
    let (mut outcome, metrics) = Runner::new(&spec, &COMPUTER).measure().unwrap();
    outcome.compared = Some(MachineRun::new(&metrics.report(), &metrics.waits()));
    let results = Results {
        world: World::Played,
        workload: "load".to_owned(),
        is_rerun: false,
        machine,
        seed: play.seed,
        outcomes: vec![outcome],
        spread: Vec::new(),
    };
    let shape = Shape {
        format: Format::Json,
        table: TableName::Groups,
        look: LookOptions::default(),
    };
    let mut text = Vec::new();
    crate::report::write(&results, shape, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn what_a_play_prints_is_kept_and_read_as_it_was() {
    let folder = OwnFolder::new().unwrap();
    let request = with_two_groups(&folder);
    let play = &request.plays(&COMPUTER)[0];
    assert_eq!(read(&request, play).unwrap(), None);
    let brought = Brought {
        id: play.id.clone(),
        printed: Ok(document(&request, play)),
    };
    let from = OwnFolder::new().unwrap();
    fs::write(from.join(&events_name(play)), "events\n").unwrap();
    super::play(&brought, &request, play, from.path()).unwrap();
    let kept = read(&request, play).unwrap().unwrap();
    assert_eq!((kept.machine.cpus, kept.machine.hz), (2, 1000));
    assert_eq!(kept.run.policy, "fifo:slice_ns=5ms");
    let hog = &kept.run.groups[0];
    assert!(hog.runs > 10 && hog.waits != Waits::default());
    let events = events_file(folder.path(), play);
    assert_eq!(fs::read_to_string(events).unwrap(), "events\n");
    // The same run is exact, group by group.
    let again = simulated::run(&COMPUTER, (&request, play, &kept), &Profile::default());
    assert_eq!(again.unwrap().unwrap(), kept.run);
}

#[test]
fn what_failed_was_ejected_or_is_another_play_is_not_kept() {
    let folder = OwnFolder::new().unwrap();
    let request = with_two_groups(&folder);
    let plays = request.plays(&COMPUTER);
    let good = document(&request, &plays[0]);
    let keep = |printed: Result<String, String>| {
        let id = plays[0].id.clone();
        let brought = Brought { id, printed };
        let kept = play(&brought, &request, &plays[0], Path::new("/nowhere"));
        kept.unwrap_err().to_string()
    };
    assert_eq!(
        keep(Err("exit status: 1; no".to_owned())),
        "exit status: 1; no"
    );
    assert_eq!(keep(Ok("nothing".to_owned())), "no JSON was printed");
    assert!(keep(Ok(good.replace("compared", "other"))).contains("`compared`"));
    let ejected = good.replace("\"kind\": 64", "\"kind\": 1026");
    assert_ne!(ejected, good);
    assert!(keep(Ok(ejected)).contains("was ejected"));
    assert_eq!(read(&request, &plays[0]).unwrap(), None);
    // A file under another play's name.
    let brought = Brought {
        id: plays[0].id.clone(),
        printed: Ok(good),
    };
    play(&brought, &request, &plays[0], Path::new("/nowhere")).unwrap();
    fs::rename(
        file(folder.path(), &plays[0]),
        file(folder.path(), &plays[1]),
    )
    .unwrap();
    read(&request, &plays[1]).unwrap_err();
}

#[test]
fn every_workload_is_played_under_every_policy_with_two_seeds() {
    let folder = OwnFolder::new().unwrap();
    let request = of(&folder, &["fifo", "mlfq:queues=3"], &["a", "b"]).unwrap();
    let plays = request.plays(&COMPUTER);
    let ids: Vec<&str> = plays.iter().map(|it| it.id.as_str()).collect();
    let first = [
        "a.fifo.1",
        "a.mlfq-queues=3.1",
        "b.fifo.1",
        "b.mlfq-queues=3.1",
    ];
    assert_eq!(ids[..4], first);
    assert_eq!(ids.len(), 8);
    assert_ne!(plays[0].seed, plays[4].seed);
    let workload = request.workload(&COMPUTER, &plays[2]).unwrap();
    assert_eq!(workload.groups[0].name, "t");
}

#[test]
fn more_plays_and_longer_names_than_a_folder_holds_are_refused_before_any_is_read() {
    let folder = OwnFolder::new().unwrap();
    let request = of(&folder, &["fifo"], &["a"]).unwrap();
    let file = PlaysRequest::file(folder.path());
    let refused = |change: &dyn Fn(&mut AskedPlays)| {
        let mut asked = request.asked.clone();
        change(&mut asked);
        fs::write(&file, serde_json::to_string(&asked).unwrap()).unwrap();
        format!(
            "{:#}",
            PlaysRequest::read(&COMPUTER, folder.path()).unwrap_err()
        )
    };
    let all = |letter: char| (0..100).map(|n| format!("{letter}{n}")).collect::<Vec<_>>();
    let said = refused(&|asked| {
        (asked.workloads, asked.policies) = (all('w'), all('p'));
    });
    let want = "100 workloads under 100 policies, 2 times each, are 20000 plays, and at most \
                10000 are possible";
    assert!(said.ends_with(want), "{said}");
    let said = refused(&|asked| asked.policies = vec!["x".repeat(1 << 20)]);
    assert!(
        said.contains("has 1048576 bytes, and at most 200"),
        "{said}"
    );
    // No file of theirs is there: it is not looked for.
    let said = refused(&|asked| asked.workloads = vec!["b".to_owned(); 2]);
    assert!(
        said.contains("two plays would both be called b.fifo."),
        "{said}"
    );
    let error = of(&folder, &["fifo"], &[&"x".repeat(300)]);
    assert!(error.unwrap_err().is::<UsageError>());
}

#[test]
fn the_same_request_goes_on_in_its_folder_and_another_is_refused() {
    let folder = OwnFolder::new().unwrap();
    let first = of(&folder, &["fifo"], &["a"]).unwrap();
    let again = of(&folder, &["fifo"], &["a"]).unwrap();
    let read = PlaysRequest::read(&COMPUTER, folder.path()).unwrap();
    assert_eq!((&again.asked, &read.asked), (&first.asked, &first.asked));
    assert_eq!(read.texts, first.texts);
    let changed = vec![format!("{LOAD}nice = 5\n")];
    let changed = request(asked(&["fifo"], &["a"]), changed, folder.path());
    for refused in [
        of(&folder, &["o1"], &["a"]),
        of(&folder, &["fifo"], &["b"]),
        changed,
    ] {
        let error = refused.unwrap_err();
        assert!(error.is::<UsageError>(), "{error:#}");
    }
}

#[test]
fn names_that_would_share_a_file_or_leave_the_folder_are_refused() {
    let folder = OwnFolder::new().unwrap();
    let twice = of(&folder, &["fifo", "fifo"], &["a"]);
    assert!(twice.unwrap_err().is::<UsageError>());
    let request = of(&folder, &["fifo"], &["a"]).unwrap();
    let text = serde_json::to_string(&request.asked).unwrap();
    for (from, to) in [
        ("\"a\"", "\"../a\""),
        ("\"a\"", "\"\""),
        ("\"runslice_fidelity\":1", "\"runslice_fidelity\":2"),
    ] {
        fs::write(PlaysRequest::file(folder.path()), text.replace(from, to)).unwrap();
        PlaysRequest::read(&COMPUTER, folder.path()).unwrap_err();
    }
}
