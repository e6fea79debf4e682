//! What the user calls a policy: a built-in name, an object file or a C source, with knobs behind a
//! colon.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, bail};
use bpf::Object;
use model::{Advised, Kernel, MachineSpec, PolicySpec, SetUp, SetUpTime};
use policies::Policy;

use crate::bundle::{self, Bound, Bundle};
use crate::embedded;
use crate::error::{UnsupportedError, UsageError};
use crate::kind::WordKind;
use crate::note::Topic;
use crate::services::{Compiled, Compiler, Services};
use crate::{input, kernel};
use model::suggest;

/// A policy, and the machine that it came with.
#[derive(Clone, Debug)]
pub struct FoundPolicy {
    /// The policy.
    pub policy: PolicySpec,
    /// A bundle's machine.
    pub machine: Option<MachineSpec>,
    /// The run that a bundle's recording is of.
    pub bound: Option<Bound>,
}

impl FoundPolicy {
    /// A policy that came with nothing.
    #[must_use]
    pub const fn of_policy(policy: PolicySpec) -> Self {
        Self {
            policy,
            machine: None,
            bound: None,
        }
    }
}

/// The machine of the first bundle among these.
pub(crate) fn bundled<'a>(
    found: impl IntoIterator<Item = &'a FoundPolicy>,
) -> Option<&'a MachineSpec> {
    found.into_iter().find_map(|it| it.machine.as_ref())
}

/// What a policy's loader would do before it attaches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preparation {
    /// Knobs and variables with their values.
    pub set: Vec<(String, String)>,
    /// Programs that run before it is attached, with their values.
    pub run: Vec<(String, String)>,
    /// The same right after it is attached.
    pub run_attached: Vec<(String, String)>,
    /// The table of callbacks to attach.
    pub ops: Option<String>,
}

impl Preparation {
    /// A scheduler's own program prepares its object by itself.
    ///
    /// # Errors
    /// If anything was asked for.
    pub fn refuse_for_programs(&self) -> Result<(), UsageError> {
        if *self == Self::default() {
            return Ok(());
        }
        let message = Advised::new(
            "--set, --run, --run-attached and --ops prepare an object",
            "the program of --scheduler does that by itself: use its own options",
        );
        Err(UsageError::new(message))
    }

    /// Adds to `policy` what was asked for.
    ///
    /// # Errors
    /// If it is a program, which prepares its object by itself, and anything was asked for.
    pub fn apply(&self, policy: &mut PolicySpec) -> Result<(), UsageError> {
        if policy.program.is_some() {
            return self.refuse_for_programs();
        }
        policy.set.extend(self.set.iter().cloned());
        for (list, when) in [
            (&self.run, SetUpTime::Loaded),
            (&self.run_attached, SetUpTime::Attached),
        ] {
            let programs = list.iter().map(|(program, args)| SetUp {
                program: program.clone(),
                args: args.clone(),
                when,
            });
            policy.setup.extend(programs);
        }
        if self.ops.is_some() {
            policy.table.clone_from(&self.ops);
        }
        Ok(())
    }
}

/// The policies of a list: words as they are, or with commas between them, as in
/// `fifo,mlfq:queues=5,up=2,o1`. What stands behind a comma and has an `=` is a knob of the policy
/// before it, if that has knobs.
pub fn list(services: &Services<'_>, words: &[String]) -> Vec<String> {
    let mut list: Vec<String> = Vec::new();
    for word in words {
        if services.is_file(Path::new(word)) {
            list.push(word.clone());
            continue;
        }
        let begin = list.len();
        for part in word.split(',').map(str::trim) {
            let is_knob = part.contains('=') && !part.contains(':');
            match list[begin..].last_mut() {
                Some(last) if is_knob && last.contains(':') => *last += &format!(",{part}"),
                _ => list.push(part.to_owned()),
            }
        }
    }
    list
}

/// Finds the policy that `argument` names, for example `fifo`, `mlfq:cumulative=1,nq=10` or
/// `build/mine.bpf.o:slice_ns=5000000`.
///
/// # Errors
/// When there is no such policy, the file cannot be read, a knob has no value, or there is a
/// program's recording and no object.
pub fn find(services: &Services<'_>, argument: &str) -> anyhow::Result<PolicySpec> {
    let policy = open(services, argument)?.policy;
    if policy.program.is_some() {
        let message = Advised::new(
            format!("{argument} has a recording of a scheduler's program and no object"),
            "`sim` and `trace` play it back",
        );
        return Err(UsageError::new(message).into());
    }
    Ok(policy)
}

/// Whether `argument` names a shipped policy, or is the path of a file as far as one sees.
#[must_use]
pub fn may_be(argument: &str) -> bool {
    let name = argument.split(':').next().unwrap_or_default();
    policies::find(name).is_some() || looks_like_a_path(name)
}

/// A shipped policy, with the knobs that it has.
#[must_use]
pub fn of_shipped(policy: &'static Policy) -> PolicySpec {
    let mut spec = plain(shared(policy)).policy;
    policy.name.clone_into(&mut spec.name);
    spec
}

/// Finds a policy with all that a bundle has; also recordings of programs.
///
/// # Errors
/// As [`find`], but for recordings.
pub fn open(services: &Services<'_>, argument: &str) -> anyhow::Result<FoundPolicy> {
    let (name, knobs) = split(services, argument);
    let found = match policies::find(name) {
        Some(policy) => plain(shared(policies::chosen(policy, knobs))),
        None if looks_like_a_path(name) => load(services, name)?,
        None => return Err(unknown(services, name)),
    };
    with_knobs(services, argument, found)
}

/// Finds the policy of a file that nobody has written: `argument` is what it would be called, with
/// knobs behind a colon.
///
/// # Errors
/// As [`open`].
pub fn of_bytes(
    services: &Services<'_>,
    argument: &str,
    file: Vec<u8>,
) -> anyhow::Result<FoundPolicy> {
    let (path, wanted) = place(services, split(services, argument).0);
    with_knobs(services, argument, of_file(services, path, file, wanted)?)
}

/// Compiles the policy of a C source that is in no file: `argument` is what it would be called.
///
/// # Errors
/// When there is no compiler, or the source does not compile.
pub fn of_source(
    services: &Services<'_>,
    argument: &str,
    text: &str,
) -> anyhow::Result<FoundPolicy> {
    let path = Path::new(argument);
    let compile = |it: &dyn Compiler| it.object_of_text(argument, text);
    let object = compiled(services, path, compile)?;
    of_bytes(services, argument, object)
}

/// The policy with its name, and with the knobs of `argument`.
fn with_knobs(
    services: &Services<'_>,
    argument: &str,
    mut found: FoundPolicy,
) -> anyhow::Result<FoundPolicy> {
    let (name, knobs) = split(services, argument);
    let knobs = knobs
        .split(',')
        .filter(|knob| !knob.is_empty())
        .map(setting);
    let knobs: Vec<_> = knobs.collect::<Result<_, _>>().map_err(UsageError::new)?;
    if found.policy.program.is_some() && !knobs.is_empty() {
        let message = format!("{name} is a recording of a program, in which nothing can be set");
        return Err(UsageError::new(message).into());
    }
    if found.policy.name.is_empty() {
        found.policy.name = label(services, argument);
    } else if !knobs.is_empty() {
        let (_, text) = split(services, argument);
        found.policy.name += &format!(":{text}");
    }
    found.policy.set.extend(knobs);
    Ok(found)
}

/// `argument` with the values that a kernel gets for knobs that it does not set: what is simulated
/// to stand beside a run on a kernel must have them, too.
///
/// # Errors
/// As [`find`], and when the object cannot be linked for `kernel`.
pub fn as_on_kernel(
    services: &Services<'_>,
    argument: &str,
    kernel: Kernel,
) -> anyhow::Result<String> {
    let policy = find(services, argument)?;
    let object = Object::parse(&policy.object).with_context(|| argument.to_owned())?;
    let image = kernel::link(&object, kernel).with_context(|| argument.to_owned())?;
    let is_set = |name: &str| policy.set.iter().any(|(known, _)| known == name);
    let knobs = image.knobs.iter().filter(|knob| !is_set(&knob.name));
    let values: Vec<String> = knobs
        .filter_map(|knob| Some(format!("{}={}", knob.name, knob.on_kernel?)))
        .collect();
    if values.is_empty() {
        return Ok(argument.to_owned());
    }
    let sign = if split(services, argument).1.is_empty() {
        ':'
    } else {
        ','
    };
    Ok(format!("{argument}{sign}{}", values.join(",")))
}

/// The file that `argument` names, if it names one, so that no result is written over it.
#[must_use]
pub fn file_of<'a>(services: &Services<'_>, argument: &'a str) -> Option<&'a Path> {
    let (name, _) = split(services, argument);
    let is_built_in = policies::find(name).is_some();
    (!is_built_in && looks_like_a_path(name)).then(|| Path::new(place(services, name).0))
}

/// The path and the table of `FILE@NAME`. A file whose own name has the sign is taken whole.
fn place<'a>(services: &Services<'_>, name: &'a str) -> (&'a str, Option<&'a str>) {
    match name.rsplit_once('@') {
        Some((path, wanted)) if services.kind(Path::new(name)).is_none() => (path, Some(wanted)),
        _ => (name, None),
    }
}

/// The object of a built-in policy, in memory once: a plan may have it many times.
fn shared(policy: &'static Policy) -> Arc<[u8]> {
    static OBJECTS: Mutex<BTreeMap<[&str; 2], Arc<[u8]>>> = Mutex::new(BTreeMap::new());
    let mut objects = OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
    // One that is compiled apart has the same name.
    let object = objects.entry([policy.name, policy.summary]);
    Arc::clone(object.or_insert_with(|| Arc::from(policy.object)))
}

/// A policy without a name of its own.
fn plain(object: Arc<[u8]>) -> FoundPolicy {
    FoundPolicy {
        policy: PolicySpec::of_object("", object),
        machine: None,
        bound: None,
    }
}

/// Reads an object, a bundle, or the object of a scheduler's binary. `FILE@NAME` names a table of
/// callbacks, and so the object that has it.
fn load(services: &Services<'_>, name: &str) -> anyhow::Result<FoundPolicy> {
    let (path, wanted) = place(services, name);
    if let Some(mistaken) = services.misplaced_file(Path::new(path), WordKind::Policy) {
        return Err(UsageError::new(mistaken).into());
    }
    let file = if is_source(Path::new(path)) {
        compiled(services, Path::new(path), |it| it.object(Path::new(path)))?
    } else {
        read(services, Path::new(path))?
    };
    of_file(services, path, file, wanted)
}

/// Whether `path` names a source: C files end so, and objects do not.
#[must_use]
pub fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "c")
}

fn compiled(
    services: &Services<'_>,
    path: &Path,
    compile: impl FnOnce(&dyn Compiler) -> anyhow::Result<Compiled>,
) -> anyhow::Result<Vec<u8>> {
    let Some(compiler) = services.compiler else {
        let message = Advised::new(
            format!("{}: sources cannot be compiled here", path.display()),
            "give the compiled object",
        );
        return Err(UnsupportedError::new(message).into());
    };
    let Compiled { object, notes } = compile(compiler)?;
    for note in notes {
        services.note(Topic::Run, note);
    }
    Ok(object)
}

/// Takes the policy out of a file that was read.
fn of_file(
    services: &Services<'_>,
    path: &str,
    file: Vec<u8>,
    wanted: Option<&str>,
) -> anyhow::Result<FoundPolicy> {
    if bundle::is_bundle(&file) {
        let bundle = Bundle::read(services, &file).with_context(|| path.to_owned())?;
        return Ok(FoundPolicy {
            policy: bundle.policy,
            machine: Some(bundle.machine),
            bound: bundle.bound,
        });
    }
    let mut found = plain(object_in(path, file, wanted)?);
    found.policy.table = wanted.map(str::to_owned);
    Ok(found)
}

/// The object that `file` is, or the one in it that is called `wanted`.
fn object_in(path: &str, file: Vec<u8>, wanted: Option<&str>) -> anyhow::Result<Arc<[u8]>> {
    if embedded::is_object(&file) {
        return Ok(Arc::from(file));
    }
    let objects = embedded::objects(&file);
    let is_alone = objects.is_empty();
    let native = is_alone
        .then(|| embedded::native(&file, Path::new(path)))
        .flatten();
    let named: Vec<_> = objects.iter().map(|object| tables(object)).collect();
    let names = || named.concat().join(", ");
    let chosen: Vec<_> = match wanted {
        Some(wanted) => {
            let all = objects.iter().zip(&named);
            all.filter(|(_, tables)| tables.iter().any(|table| table == wanted))
                .map(|(object, _)| object)
                .collect()
        }
        // Objects that are no policies, such as a probe of a kernel's features, are not meant.
        None => {
            let all = objects.iter().zip(&named);
            all.filter(|(_, tables)| !tables.is_empty())
                .map(|(object, _)| object)
                .collect()
        }
    };
    match (chosen[..].as_ref(), wanted) {
        ([object], _) => Ok(Arc::from(**object)),
        ([], _) if let Some(native) = &native => {
            let advice = if native.is_program {
                format!("`--scheduler '{path}'` simulates what a scheduler's program attaches")
            } else {
                "compile the policy for BPF, with `runslice build` or `clang -target bpf`".into()
            };
            let what = format!("{path} is {}, and no BPF object lies in it", native.words);
            Err(UsageError::new(Advised::new(what, advice)).into())
        }
        // Not an ELF file at all: the loader says what is wrong with it.
        ([], None) if objects.is_empty() => Ok(Arc::from(file)),
        ([], None) => bail!("{path}: none of the BPF objects in it is a scheduling policy"),
        ([], Some(wanted)) => Err(UsageError::new(Advised::new(
            format!("{path}: no object in it has a table `{wanted}`"),
            format!("there are: {}", names()),
        ))
        .into()),
        (_, _) => Err(UsageError::new(Advised::new(
            format!("{path}: it has several policies"),
            format!("choose one with {path}@NAME: {}", names()),
        ))
        .into()),
    }
}

/// Names of an object's tables of callbacks; none if it cannot be read.
fn tables(object: &[u8]) -> Vec<String> {
    Object::parse(object).map_or_else(|_| Vec::new(), |object| object.tables())
}

/// Reads `NAME=VALUE`.
///
/// # Errors
/// When there is no `=` or no name.
pub fn setting(text: &str) -> Result<(String, String), Advised> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(Advised::new(
            format!("`{text}` sets nothing"),
            "write NAME=VALUE",
        )),
    }
}

/// Reads `PROGRAM` or `PROGRAM:VALUES`.
///
/// # Errors
/// When there is no program.
pub fn setup(text: &str) -> Result<(String, String), Advised> {
    let (program, values) = text.split_once(':').unwrap_or((text, ""));
    if program.is_empty() {
        return Err(Advised::new(
            format!("`{text}` names no program"),
            "write PROGRAM:VALUES",
        ));
    }
    Ok((program.to_owned(), values.to_owned()))
}

/// The name or path, and the knobs. A file whose own name has a colon is taken whole.
fn split<'a>(services: &Services<'_>, argument: &'a str) -> (&'a str, &'a str) {
    if services.is_file(Path::new(argument)) {
        return (argument, "");
    }
    argument.split_once(':').unwrap_or((argument, ""))
}

fn looks_like_a_path(name: &str) -> bool {
    let file = name.split_once('@').map_or(name, |(file, _)| file);
    let ending = Path::new(file).extension();
    let is_file = |ending: &std::ffi::OsStr| ["o", "bundle", "c"].iter().any(|it| ending == *it);
    name.contains('/') || ending.is_some_and(is_file)
}

/// What tables call it: the argument without folders and without the ending of an object.
#[must_use]
pub fn label(services: &Services<'_>, argument: &str) -> String {
    let (name, knobs) = split(services, argument);
    let file = Path::new(name)
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    let endings = [".bpf.o", ".o", ".bpf.c", ".c"];
    let short = endings.iter().find_map(|it| file.strip_suffix(it));
    let short = short.unwrap_or(&file);
    match knobs {
        "" => short.to_owned(),
        knobs => format!("{short}:{knobs}"),
    }
}

/// Reads an object file.
///
/// # Errors
/// When it cannot be read; the message names it.
pub fn read(services: &Services<'_>, path: &Path) -> anyhow::Result<Vec<u8>> {
    input::bytes(services, path, input::OBJECT)
}

fn unknown(services: &Services<'_>, name: &str) -> anyhow::Error {
    if let Some(mistaken) = services.misplaced(name, WordKind::Policy) {
        return UsageError::new(mistaken).into();
    }
    let hint = suggest::hint(name, policies::names());
    UsageError::new(Advised::new(
        format!("no policy is called `{name}`"),
        format!("{hint}; or give the path of a .bpf.c or .bpf.o file"),
    ))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::tests::FILES;

    #[test]
    fn knobs_stand_behind_a_colon() {
        assert_eq!(
            split(&FILES, "mlfq:cumulative=1,nq=10"),
            ("mlfq", "cumulative=1,nq=10")
        );
        let policy = find(&FILES, "mlfq:cumulative=1,nq=10").unwrap();
        let want = [("cumulative", "1"), ("nq", "10")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(policy.set, want);
        assert_eq!(policy.name, "mlfq:cumulative=1,nq=10");
    }

    #[test]
    fn a_built_in_object_is_in_memory_once() {
        let [one, other] = ["mlfq:nq=10", "mlfq"].map(|it| find(&FILES, it).unwrap().object);
        assert!(Arc::ptr_eq(&one, &other));
    }

    #[test]
    fn a_policy_with_domains_is_another_object_of_the_same_name() {
        let [with, without] = ["o1:version=10,domains=1", "o1:version=10"]
            .map(|argument| find(&FILES, argument).unwrap());
        assert_ne!(with.object, without.object);
        assert_eq!(with.name, "o1:version=10,domains=1");
        let set = with.set.last().cloned();
        assert_eq!(set, Some(("domains".to_owned(), "1".to_owned())));
    }

    #[test]
    fn lists_have_spaces_or_commas_and_knobs_stay_with_their_policy() {
        let list = |words: &[&str]| {
            list(
                &FILES,
                &words.iter().map(|&it| it.into()).collect::<Vec<_>>(),
            )
        };
        assert_eq!(list(&["fifo", "mlfq"]), list(&["fifo,mlfq"]));
        assert_eq!(
            list(&["fifo, mlfq:queues=5,up=2,o1", "eevdf"]),
            ["fifo", "mlfq:queues=5,up=2", "o1", "eevdf"]
        );
        assert_eq!(list(&["mlfq:up=2,", "a=1"]), ["mlfq:up=2", "", "a=1"]);
    }

    #[test]
    fn a_table_calls_a_file_by_its_stem() {
        assert_eq!(
            label(&FILES, "out/mine.bpf.c:slice_ns=5"),
            "mine:slice_ns=5"
        );
        assert_eq!(
            label(&FILES, "out/mine.bpf.o:slice_ns=5"),
            "mine:slice_ns=5"
        );
        assert_eq!(label(&FILES, "fifo"), "fifo");
    }

    #[test]
    fn what_prepares_an_object_is_refused_for_a_program() {
        let mut policy = find(&FILES, "fifo").unwrap();
        let asked = Preparation {
            set: vec![("slice_ns".to_owned(), "1".to_owned())],
            ..Preparation::default()
        };
        asked.apply(&mut policy).unwrap();
        assert_eq!(policy.set, asked.set);
        policy.program = Some(model::Program::default());
        assert!(asked.apply(&mut policy).is_err());
        Preparation::default().apply(&mut policy).unwrap();
        assert_eq!(policy.set, asked.set);
    }

    #[test]
    fn an_unknown_policy_is_a_usage_error_with_a_suggestion() {
        let error = find(&FILES, "fifi").unwrap_err();
        assert!(error.is::<UsageError>());
        assert!(
            crate::error::in_full(&error).contains("did you mean `fifo`?"),
            "{error}"
        );
    }

    #[test]
    fn a_file_that_is_not_there_is_a_failure_and_is_named() {
        let error = find(&FILES, "no/such.bpf.o").unwrap_err();
        assert!(!error.is::<UsageError>());
        assert!(error.to_string().contains("no/such.bpf.o"), "{error}");
    }

    #[test]
    fn a_knob_without_a_value_is_a_usage_error() {
        assert!(
            find(&FILES, "fifo:slice_ns")
                .unwrap_err()
                .is::<UsageError>()
        );
    }

    /// A file of these bytes, gone at the end of the test.
    struct Scratch(std::path::PathBuf);

    impl Scratch {
        fn new(name: &str, bytes: &[u8]) -> Self {
            let unique = format!("runslice-test-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(unique);
            std::fs::write(&path, bytes).unwrap();
            Self(path)
        }

        fn name(&self) -> &str {
            self.0.to_str().unwrap()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn shipped(name: &str) -> &'static [u8] {
        policies::find(name).unwrap().object
    }

    #[test]
    fn a_binary_gives_its_object_and_one_with_several_asks_which() {
        let (fifo, mlfq) = (shipped("fifo"), shipped("mlfq"));
        let one = Scratch::new("one", &[&[0x7f; 99], fifo, b"rest"].concat());
        let found = find(&FILES, one.name()).unwrap();
        assert_eq!(*found.object, *fifo);
        assert_eq!(found.table, None);
        let two = Scratch::new("two", &[b"head", fifo, mlfq].concat());
        let error = crate::error::in_full(&find(&FILES, two.name()).unwrap_err());
        assert!(error.ends_with("@NAME: fifo_ops, mlfq_ops"), "{error}");
        let named = find(&FILES, &format!("{}@mlfq_ops:nq=3", two.name())).unwrap();
        assert_eq!(*named.object, *mlfq);
        assert_eq!(named.table.as_deref(), Some("mlfq_ops"));
        assert_eq!(named.set, [("nq".to_owned(), "3".to_owned())]);
        let error = find(&FILES, &format!("{}@none", two.name())).unwrap_err();
        assert!(crate::error::in_full(&error).ends_with("there are: fifo_ops, mlfq_ops"));
    }

    #[test]
    fn a_bundle_brings_its_name_its_settings_and_its_machine() {
        let machine = MachineSpec {
            cpus: 12,
            ..MachineSpec::default()
        };
        let mut policy = find(&FILES, "mlfq:nq=10").unwrap();
        policy.name = "mine".to_owned();
        let bundle = Bundle {
            policy,
            machine,
            bound: None,
        };
        let file = Scratch::new("mine.bundle", &bundle.write());
        let found = open(&FILES, &format!("{}:nq=5", file.name())).unwrap();
        assert_eq!(found.machine, Some(bundle.machine));
        assert_eq!(found.policy.name, "mine:nq=5");
        let values: Vec<_> = found.policy.set.iter().map(|(_, value)| value).collect();
        assert_eq!(values, ["10", "5"], "the later one counts");
        assert_eq!(found.policy.object, bundle.policy.object);
    }
}
