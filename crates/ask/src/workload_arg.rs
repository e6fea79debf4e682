//! What the user calls a workload: a file, or the name of one that is built in.

use std::path::Path;

use anyhow::Context as _;
use model::{Advised, CAPACITY_ONE, Hardware, MachineSpec, Nanos, span};
use serde::{Deserialize, Serialize};
use workload::{MachineFiles, RecordedCosts, Workload, rtapp};

use crate::error::UsageError;
use crate::kind::WordKind;
use crate::note::Topic;
use crate::order_loads::ORDER_LOADS;
use crate::recording::Wanted;
use crate::services::Services;
use crate::{input, machine_file, recording};
use model::suggest;

/// A workload file of the project.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// Its name on the command line: the file without `.toml`.
    pub name: &'static str,
    /// What the file says.
    pub text: &'static str,
}

impl Shipped {
    /// What the file says about itself: its first comment lines, up to an empty one.
    pub fn summary(&self) -> String {
        let comment = self.text.lines().map_while(|line| line.strip_prefix('#'));
        let words = comment.map(str::trim).take_while(|line| !line.is_empty());
        words.collect::<Vec<_>>().join(" ")
    }
}

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(Shipped {
            name: $name,
            text: include_str!(concat!("../workloads/", $name, ".toml")),
        }),*]
    };
}

/// Every file of workloads/.
pub static SHIPPED: &[Shipped] =
    shipped!["chat", "desk", "hackbench", "make", "oltp", "screen", "web"];

/// The file that `argument` names, if it names one, so that no result is written over it.
#[must_use]
pub fn file_of(argument: &str) -> Option<&Path> {
    let is_file = built_in(argument).is_none();
    is_file.then(|| Path::new(argument))
}

/// The workload of this name, listed or not.
fn built_in(name: &str) -> Option<Shipped> {
    let orders = ORDER_LOADS
        .iter()
        .map(|&(name, text)| Shipped { name, text });
    let mut all = SHIPPED.iter().copied().chain(orders);
    all.find(|shipped| shipped.name == name)
}

/// A workload as somebody wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// The file, for messages; its name is the workload's.
    pub file: String,
    /// What it says.
    pub text: String,
}

/// Reads the workload that `argument` names, with its parameters `scale` set anew. A recording
/// is rerun, as with `--from`, on a machine that charges for nothing.
///
/// # Errors
/// When there is no such workload, or it is wrong; the message names file, line and column.
pub fn find(
    services: &Services<'_>,
    argument: &str,
    scale: &[(String, i64)],
) -> anyhow::Result<Workload> {
    let nothing = || Ok(Some(RecordedCosts::default()));
    find_charged(services, argument, scale, nothing)
}

/// The same on a machine that charges `costs`, which are asked for only if it is a recording.
///
/// # Errors
/// As [`find`], or if `costs` are not known.
pub(crate) fn find_charged(
    services: &Services<'_>,
    argument: &str,
    scale: &[(String, i64)],
    costs: impl FnOnce() -> anyhow::Result<Option<RecordedCosts>>,
) -> anyhow::Result<Workload> {
    if built_in(argument).is_none() && recording::is_recording(services, Path::new(argument)) {
        if !scale.is_empty() {
            let message = format!("{argument} is a recording, which has no parameters to --scale");
            return Err(UsageError::new(message).into());
        }
        let wanted = Wanted {
            costs: costs()?,
            ..Wanted::default()
        };
        return recording::load(services, Path::new(argument), wanted);
    }
    let written = Written::find(services, argument)?;
    let folder = Path::new(argument).parent().unwrap_or(Path::new(""));
    written.parse_beside(services, scale, folder)
}

/// Whether a workload's file is one of those that are built in.
#[must_use]
pub fn is_shipped(file: &str) -> bool {
    let name = file
        .strip_prefix("workloads/")
        .and_then(|it| it.strip_suffix(".toml"));
    name.is_some_and(|name| built_in(name).is_some())
}

impl Written {
    /// Finds the workload that `argument` names.
    ///
    /// # Errors
    /// When there is no such workload.
    pub fn find(services: &Services<'_>, argument: &str) -> anyhow::Result<Self> {
        if let Some(shipped) = built_in(argument) {
            return Ok(Self {
                file: format!("workloads/{argument}.toml"),
                text: shipped.text.to_owned(),
            });
        }
        let path = Path::new(argument);
        // No workload that is built in has a dot in its name.
        let is_path = argument.contains('/') || path.extension().is_some();
        let is_path = is_path || argument == input::STANDARD;
        if !is_path && !services.is_file(path) {
            if let Some(mistaken) = services.misplaced(argument, WordKind::Workload) {
                return Err(UsageError::new(mistaken).into());
            }
            let hint = suggest::hint(argument, SHIPPED.iter().map(|shipped| shipped.name));
            let message = Advised::new(
                format!("no workload is called `{argument}`"),
                format!("{hint}; or give a .toml file"),
            );
            return Err(UsageError::new(message).into());
        }
        if let Some(mistaken) = services.misplaced_file(path, WordKind::Workload) {
            return Err(UsageError::new(mistaken).into());
        }
        Ok(Self {
            file: input::shown(path),
            text: input::text(services, path, input::WRITTEN)?,
        })
    }

    /// Whether it is a configuration of rt-app, which is no text of our own.
    #[must_use]
    pub fn is_import(&self) -> bool {
        match Path::new(&self.file).extension() {
            Some(ending) => ending == "json",
            // A pipe has no ending.
            None => self.text.trim_start().starts_with('{'),
        }
    }

    /// Reads it. Files of a profile and of hardware lie where it says, seen from `folder`.
    ///
    /// # Errors
    /// When it or such a file is wrong; the message names file, line and column.
    pub fn parse_beside(
        &self,
        services: &Services<'_>,
        scale: &[(String, i64)],
        folder: &Path,
    ) -> anyhow::Result<Workload> {
        let files = MachineFiles {
            profile: &|name| machine_file::find_in(services, folder, name),
            hardware: &|name| machine_file::find_in(services, folder, name),
        };
        self.parse(services, scale, files)
    }

    /// Reads it to be run on `machine`, whatever files it names.
    ///
    /// # Errors
    /// When it is wrong; the message names file, line and column.
    pub fn parse_for(
        &self,
        services: &Services<'_>,
        scale: &[(String, i64)],
        machine: &MachineSpec,
    ) -> anyhow::Result<Workload> {
        let alike = || Hardware::of_capacities(&vec![CAPACITY_ONE; machine.cpus.into()]);
        let files = MachineFiles {
            profile: &|_| Ok(machine.profile.clone()),
            hardware: &|_| Ok(machine.hardware.as_deref().cloned().unwrap_or_else(alike)),
        };
        self.parse(services, scale, files)
    }

    fn parse(
        &self,
        services: &Services<'_>,
        scale: &[(String, i64)],
        files: MachineFiles<'_>,
    ) -> anyhow::Result<Workload> {
        let Self { file, text } = self;
        if self.is_import() {
            return import(services, self, scale);
        }
        Ok(Workload::parse_in(text, file, scale, files)?)
    }
}

/// Reads a configuration of rt-app and says what of it is lost.
fn import(
    services: &Services<'_>,
    Written { file, text }: &Written,
    scale: &[(String, i64)],
) -> anyhow::Result<Workload> {
    let imported = rtapp::import(text, file)?;
    for lost in &imported.lost {
        services.note(Topic::Run, format!("{file}: lost: {lost}"));
    }
    let what = || format!("{file}, imported as\n{}", imported.toml);
    Workload::parse_with(&imported.toml, file, scale).with_context(what)
}

/// Reads by how much later tasks may begin.
///
/// # Errors
/// When it is no span, or longer than whatever a workload draws.
pub fn parse_jitter(text: &str) -> Result<Nanos, String> {
    let most = span::parse(text)?;
    if most > workload::DRAW_MAX {
        Err(format!("it is at most {}", workload::DRAW_MAX))
    } else {
        Ok(most)
    }
}

/// Reads how long a run lasts at most.
///
/// # Errors
/// When it is no span, or none at all: in no time nothing happens.
pub fn parse_duration(text: &str) -> Result<Nanos, String> {
    let duration = span::parse(text)?;
    if duration.is_zero() {
        Err("in no time nothing happens: give a longer one, such as 10s".to_owned())
    } else {
        Ok(duration)
    }
}

/// Reads `NAME=NUMBER`.
///
/// # Errors
/// When there is no `=`, no name, or no whole number.
pub fn parse_scale(text: &str) -> Result<(String, i64), Advised> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) =
        parts.ok_or_else(|| Advised::new(format!("`{text}` sets nothing"), "write NAME=VALUE"))?;
    match value.parse() {
        Ok(value) => Ok((name.to_owned(), value)),
        Err(_) => Err(format!("`{value}` is no whole number").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::tests::FILES;

    #[test]
    fn loads_for_orders_are_found_by_name_and_are_small() {
        for (name, _) in ORDER_LOADS {
            let workload = find(&FILES, name, &[]).expect("a load");
            assert_eq!(workload.name, *name);
            assert!(workload.machine.cpus <= 3, "{name}");
            assert!(file_of(name).is_none(), "{name}");
            assert!(
                !built_in(name).expect("a load").summary().is_empty(),
                "{name}"
            );
        }
    }

    #[test]
    fn a_run_that_lasts_no_time_is_refused() {
        assert_eq!(parse_duration("1ns"), Ok(Nanos::new(1)));
        assert!(parse_duration("0s").unwrap_err().contains("such as 10s"));
        assert_eq!(parse_duration("10"), span::parse("10"));
    }

    #[test]
    fn every_file_of_the_folder_is_built_in() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
        let entries = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let toml = entries.filter(|path| path.extension().is_some_and(|it| it == "toml"));
        let mut names: Vec<String> = toml
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        names.sort();
        let mut shipped: Vec<&str> = SHIPPED.iter().map(|shipped| shipped.name).collect();
        shipped.sort_unstable();
        assert_eq!(names, shipped);
    }

    #[test]
    fn every_shipped_workload_is_right_and_says_what_it_is() {
        for shipped in SHIPPED {
            find(&FILES, shipped.name, &[]).unwrap();
            assert!(shipped.summary().split(' ').count() > 3, "{}", shipped.name);
        }
    }

    #[test]
    fn a_json_file_is_read_as_rt_app_does() {
        let text = "{ \"tasks\": { \"t\": { \"run\": 1000 } } }";
        let import = |file: &str, text: &str| {
            let (file, text) = (file.to_owned(), text.to_owned());
            import(&FILES, &Written { file, text }, &[])
        };
        let workload = import("some/case.json", text).unwrap();
        assert_eq!((workload.name.as_str(), workload.groups.len()), ("case", 1));
        let missing = find(&FILES, "no/such.json", &[]).unwrap_err();
        assert!(
            missing.to_string().starts_with("cannot read no/such.json"),
            "{missing}"
        );
        let wrong = import("case.json", "{ \"tasks\": 3 }").unwrap_err();
        assert!(
            wrong.to_string().starts_with("case.json:1:12: found 3"),
            "{wrong}"
        );
    }

    #[test]
    fn an_unknown_workload_is_a_usage_error_with_a_suggestion() {
        let error = find(&FILES, "dsk", &[]).unwrap_err();
        assert!(error.is::<UsageError>());
        assert!(
            crate::error::in_full(&error).contains("did you mean `desk`?"),
            "{error}"
        );
    }

    #[test]
    fn a_parameter_is_a_whole_number() {
        assert_eq!(parse_scale("hogs=8"), Ok(("hogs".to_owned(), 8)));
        assert!(parse_scale("hogs=1.5").unwrap_err().what.contains("1.5"));
        assert!(parse_scale("hogs").is_err());
    }
}
