//! The order of a bench, its folder and its verdict, with a runner that only pretends.

use std::fs;

use model::Rng;
use stats::compare::{Series, Verdict};

use super::*;

/// A computer on which each scheduler takes as long as it is told, with 2 % of noise.
struct Pretended {
    rng: Rng,
    /// Factors by arm.
    factors: Vec<f64>,
    /// Arm whose policy is ejected in every run.
    ejects: Option<usize>,
    /// Runs until somebody interrupts.
    patience: usize,
    /// Arms in the order in which they ran.
    ran: Vec<usize>,
    /// What the user was told.
    told: Vec<String>,
}

impl Pretended {
    fn new(seed: u64, factors: &[f64]) -> Self {
        Self {
            rng: Rng::new(seed, 0),
            factors: factors.to_vec(),
            ejects: None,
            patience: usize::MAX,
            ran: Vec::new(),
            told: Vec::new(),
        }
    }
}

impl Runner for Pretended {
    fn run(&mut self, _: &BenchArm, at: usize, _: &Path) -> anyhow::Result<Measured> {
        self.ran.push(at);
        let noise = 0.96 + 0.08 * self.rng.unit();
        let of = |nanos: f64| Some((nanos * noise * self.factors[at]) as u64);
        let ejected = self.ejects == Some(at);
        Ok(Measured {
            status: Some(0),
            void: ejected.then(|| "ejected: runnable task stall".to_owned()),
            figures: CommandFigures {
                time_ns: of(1e9),
                run_ns: of(8e8),
                wait_ns: of(4e8),
                slices: Some(1000),
                ..CommandFigures::default()
            },
            played: None,
        })
    }

    fn tell(&mut self, text: &str) {
        self.told.push(text.to_owned());
    }

    fn is_interrupted(&self) -> bool {
        self.ran.len() >= self.patience
    }
}

/// A folder that goes away.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("runslice-bench-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn request(folder: &Path) -> Bench {
    Bench {
        policies: vec!["mlfq,fifo".to_owned()],
        schedulers: Vec::new(),
        runs: 20,
        until_decided: false,
        warmup: 1,
        seed: 4,
        folder: folder.to_owned(),
        judging: Judging {
            margin: 0.03,
            resample_seed: 1,
        },
        format: Some(Format::Human),
        output: None,
        look: WidthOptions::default(),
        play: None,
        scale: Vec::new(),
        ignore_cgroups: false,
        root: PathBuf::from("/"),
        command: vec!["make".to_owned()],
    }
}

/// Goes through all turns.
fn bench(request: &Bench, runner: &mut Pretended) -> anyhow::Result<bool> {
    Ok(watched(request, runner)?.is_some())
}

/// The same; how many runs of each scheduler there are.
fn watched(request: &Bench, runner: &mut Pretended) -> anyhow::Result<Option<u32>> {
    let arms = plan::arms(&request.policies, &[])?;
    let plan = request.plan(&arms, &Host::default(), None);
    let mut folder = Folder::open(&request.folder, &plan)?;
    request.watch(runner, &arms, &request.looks()?, &mut folder)
}

/// The verdict by scheduler for the time.
fn verdicts(folder: &Path) -> Vec<(String, Option<Verdict>)> {
    let family = Family::of(vec![File::read(&COMPUTER, folder).unwrap()], None, None).unwrap();
    let time = |series: &Series| series.name == "time_ns";
    let settings = Settings::default();
    let rows = compare(&family.questions(), Choice::Named(&time), &settings);
    rows.into_iter()
        .map(|row| (row.arm, row.result.unwrap().verdict))
        .collect()
}

const FACTORS: [f64; 4] = [1.0, 1.0, 1.1, 0.8];

#[test]
fn a_slower_and_a_faster_scheduler_are_found_and_warm_ups_do_not_count() {
    let scratch = Scratch::new("found");
    let request = request(&scratch.0);
    bench(&request, &mut Pretended::new(1, &FACTORS)).unwrap();
    let want = [
        ("mlfq".to_owned(), Some(Verdict::Slower)),
        ("fifo".to_owned(), Some(Verdict::Faster)),
    ];
    assert_eq!(verdicts(&scratch.0), want);
    let file = File::read(&COMPUTER, &scratch.0).unwrap();
    assert!(file.sets.iter().all(|set| set.runs == 20), "{file:?}");
    let mut text = Vec::new();
    let status = request
        .conclude(&[], &Host::default(), 20, &mut text)
        .unwrap();
    assert_eq!(status, Status::Done);
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.contains("fifo against default: better at time of the command"),
        "{text}"
    );
    assert!(text.contains("noise between two arms of default"), "{text}");
}

#[test]
fn an_interrupted_bench_goes_on_in_the_same_order_and_a_torn_line_is_run_again() {
    let scratch = Scratch::new("resumed");
    let mut whole = Pretended::new(1, &FACTORS);
    let other = Scratch::new("whole");
    bench(&request(&other.0), &mut whole).unwrap();
    let request = request(&scratch.0);
    let mut first = Pretended::new(1, &FACTORS);
    first.patience = 30;
    assert!(!bench(&request, &mut first).unwrap());
    // The run during which the signal came is not kept.
    let path = scratch.0.join("runs.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 29);
    // The computer died while the last one was written.
    fs::write(&path, &text[..text.len() - 9]).unwrap();
    let mut second = Pretended::new(2, &FACTORS);
    bench(&request, &mut second).unwrap();
    assert_eq!(second.ran, whole.ran[28..]);
    assert_eq!(first.ran, whole.ran[..30]);
    let mut third = Pretended::new(3, &FACTORS);
    bench(&request, &mut third).unwrap();
    assert!(third.ran.is_empty(), "all is there");
}

#[test]
fn runs_of_an_ejected_policy_are_void_counted_and_given_up() {
    let scratch = Scratch::new("ejected");
    let request = request(&scratch.0);
    let mut runner = Pretended::new(1, &FACTORS);
    runner.ejects = Some(2);
    assert!(bench(&request, &mut runner).unwrap());
    let arms = plan::arms(&request.policies, &[]).unwrap();
    let plan = request.plan(&arms, &Host::default(), None);
    let folder = Folder::open(&request.folder, &plan).unwrap();
    assert_eq!(folder.ejected(), VOID_MAX, "also when it is opened again");
    let void = runner.told.iter().filter(|it| it.contains(": void, "));
    assert_eq!(void.count(), 21, "each is said");
    assert_eq!(runner.ran.iter().filter(|at| **at == 2).count(), VOID_MAX);
    let mut text = Vec::new();
    let status = request
        .conclude(&[], &Host::default(), 20, &mut text)
        .unwrap();
    assert_eq!(status, Status::Done);
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.contains("mlfq: ejected, or its command failed, in 20 of 20 runs, which are left out"),
        "{text}"
    );
    assert!(text.contains("fifo against default: better"), "{text}");
}

#[test]
fn a_folder_that_everybody_may_write_is_refused_before_anything_runs() {
    let scratch = Scratch::new("planted");
    let request = request(&scratch.0);
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::create_dir_all(&request.folder).unwrap();
    fs::set_permissions(&request.folder, everybody).unwrap();
    let mut runner = Pretended::new(1, &FACTORS);
    let error = format!("{:#}", bench(&request, &mut runner).unwrap_err());
    assert!(error.contains("can be written by others"), "{error}");
    assert!(runner.ran.is_empty());
}

#[test]
fn a_folder_of_another_bench_is_refused_with_what_differs() {
    let scratch = Scratch::new("other");
    let mut request = request(&scratch.0);
    bench(&request, &mut Pretended::new(1, &FACTORS)).unwrap();
    request.command = vec!["true".to_owned()];
    let error = bench(&request, &mut Pretended::new(1, &FACTORS)).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("its command is [\"make\"], not [\"true\"]"),
        "{error}"
    );
}

#[test]
fn a_command_that_fails_under_the_kernels_own_scheduler_is_no_load() {
    let scratch = Scratch::new("fails");
    let request = request(&scratch.0);
    let mut runner = Pretended::new(1, &FACTORS);
    runner.ejects = Some(0);
    let error = bench(&request, &mut runner).unwrap_err().to_string();
    assert!(
        error.contains("under the kernel's own scheduler; see "),
        "{error}"
    );
}

#[test]
fn a_bench_until_decided_ends_at_the_first_of_four_looks_that_decides() {
    let scratch = Scratch::new("until-decided");
    let mut request = request(&scratch.0);
    (request.until_decided, request.runs) = (true, 40);
    assert_eq!(request.looks().unwrap(), [10, 20, 30, 40]);
    let mut runner = Pretended::new(1, &FACTORS);
    assert_eq!(watched(&request, &mut runner).unwrap(), Some(10));
    let warm = 1;
    assert_eq!(runner.ran.len(), 4 * (10 + warm));
    assert_eq!(
        runner.told.last().unwrap(),
        "every goal is decided after 10 runs of each"
    );
    // Whoever looks at the runs later has to count the looks, too.
    assert_eq!(File::read(&COMPUTER, &scratch.0).unwrap().looks, LOOKS);
    let mut text = Vec::new();
    let status = request
        .conclude(&[], &Host::default(), 10, &mut text)
        .unwrap();
    assert_eq!(status, Status::Done);
    let text = String::from_utf8(text).unwrap();
    assert!(text.starts_with("kernel : 10 runs of each"), "{text}");
    assert!(text.contains("intervals of 98.75 %"), "{text}");
    assert!(text.contains("2 comparisons (Holm), 4 looks"), "{text}");
    // What a look left is a start for the same bench.
    let mut again = Pretended::new(1, &FACTORS);
    assert_eq!(watched(&request, &mut again).unwrap(), Some(10));
    assert!(again.ran.is_empty());
}

#[test]
fn a_bench_until_decided_makes_all_runs_where_nothing_decides() {
    let scratch = Scratch::new("never-decided");
    let mut request = request(&scratch.0);
    request.until_decided = true;
    request.judging.margin = 0.0;
    let mut runner = Pretended::new(1, &[1.0; 4]);
    assert_eq!(watched(&request, &mut runner).unwrap(), Some(20));
    request.runs = 19;
    let error = request.looks().unwrap_err().to_string();
    assert!(error.contains("--runs 20 or more"), "{error}");
    request.until_decided = false;
    assert_eq!(request.looks().unwrap(), [19]);
}
