//! Completion of a command line in a shell: besides verbs and options the names of policies, their
//! knobs, and workloads. The shell runs this program for it, with `COMPLETE` in the environment.

use std::ffi::OsStr;

use bpf::Object;
use clap::{Command, CommandFactory as _};
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use model::Kernel;

use crate::cli::Cli;
use crate::help::arranged;
use crate::{kernel, source, workload_arg};

/// The command line, with what may stand where a policy or a workload is asked for.
pub fn command() -> Command {
    known(arranged(Cli::command()))
}

fn known(command: Command) -> Command {
    let command = command.mut_args(|arg| match arg.get_id().as_str() {
        "policy" | "policies" | "object" => arg.add(ArgValueCompleter::new(policies)),
        "workload" => arg.add(ArgValueCompleter::new(workloads)),
        "name" => arg.add(ArgValueCompleter::new(built_in)),
        _ => arg,
    });
    command.mut_subcommands(known)
}

/// Built-in policies, and files that may be one; behind a colon the knobs of a built-in one.
fn policies(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(text) = current.to_str() else {
        return Vec::new();
    };
    if let Some((name, knobs)) = text.split_once(':') {
        return of_policy(name, knobs);
    }
    let mut found = names(text, named_policies());
    let may_be = |path: &std::path::Path| {
        source::is_source(path)
            || path
                .extension()
                .is_some_and(|it| it == "o" || it == "bundle")
    };
    found.extend(PathCompleter::any().filter(may_be).complete(current));
    found
}

/// The knobs of the policy `name`; those before the last comma of `text` stay.
fn of_policy(name: &str, text: &str) -> Vec<CompletionCandidate> {
    let policy = policies::find(name).and_then(|policy| Object::parse(policy.object).ok());
    let image = policy.and_then(|object| kernel::link(&object, Kernel::default()).ok());
    let (before, begun) = text.rsplit_once(',').map_or(("", text), |(before, begun)| {
        (&text[..=before.len()], begun)
    });
    let knobs = image.into_iter().flat_map(|image| image.knobs);
    knobs
        .filter(|knob| knob.name.starts_with(begun))
        .map(|knob| {
            let help = format!("{} ({} to {} {})", knob.doc, knob.min, knob.max, knob.unit);
            CompletionCandidate::new(format!("{name}:{before}{}=", knob.name))
                .help(Some(help.into()))
        })
        .collect()
}

fn workloads(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(text) = current.to_str() else {
        return Vec::new();
    };
    let mut found = names(text, shipped());
    let may_be = |path: &std::path::Path| {
        path.extension()
            .is_some_and(|it| it == "toml" || it == "json")
    };
    found.extend(PathCompleter::any().filter(may_be).complete(current));
    found
}

/// Names of policies and workloads alike.
fn built_in(current: &OsStr) -> Vec<CompletionCandidate> {
    let text = current.to_str().unwrap_or_default();
    names(text, named_policies().chain(shipped()))
}

fn named_policies() -> impl Iterator<Item = (&'static str, String)> {
    let aliases = policies::ALIASES.iter();
    let aliases = aliases.map(|(alias, of)| (*alias, format!("another name of {of}")));
    let policies = policies::ALL.iter();
    let policies = policies.map(|it| (it.name, it.summary.to_owned()));
    policies.chain(aliases)
}

fn shipped() -> impl Iterator<Item = (&'static str, String)> {
    workload_arg::SHIPPED
        .iter()
        .map(|it| (it.name, it.summary()))
}

fn names<'a>(
    begun: &str,
    all: impl Iterator<Item = (&'a str, String)>,
) -> Vec<CompletionCandidate> {
    let fitting = all.filter(|(name, _)| name.starts_with(begun));
    fitting
        .map(|(name, help)| CompletionCandidate::new(name).help(Some(help.into())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What follows the words, of which the last is begun.
    fn completed(words: &[&str]) -> Vec<String> {
        let words: Vec<_> = ["runslice"].iter().chain(words).map(Into::into).collect();
        let at = words.len() - 1;
        let found = clap_complete::engine::complete(&mut command(), words, at, None).unwrap();
        let values = found
            .iter()
            .map(|it| it.get_value().to_string_lossy().into_owned());
        values.collect()
    }

    #[test]
    fn policies_their_knobs_and_workloads_are_known_wherever_they_may_stand() {
        for words in [["sim", "stairc"], ["explain", "stairc"], ["list", "stairc"]] {
            assert_eq!(completed(&words), ["staircase", "staircase5"], "{words:?}");
        }
        assert_eq!(completed(&["sim", "fifo", "-w", "hack"]), ["hackbench"]);
        assert_eq!(completed(&["sim", "mlfq:cum"]), ["mlfq:cumulative="]);
        let second = completed(&["sim", "mlfq:up=2,cum"]);
        assert_eq!(second, ["mlfq:up=2,cumulative="]);
        assert!(completed(&["sim", "nothing:x"]).is_empty());
        assert_eq!(completed(&["sim", "fifo", "--cpu"]), ["--cpus"]);
    }
}
