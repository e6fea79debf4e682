//! Builds of a tree of sources with a few jobs, some for each CPU, and no limit.
//!
//! Source: the method of kernbench 0.42 (Kolivas), as the Linux Test Project has it: the files are
//! read once, one build warms up, then each load is `make clean`, `sync`, a pause and a build,
//! several times. Ours builds a generated tree and needs neither a kernel's sources nor a shell.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use super::tree::{MAKEFILE, SourceTree, Written};
use super::{Error, LoadCell, LoadOutcome, LoadTable, Usage, count, percent, processes};

/// How a tree is built.
#[derive(Clone, Debug)]
pub struct Builder {
    /// The sources.
    pub tree: SourceTree,
    /// The folder below which the tree's own folder is made.
    pub parent: PathBuf,
    /// The C compiler, a name or a path.
    pub cc: String,
    /// What it is told besides.
    pub cflags: String,
}

/// A tree that can be built. Dropping it deletes the tree.
#[derive(Debug)]
pub struct Prepared {
    tree: Written,
    cc: String,
    cflags: String,
}

/// How many jobs `make` may have at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jobs {
    /// So many.
    AtMost(u32),
    /// All that there are.
    All,
}

impl Builder {
    /// Looks for `make` and the compiler and writes the sources.
    ///
    /// # Errors
    /// When a program is missing or a file cannot be written.
    pub fn prepare(&self) -> Result<Prepared, Error> {
        for program in ["make", &self.cc] {
            let mut command = Command::new(program);
            let silent = command.stdin(Stdio::null()).stdout(Stdio::null());
            let found = silent.arg("-v").stderr(Stdio::null()).status();
            found.map_err(|_| Error::Missing {
                program: program.to_owned(),
                way: format!(
                    "install it, and bring it into a virtual machine with `--with {program}`; \
                     another compiler can be named"
                ),
            })?;
        }
        let tree = self.tree.write(&self.parent)?;
        for path in tree.sources() {
            fs::read(&path).map_err(Error::file("read", &path))?;
        }
        Ok(Prepared {
            tree,
            cc: self.cc.clone(),
            cflags: self.cflags.clone(),
        })
    }
}

impl Prepared {
    /// The files of sources, in order.
    #[must_use]
    pub fn sources(&self) -> Vec<PathBuf> {
        self.tree.sources()
    }

    /// Builds the whole tree anew and says what that took.
    ///
    /// # Errors
    /// When a program fails.
    pub fn build(&self, jobs: Jobs) -> Result<(Usage, Duration), Error> {
        self.clean()?;
        processes::run("make", &mut self.command(jobs))
    }

    /// The build as a command.
    #[must_use]
    pub fn command(&self, jobs: Jobs) -> Command {
        let mut command = self.make();
        command.arg(match jobs {
            Jobs::AtMost(number) => format!("-j{number}"),
            Jobs::All => "-j".to_owned(),
        });
        command
    }

    fn clean(&self) -> Result<(), Error> {
        processes::run("make", self.make().arg("clean")).map(drop)
    }

    fn make(&self) -> Command {
        let mut command = Command::new("make");
        command
            // Ours by name: make would prefer a `GNUmakefile` that somebody has put there.
            .args(["-s", "-f", MAKEFILE, "-C"])
            .arg(self.tree.folder())
            .arg(format!("CC={}", self.cc))
            .arg(format!("CFLAGS={}", self.cflags))
            // A load that is started by a make is not a part of it.
            .env_remove("MAKEFLAGS")
            .env_remove("MAKEFILES")
            .env_remove("MAKELEVEL")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }
}

/// Builds under the three loads.
#[derive(Clone, Debug)]
pub struct Kernbench {
    /// How the tree is built.
    pub builder: Builder,
    /// CPUs that the loads are made for.
    pub cpus: u32,
    /// Builds of each load, at least 1.
    pub runs: u32,
    /// Before each build.
    pub pause: Duration,
    /// Whether there is a build that nobody measures.
    pub warm_up: bool,
    /// Which loads.
    pub loads: Vec<JobCount>,
}

/// How many jobs for so many CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobCount {
    /// Half as many as CPUs, 3 instead of 2. There is none on less than 4 CPUs.
    Half,
    /// Four for each CPU.
    Optimal,
    /// No limit.
    Maximal,
}

impl JobCount {
    /// All, in order.
    pub const ALL: [Self; 3] = [Self::Half, Self::Optimal, Self::Maximal];

    /// As people call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Half => "half",
            Self::Optimal => "optimal",
            Self::Maximal => "maximal",
        }
    }

    /// Its jobs on so many CPUs; `None` where there is no such load.
    #[must_use]
    pub fn jobs(self, cpus: u32) -> Option<Jobs> {
        match self {
            Self::Half => match cpus / 2 {
                0 | 1 => None,
                2 => Some(Jobs::AtMost(3)),
                half => Some(Jobs::AtMost(half)),
            },
            Self::Optimal => Some(Jobs::AtMost(4 * cpus)),
            Self::Maximal => Some(Jobs::All),
        }
    }
}

impl Kernbench {
    /// Runs all builds. Figures are means over the runs; the table has each.
    ///
    /// # Errors
    /// When a program is missing or fails.
    pub fn run(&self) -> Result<LoadOutcome, Error> {
        if self.runs == 0 || self.cpus == 0 {
            let wrong = "builds are for at least one CPU and run at least once";
            return Err(Error::Size(wrong.to_owned()));
        }
        let sources = self.builder.prepare()?;
        if self.warm_up {
            sources.build(Jobs::AtMost(4 * self.cpus))?;
        }
        let mut outcome = LoadOutcome::default();
        let mut table = LoadTable {
            name: "builds".to_owned(),
            columns: vec!["load", "time_us", "user_us", "system_us"],
            rows: Vec::new(),
        };
        table
            .columns
            .extend(["switches_voluntary", "switches_forced"]);
        let mut total = Usage::default();
        for load in &self.loads {
            let Some(jobs) = load.jobs(self.cpus) else {
                outcome.notes.push(format!(
                    "there is no {} load on {} CPUs",
                    load.name(),
                    self.cpus
                ));
                continue;
            };
            let (mut usage, mut time) = (Usage::default(), Duration::ZERO);
            for _ in 0..self.runs {
                sources.clean()?;
                sync();
                thread::sleep(self.pause);
                let (used, took) = processes::run("make", &mut sources.command(jobs))?;
                table.rows.push(row(*load, used, took));
                usage += used;
                time += took;
            }
            let mean = |sum: f64| sum / f64::from(self.runs);
            let name = load.name();
            outcome.add(format!("{name}_time"), "s", mean(time.as_secs_f64()));
            outcome.add(format!("{name}_user"), "s", mean(usage.user.as_secs_f64()));
            outcome.add(
                format!("{name}_system"),
                "s",
                mean(usage.system.as_secs_f64()),
            );
            outcome.add(format!("{name}_cpu"), "%", percent(usage.cpu(), time));
            outcome.add(format!("{name}_sleeps"), "", mean(count(usage.voluntary)));
            outcome.add(format!("{name}_switches"), "", mean(count(usage.forced)));
            total += usage;
        }
        outcome.add_usage(total);
        outcome.tables.push(table);
        Ok(outcome)
    }
}

fn row(load: JobCount, usage: Usage, time: Duration) -> Vec<LoadCell> {
    let micros =
        |span: Duration| LoadCell::Number(u64::try_from(span.as_micros()).unwrap_or(u64::MAX));
    vec![
        LoadCell::Word(load.name().to_owned()),
        micros(time),
        micros(usage.user),
        micros(usage.system),
        LoadCell::Number(usage.voluntary),
        LoadCell::Number(usage.forced),
    ]
}

/// What was written goes to the disks.
pub(super) fn sync() {
    rustix::fs::sync();
}

#[cfg(test)]
mod tests {
    use super::*;
    use folder::OwnFolder;

    fn builder(parent: &OwnFolder) -> Builder {
        Builder {
            parent: parent.path().to_owned(),
            tree: SourceTree {
                files: 4,
                functions: 2,
                seed: 1,
            },
            cc: "cc".to_owned(),
            cflags: "-O0".to_owned(),
        }
    }

    #[test]
    fn loads_have_the_jobs_that_kernbench_gives_them() {
        assert_eq!([1, 2, 3].map(|cpus| JobCount::Half.jobs(cpus)), [None; 3]);
        assert_eq!(JobCount::Half.jobs(4), Some(Jobs::AtMost(3)));
        assert_eq!(JobCount::Half.jobs(16), Some(Jobs::AtMost(8)));
        assert_eq!(JobCount::Optimal.jobs(16), Some(Jobs::AtMost(64)));
        assert_eq!(JobCount::Maximal.jobs(1), Some(Jobs::All));
    }

    #[test]
    fn each_load_is_built_as_often_as_was_asked_and_its_figures_are_means() {
        let parent = OwnFolder::new().unwrap();
        let bench = Kernbench {
            builder: builder(&parent),
            cpus: 2,
            runs: 2,
            pause: Duration::ZERO,
            warm_up: false,
            loads: JobCount::ALL.to_vec(),
        };
        let outcome = bench.run().unwrap();
        assert_eq!(outcome.notes, ["there is no half load on 2 CPUs"]);
        let rows = &outcome.tables[0].rows;
        assert_eq!(rows.len(), 4);
        let mean = outcome.value("optimal_time").unwrap();
        let micros = |row: &Vec<LoadCell>| match row[1] {
            LoadCell::Number(micros) => count(micros) / 1e6,
            LoadCell::Word(_) => panic!("a time is a number"),
        };
        let sum: f64 = rows[..2].iter().map(micros).sum();
        assert!((sum / 2.0 - mean).abs() < 1e-5, "{outcome:?}");
        // It did build, in processes of its own.
        assert!(outcome.value("user") > Some(0.0), "{outcome:?}");
        let left = fs::read_dir(parent.path()).unwrap().count();
        assert_eq!(left, 0, "the tree went with the run");
    }

    #[test]
    fn what_lies_in_the_named_folder_is_never_executed() {
        let parent = OwnFolder::new().unwrap();
        let proof = parent.join("executed");
        let planted = format!("all clean:\n\ttouch {}\n", proof.display());
        for name in ["GNUmakefile", "makefile", MAKEFILE] {
            fs::write(parent.join(name), &planted).unwrap();
        }
        let sources = builder(&parent).prepare().unwrap();
        // Also in the tree's own folder, where only its owner could put it.
        fs::write(sources.tree.folder().join("GNUmakefile"), &planted).unwrap();
        sources.build(Jobs::All).unwrap();
        assert!(sources.tree.folder().join("all.o").is_file());
        assert!(!proof.exists());
    }

    #[test]
    fn a_compiler_that_is_not_there_is_named_with_the_way_out() {
        let parent = OwnFolder::new().unwrap();
        let mut builder = builder(&parent);
        builder.cc = "no-such-compiler".to_owned();
        let error = model::Advice::in_full(&builder.prepare().unwrap_err());
        assert!(
            error.contains("no-such-compiler") && error.contains("--with"),
            "{error}"
        );
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
