use super::*;
use crate::services::tests::FILES;

fn runs(text: &str) -> anyhow::Result<Vec<Planned>> {
    let file = "s.toml";
    let cells = plan(&Source {
        file: file::Source { text, file },
        folder: Path::new("."),
        services: FILES,
        programs: Programs {
            commands: &[],
            options: &ProgramOptions::default(),
        },
    })?;
    let runs = cells.iter().flat_map(|(cell, seeds)| {
        let seeds = seeds.iter();
        seeds.map(|seed| cell.with_seed("v", *seed))
    });
    Ok(runs.collect())
}

fn told(text: &str) -> Vec<String> {
    let told = runs(text).unwrap().into_iter().map(|run| {
        let RunSpec {
            policy,
            workload,
            machine,
            ..
        } = run.spec;
        format!("{} {} {}", policy.name, workload.name, machine.cpus)
    });
    told.collect()
}

#[test]
fn lists_are_multiplied_and_knobs_belong_to_their_policy() {
    let text = "
        policy = ['fifo', 'mlfq']
        workload = ['desk']
        cpus = [1, 2]
        [knobs.mlfq]
        nq = [4, 8]
    ";
    let want = [
        "fifo desk 1",
        "fifo desk 2",
        "mlfq:nq=4 desk 1",
        "mlfq:nq=4 desk 2",
        "mlfq:nq=8 desk 1",
        "mlfq:nq=8 desk 2",
    ];
    assert_eq!(told(text), want);
    let set = &runs(text).unwrap()[2].spec.policy.set;
    assert_eq!(*set, [("nq".to_owned(), "4".to_owned())]);
}

#[test]
fn combinations_are_excluded_and_included() {
    let text = "
        policy = ['fifo', 'mlfq']
        workload = ['desk']
        cpus = [1, 2]
        [[exclude]]
        policy = 'mlfq'
        cpus = 1
        [[include]]
        policy = 'o1'
        cpus = 7
    ";
    let want = ["fifo desk 1", "fifo desk 2", "mlfq desk 2", "o1 desk 7"];
    assert_eq!(told(text), want);
}

#[test]
fn schedulers_programs_are_arms_without_knobs() {
    let text = "
        scheduler = ['scx_a -p', 'scx_b']
        workload = ['desk']
        cpus = [1, 2]
        [[exclude]]
        scheduler = 'scx_b'
        cpus = 1
        [[include]]
        scheduler = 'scx_c'
        cpus = 7
    ";
    let want = [
        "scx_a -p desk 1",
        "scx_a -p desk 2",
        "scx_b desk 2",
        "scx_c desk 7",
    ];
    assert_eq!(told(text), want);
    let bad = "scheduler = ['scx_a \"']\nworkload = ['desk']";
    let error = format!("{:#}", runs(bad).unwrap_err());
    assert!(error.starts_with("s.toml:1:14"), "{error}");
}

#[test]
fn seeds_are_counted_or_listed() {
    let of = |more: &str| -> Vec<u64> {
        let text = format!("policy = ['fifo']\nworkload = ['desk']\n{more}");
        let runs = runs(&text).unwrap();
        runs.iter().map(|run| run.spec.seed).collect()
    };
    assert_eq!(of("seeds = [5, 9]"), [5, 9]);
    let want: Vec<u64> = (0..3).map(|run| seeds::of_run(7, run)).collect();
    assert_eq!(of("seeds = 3\nseed = 7"), want);
    assert_eq!(of("seed = 7"), [7]);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (text, want) in [
        ("policy = ['fifi']\nworkload = ['desk']", "s.toml:1:11"),
        ("policy = ['fifo']\nworkload = ['dsk']", "s.toml:2:13"),
        (
            "policy = ['fifo']\nworkload = ['desk']\ncpu = 1",
            "s.toml:3:1: unknown field",
        ),
        (
            "policy = ['fifo']\nworkload = ['desk']\ncpus = [0]",
            "s.toml:3:9: the number of CPUs",
        ),
        (
            "policy = ['fifo']\nworkload = ['desk']\nhz = [250, 7]",
            "s.toml:3:7: HZ is 7",
        ),
        (
            "policy = ['fifo']\nworkload = ['desk']\nkernel = ['6.1']",
            "s.toml:3:11",
        ),
        (
            "policy = ['fifo']\nworkload = ['desk']\nseeds = 0",
            "s.toml:3:9: there are no seeds",
        ),
        (
            "policy = ['fifo']\nworkload = ['desk']\nseeds = [5, 9, 5]",
            "s.toml:3:9: the seed 5 is there twice",
        ),
        (
            "policy = ['fifo', 'fifo']\nworkload = ['desk']",
            "s.toml:1:19: `fifo` is there twice",
        ),
        (
            "policy = ['mlfq']\nworkload = ['desk']\n[knobs]\nmlfq.nq = [4, 4]",
            "s.toml:1:11: `mlfq:nq=4` is there twice",
        ),
        (
            "policy = ['fifo']\nworkload = ['desk']\nduration = '1'",
            "s.toml:3:12: expected",
        ),
        (
            "policy = ['fifo']\nworkload = ['desk']\n[knobs.mlfq]\nnq = [1]",
            "s.toml:3:8: the sweep has no policy `mlfq`",
        ),
        (
            "policy = ['fifo']\nworkload = ['desk']\n[[exclude]]\ncpus = 9",
            "s.toml:3:1: this excludes no run",
        ),
        ("policy = ['fifo'\nworkload", "s.toml:2:1"),
        (
            "policy = []\nworkload = ['desk']",
            "s.toml: there is nothing to run",
        ),
        (
            "policy = ['fifo']\nworkload = ['desk']\nseeds = 2000000",
            "s.toml: 2000000 runs are more than 1000000",
        ),
    ] {
        let error = format!("{:#}", runs(text).unwrap_err());
        assert!(error.starts_with(want), "{text}: {error}");
    }
}

#[test]
fn two_policies_of_one_name_are_refused() {
    let folder = std::env::temp_dir().join(format!("runslice-names-{}", std::process::id()));
    let path = |of: &str| {
        let folder = folder.join(of);
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("mine.bpf.o");
        std::fs::write(&path, policies::find(of).unwrap().object).unwrap();
        path.display().to_string()
    };
    let [one, other] = ["fifo", "mlfq"].map(path);
    let head = "workload = ['desk']";
    let listed = format!("policy = ['{one}', '{other}']\n{head}");
    let included = format!("policy = ['{one}']\n{head}\n[[include]]\npolicy = '{other}'");
    let want = format!("`{one}` and `{other}` have the same name; rename a file, or leave one out");
    for text in [listed, included] {
        let error = crate::error::in_full(&runs(&text).unwrap_err());
        assert!(error.ends_with(&want), "{error}");
    }
    // One policy may be written in two ways.
    let text = format!(
        "policy = ['mlfq']\n{head}\n[knobs.mlfq]\nnq = [4]\n[[include]]\n\
         policy = 'mlfq:nq=4'\ncpus = 7"
    );
    assert_eq!(told(&text).len(), 2);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn combinations_beyond_all_measure_are_refused_before_they_are_made() {
    let list = (0..1000)
        .map(|n| n.to_string())
        .collect::<Vec<_>>()
        .join(",");
    let of = |rest: &str| {
        let text = format!("policy = ['mlfq']\nworkload = ['desk']\n{rest}");
        crate::error::in_full(&runs(&text).unwrap_err())
    };
    let knobs = of(&format!(
        "[knobs.mlfq]\na = [{list}]\nb = [{list}]\nc = [{list}]"
    ));
    assert_eq!(
        knobs,
        "s.toml:3:8: more than 1000000 combinations; split the sweep"
    );
    let machines = of(&format!("cpus = [{list}]\nhz = [{list}]\nsmt = [{list}]"));
    assert_eq!(
        machines,
        "s.toml: more than 1000000 combinations; split the sweep"
    );
}

#[test]
fn names_and_knobs_that_no_computer_holds_are_refused_before_they_are_multiplied() {
    let long = "x".repeat(60_000);
    let list = |count: usize, of: &dyn Fn(usize) -> String| {
        let all: Vec<String> = (0..count).map(of).collect();
        all.join(",")
    };
    let numbers = list(300, &|at| at.to_string());
    let head = "policy = ['mlfq']\nworkload = ['desk']\nseeds = 1\n";
    let refused = |text: &str| {
        let error = runs(text).unwrap_err().to_string();
        assert!(
            error.contains("the names and knobs of all runs have more than 1024 MiB"),
            "{error}"
        );
    };
    // A long value in each of 90,000 combinations.
    refused(&format!(
        "{head}[knobs.mlfq]\na = [{numbers}]\nb = [{numbers}]\nc = ['{long}']"
    ));
    // One in each of 20,000 runs.
    refused(&format!(
        "policy = ['mlfq']\nworkload = ['desk']\nseeds = 20000\n[knobs.mlfq]\nc = ['{long}']"
    ));
    // One under each of 20,000 machines.
    let cpus = list(200, &|at| (at + 1).to_string());
    let hz = list(100, &|_| "250".to_owned());
    refused(&format!(
        "{head}cpus = [{cpus}]\nhz = [{hz}]\n[knobs.mlfq]\nc = ['{long}']"
    ));
}

#[test]
fn the_documents_example_has_as_many_runs_as_it_says() {
    let document = include_str!("../../../../docs/sweep.md");
    let (_, rest) = document.split_once("```toml\n").unwrap();
    let (example, rest) = rest.split_once("```").unwrap();
    let runs = runs(example).unwrap();
    let said = format!(
        "These are {} runs: {} combinations",
        runs.len(),
        runs.len() / 20
    );
    assert!(rest.contains(&said), "{said}");
    let hogs: Vec<_> = runs.iter().map(|run| run.scale.as_slice()).collect();
    assert!(hogs.contains(&&[("hogs".to_owned(), 1)][..]));
}

#[test]
fn files_are_relative_to_the_sweep() {
    let source = Source {
        file: file::Source {
            text: "",
            file: "a/s.toml",
        },
        folder: Path::new("a"),
        services: FILES,
        programs: Programs {
            commands: &[],
            options: &ProgramOptions::default(),
        },
    };
    assert_eq!(source.resolve("x.bpf.o:nq=3"), "a/x.bpf.o:nq=3");
    assert_eq!(source.resolve("b/x.toml"), "a/b/x.toml");
    assert_eq!(source.resolve("/b/x.toml"), "/b/x.toml");
    assert_eq!(source.resolve("mlfq:nq=3"), "mlfq:nq=3");
    let command = |text: &str| {
        source
            .program(text)
            .unwrap()
            .policy
            .program
            .unwrap()
            .command
    };
    assert_eq!(command("./scx_a -v b/c"), ["a/./scx_a", "-v", "b/c"]);
    assert_eq!(command("scx_a"), ["scx_a"]);
}

#[test]
fn what_hardware_says_is_not_swept() {
    let pixel = model::Hardware::find("pixel6").expect("it is built in");
    let load = Workload {
        machine: MachineSpec::default().with_hardware(pixel),
        ..Workload::default()
    };
    let smt = Choice {
        smt: Some(2),
        ..Choice::default()
    };
    let wrong = smt.machine(&load).unwrap_err();
    assert_eq!(wrong.what, "`smt`: the hardware `pixel6` says it");
    let hz = Choice {
        hz: Some(1000),
        ..Choice::default()
    };
    assert_eq!(hz.machine(&load).unwrap().hz, 1000);
    assert!(smt.machine(&Workload::default()).is_ok());
}
