//! `runslice calibrate FILE`.

use std::fmt::Write as _;
use std::io::{self, BufReader, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use model::{Advised, Background, Profile, Sink, SmtTimings};
use stats::Flight;
use stats::background::{BackgroundGroup, FEWEST, Turns};
use traces::Tee;

use crate::computer::COMPUTER;
use crate::exit::{Status, UsageError};
use crate::kind::{self, WordKind};
use crate::report::counted;
use crate::say::{printable, say};
use crate::{files, output, recording};

/// Arguments of `runslice calibrate`.
#[derive(Debug, Args)]
pub struct Calibrate {
    /// A recording of a kernel: of `record --with bpf` or `play --events`. A long one of a
    /// machine that does what it will do later, without the load or with it.
    #[arg(required_unless_present = "smt")]
    file: Option<PathBuf>,

    /// Write what threads of a core leave each other, `[smt]` of a hardware file, from timings in
    /// FILE. See docs/hardware.md.
    #[arg(long, conflicts_with_all = ["group", "costs", "base", "name"])]
    smt: bool,

    /// A group of tasks that is in the background, as `kernel` or `system=1`: `play` calls the
    /// kernel's threads `kernel`, the thread that reads events `recorder`, and all others that are
    /// not the load's `system`; in a recording of `record` groups are names such as `kworker`.
    /// After `=` stands the real-time priority, 1 to 99, which no event says. May be repeated.
    /// Default: kernel.
    #[arg(long, value_name = "NAME[=PRIORITY]", value_parser = parse_group)]
    group: Vec<BackgroundGroup>,

    /// Measure costs from this recording instead: of a load whose CPUs idle and wake each other.
    #[arg(long, value_name = "FILE")]
    costs: Option<PathBuf>,

    /// The profile whose costs the new one has.
    #[arg(long, value_name = "NAME", default_value = "ideal")]
    base: String,

    /// What the profile is called: letters, digits, `-`, `_` and `.`.
    #[arg(long, value_name = "NAME", default_value = "calibrated")]
    name: String,

    /// Write the profile to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn parse_group(text: &str) -> Result<BackgroundGroup, String> {
    let (group, real_time) = match text.split_once('=') {
        None => (text, None),
        Some((group, priority)) => {
            let number = priority.parse::<u8>().ok();
            let number = number.filter(|priority| (1..=99).contains(priority));
            let number = number.ok_or(format!("`{priority}` is no real-time priority: 1 to 99"))?;
            (group, Some(number))
        }
    };
    if group.is_empty() {
        return Err("it has no name".to_owned());
    }
    Ok(BackgroundGroup {
        group: group.to_owned(),
        real_time,
    })
}

/// Measures what runs in the background of a recording, and how long calls of other CPUs take, and
/// writes both as a profile. With `--smt` it writes shares of threads instead.
///
/// # Errors
/// When a file cannot be read or written, or nothing can be measured.
pub fn run(request: &Calibrate) -> anyhow::Result<Status> {
    match &request.file {
        Some(file) if request.smt => shares(file, request.output.as_deref()),
        Some(file) => background(request, file),
        None => Err(nothing_measured().into()),
    }
}

/// Why `--smt` needs a file.
fn nothing_measured() -> Advised {
    // Without the list of CPUs nothing is known of them.
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    if cpus.split_whitespace().any(|word| word == "hypervisor") {
        return SmtTimings::of_virtual_machine();
    }
    Advised::new(
        "`--smt` measures nothing itself",
        "name a file with timings (docs/hardware.md)",
    )
}

/// Writes what threads of a core leave each other.
fn shares(path: &Path, output: Option<&Path>) -> anyhow::Result<Status> {
    output::spare(&[("the timings", Some(path))], &[("--output", output)])?;
    let name = path.display().to_string();
    let file = files::open(path).map_err(model::CannotRead::at(&name))?;
    let text = io::read_to_string(file).map_err(model::CannotRead::at(&name))?;
    let (table, said) = SmtTimings::parse(&text, &name)?.table()?;
    for line in said {
        say("calibrate", &line);
    }
    let mut to = output::open(output)?;
    to.write_all(table.as_bytes())?;
    to.flush()?;
    Ok(Status::Done)
}

fn background(request: &Calibrate, recording: &Path) -> anyhow::Result<Status> {
    if !["ideal", "default-v0"].contains(&request.base.as_str()) {
        let message = format!("--base is `ideal` or `default-v0`, not `{}`", request.base);
        return Err(UsageError::new(message).into());
    }
    output::spare(
        &[
            ("the recording", Some(recording)),
            ("--costs", request.costs.as_deref()),
        ],
        &[("--output", request.output.as_deref())],
    )?;
    let mut chosen = request.group.clone();
    if chosen.is_empty() {
        chosen.extend(parse_group("kernel"));
    }
    let mut turns = Turns::of(chosen);
    let mut flight = Flight::default();
    match &request.costs {
        None => replay(recording, &mut Tee::new(vec![&mut turns, &mut flight]))?,
        Some(costs) => {
            replay(recording, &mut turns)?;
            replay(costs, &mut flight)?;
        }
    }
    let entries = entries(recording, &turns)?;
    let text = profile((request, recording), &turns, &entries, &flight);
    let file = request
        .output
        .as_deref()
        .unwrap_or(Path::new("the profile"));
    // What is written must be what is read; and `--name` may be bad.
    Profile::parse(&text, &file.display().to_string())?;
    let mut to = output::open(request.output.as_deref())?;
    to.write_all(text.as_bytes())?;
    to.flush()?;
    Ok(Status::Done)
}

fn replay(path: &Path, sink: &mut dyn Sink) -> anyhow::Result<()> {
    let name = path.display().to_string();
    if recording::is_trace(&COMPUTER, path) {
        bail!(Advised::new(
            format!("{name} is a trace of another program"),
            "calibrate reads what `--events` wrote"
        ));
    }
    kind::refuse_other_file(path, WordKind::Recording)?;
    let file = files::open(path).map_err(model::CannotRead::at(&name))?;
    traces::replay(BufReader::new(file), sink).context(name)
}

/// What runs in the background of the recording at `path`.
fn entries(path: &Path, turns: &Turns) -> anyhow::Result<Vec<Background>> {
    let name = path.display();
    for missing in turns.missing() {
        say(
            "calibrate",
            &format!("{name} has no group `{missing}`: nothing is measured of it"),
        );
    }
    let entries = turns.entries();
    if entries.is_empty() {
        bail!(Advised::new(
            format!("{name}: no group that was asked for has {FEWEST} turns on a CPU"),
            "name others with --group, or record for longer"
        ));
    }
    Ok(entries)
}

/// The text of the profile.
fn profile(
    (request, recording): (&Calibrate, &Path),
    turns: &Turns,
    entries: &[Background],
    flight: &Flight,
) -> String {
    let mut text = format!(
        "# Threads in the background: measured by `runslice calibrate` from {}, which has {} s of \
         {}.\n",
        printable(&recording.display().to_string()),
        turns.elapsed(),
        counted(turns.cpus().into(), "CPU"),
    );
    let _ = write!(
        text,
        "# docs/profiles.md says what each key means.\n\n[profile]\nname = \"{}\"\nbase = \"{}\"\n",
        request.name, request.base
    );
    if let Some(longer) = flight.mean() {
        let _ = write!(
            text,
            "\n[costs]\n# Mean of {} wakeups of idle CPUs by others, less that by their \
             interrupts.\nipi_flight = \"{}ns\"\n",
            flight.count(),
            longer.get()
        );
    }
    for entry in entries {
        let on = match entry.cpu {
            Some(cpu) => cpu.to_string(),
            None if entry.each_cpu => "\"each\"".to_owned(),
            None => "\"any\"".to_owned(),
        };
        let run: Vec<String> = entry
            .run_ns
            .iter()
            .map(|it| format!("\"{it}ns\""))
            .collect();
        let _ = write!(
            text,
            "\n[background.{}]\non = {on}\ngap = \"{}ns\"\nrun = [\n    {},\n]\n",
            toml_key(&entry.name),
            entry.gap_ns,
            wrapped(&run)
        );
        if let Some(priority) = entry.real_time {
            let _ = writeln!(text, "real_time = {priority}");
        } else if entry.nice != 0 {
            let _ = writeln!(text, "nice = {}", entry.nice);
        }
    }
    text
}

/// Names with a dot are quoted.
fn toml_key(name: &str) -> String {
    if name.contains('.') {
        format!("\"{name}\"")
    } else {
        name.to_owned()
    }
}

/// Eight to a line.
fn wrapped(words: &[String]) -> String {
    let lines: Vec<String> = words.chunks(8).map(|line| line.join(", ")).collect();
    lines.join(",\n    ")
}
