//! What the user calls a policy: a built-in name or an object file, with knobs behind a colon.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use model::PolicySpec;

use crate::cli::UsageError;
use crate::suggest;

/// Finds the policy that `argument` names, for example `fifo`, `mlfq:cumulative=1,nq=10` or
/// `build/mine.bpf.o:slice_ns=5000000`.
///
/// # Errors
/// When there is no such policy, the file cannot be read, or a knob has no value.
pub fn find(argument: &str) -> anyhow::Result<PolicySpec> {
    let (name, knobs) = split(argument);
    let object = match policies::ALL.iter().find(|policy| policy.name == name) {
        Some(policy) => Arc::from(policy.object),
        None if looks_like_a_path(name) => read(Path::new(name))?,
        None => return Err(unknown(name)),
    };
    let set = knobs
        .split(',')
        .filter(|knob| !knob.is_empty())
        .map(setting);
    Ok(PolicySpec {
        name: label(argument),
        object,
        table: None,
        set: set.collect::<Result<_, _>>().map_err(UsageError)?,
    })
}

/// Reads `NAME=VALUE`.
///
/// # Errors
/// When there is no `=` or no name.
pub fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` sets nothing; write NAME=VALUE")),
    }
}

/// The name or path, and the knobs. A file whose own name has a colon is taken whole.
fn split(argument: &str) -> (&str, &str) {
    if Path::new(argument).is_file() {
        return (argument, "");
    }
    argument.split_once(':').unwrap_or((argument, ""))
}

fn looks_like_a_path(name: &str) -> bool {
    name.contains('/')
        || Path::new(name)
            .extension()
            .is_some_and(|extension| extension == "o")
}

/// What tables call it: the argument without folders and without the ending of an object.
pub fn label(argument: &str) -> String {
    let (name, knobs) = split(argument);
    let file = Path::new(name)
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    let short = file
        .strip_suffix(".bpf.o")
        .or(file.strip_suffix(".o"))
        .unwrap_or(&file);
    match knobs {
        "" => short.to_owned(),
        knobs => format!("{short}:{knobs}"),
    }
}

/// Reads an object file.
///
/// # Errors
/// When it cannot be read; the message names it.
pub fn read(path: &Path) -> anyhow::Result<Arc<[u8]>> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Arc::from(bytes))
}

fn unknown(name: &str) -> anyhow::Error {
    let known = policies::ALL.iter().map(|policy| policy.name);
    let hint = suggest::hint(name, known);
    UsageError(format!(
        "no policy is called `{name}`: {hint}; or give the path of a .bpf.o file"
    ))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knobs_stand_behind_a_colon() {
        assert_eq!(
            split("mlfq:cumulative=1,nq=10"),
            ("mlfq", "cumulative=1,nq=10")
        );
        let policy = find("mlfq:cumulative=1,nq=10").unwrap();
        let want = [("cumulative", "1"), ("nq", "10")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(policy.set, want);
        assert_eq!(policy.name, "mlfq:cumulative=1,nq=10");
    }

    #[test]
    fn a_table_calls_a_file_by_its_stem() {
        assert_eq!(label("out/mine.bpf.o:slice_ns=5"), "mine:slice_ns=5");
        assert_eq!(label("fifo"), "fifo");
    }

    #[test]
    fn an_unknown_policy_is_a_usage_error_with_a_suggestion() {
        let error = find("fifi").unwrap_err();
        assert!(error.is::<UsageError>());
        assert!(
            error.to_string().contains("did you mean `fifo`?"),
            "{error}"
        );
    }

    #[test]
    fn a_file_that_is_not_there_is_a_failure_and_is_named() {
        let error = find("no/such.bpf.o").unwrap_err();
        assert!(!error.is::<UsageError>());
        assert!(error.to_string().contains("no/such.bpf.o"), "{error}");
    }

    #[test]
    fn a_knob_without_a_value_is_a_usage_error() {
        assert!(find("fifo:slice_ns").unwrap_err().is::<UsageError>());
    }
}
