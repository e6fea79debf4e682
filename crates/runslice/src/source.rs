//! Policies as C sources: compiled where a policy is asked for, with the headers that this program
//! carries.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::Context as _;
use ask::services::{Compiled, Compiler};
pub use bpf_build::Readable;
use bpf_build::{Built, Error};
use folder::OwnFolder;
use model::{Advice as _, Advised};

use crate::exit::{self, BadSource, UnsupportedError};
use crate::{files, input, output};

pub use ask::policy::is_source;

/// A compiler that compiles each file once in its life. It may read what lies beside the file.
///
/// Whoever goes on while its user changes a source takes a new one for each question.
#[derive(Debug, Default)]
pub struct Sources {
    done: Mutex<BTreeMap<PathBuf, Vec<u8>>>,
}

impl Sources {
    /// Nothing is compiled yet.
    #[must_use]
    pub const fn new() -> Self {
        let done = Mutex::new(BTreeMap::new());
        Self { done }
    }
}

impl Compiler for Sources {
    fn object(&self, path: &Path) -> anyhow::Result<Compiled> {
        let path = files::real(path);
        let mut done = self.done.lock().expect("whoever held it did not panic");
        if let Some(object) = done.get(&*path) {
            return Ok(Compiled {
                object: object.clone(),
                notes: Vec::new(),
            });
        }
        let (built, notes) = compile(&path, &Readable::own_folder())?;
        let object = built.object;
        done.insert(path.into_owned(), object.clone());
        Ok(Compiled { object, notes })
    }

    fn object_of_text(&self, name: &str, text: &str) -> anyhow::Result<Compiled> {
        object_of_text(name, text)
    }
}

/// The object of the policy with this text, whose file would be called `name`.
///
/// # Errors
/// The errors of [`compile`].
fn object_of_text(name: &str, text: &str) -> anyhow::Result<Compiled> {
    let folder = OwnFolder::new().context("no folder for the source")?;
    let path = folder.path().join(name);
    fs::write(&path, text).map_err(model::CannotWrite::at(path.display()))?;
    // There is nothing else in the folder.
    let compiled = compile(&path, &Readable::own_folder());
    let (built, notes) = compiled.map_err(|error| {
        // The folder is gone when somebody reads the message.
        let own = format!("{}/", folder.path().display());
        let mut told = exit::advised(&error);
        told.what = told.what.replace(&own, "");
        // Its kind says whether the source is to blame.
        if error.is::<BadSource>() {
            BadSource::new(told).into()
        } else if error.is::<UnsupportedError>() {
            UnsupportedError::new(told).into()
        } else {
            anyhow::anyhow!(told)
        }
    })?;
    Ok(Compiled {
        object: built.object,
        notes,
    })
}

/// Compiles `path`, which can read what `may` says and the headers of this program; beside the
/// object stands what its author should know.
///
/// # Errors
/// [`BadSource`] when the file cannot be read, does not compile, or asks for a file that it may
/// not read; [`UnsupportedError`] when there is no suitable clang, or the kernel cannot hold it to
/// what a source may read that may read nothing.
pub fn compile(path: &Path, may: &Readable) -> anyhow::Result<(Built, Vec<String>)> {
    let name = path.file_name().unwrap_or_default();
    if name.to_str().is_none() {
        return compile_renamed(path, &name.to_string_lossy(), may);
    }
    let scratch = OwnFolder::new().context("no folder for the compiler")?;
    let headers = scratch.path().join("include");
    write_headers(&headers)?;
    let built = bpf_build::compile_others(path, may, &headers, scratch.path())
        .map_err(|error| kind(&error, in_words(&error, scratch.path())))?;
    let mut notes = Vec::new();
    if !built.is_walled {
        notes.push(unwalled(path));
    }
    if !built.warnings.is_empty() {
        let warnings = hidden(&built.warnings, scratch.path());
        notes.push(warnings.trim_end().to_owned());
    }
    Ok((built, notes))
}

/// As [`compile`]; the object names its source, and names in objects are text.
fn compile_renamed(
    path: &Path,
    name: &str,
    may: &Readable,
) -> anyhow::Result<(Built, Vec<String>)> {
    let folder = OwnFolder::new().context("no folder for the source")?;
    let copy = folder.join(&name.replace(char::REPLACEMENT_CHARACTER, "-"));
    let text = input::bytes(&files::FILES, path, input::WRITTEN)?;
    fs::write(&copy, text).map_err(model::CannotWrite::at(copy.display()))?;
    let parent = path.parent().filter(|it| !it.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    if *may == Readable::source_alone() {
        return compile(&copy, may);
    }
    compile(&copy, &may.clone().with(parent))
}

fn unwalled(path: &Path) -> String {
    format!(
        "{}: this kernel lacks Landlock or seccomp, so that assembly and links in the source \
         can reach any file of yours; compile only what you trust",
        path.display()
    )
}

/// The error that decides the exit status, and whom it concerns.
fn kind(error: &Error, words: Advised) -> anyhow::Error {
    match error {
        Error::ClangNotFound
        | Error::ClangUnusable { .. }
        | Error::ClangTooOld { .. }
        | Error::Wrapper { .. }
        | Error::File { .. } => anyhow::anyhow!(words),
        Error::NoWalls { .. } => UnsupportedError::new(words).into(),
        _ => BadSource::new(words).into(),
    }
}

/// Writes the headers into `folder`, which is made.
///
/// # Errors
/// When a file is there already, or cannot be written; the message names it.
pub fn write_headers(folder: &Path) -> anyhow::Result<()> {
    for header in policies::HEADERS {
        let path = folder.join(header.path);
        output::make_folder(path.parent().unwrap_or(folder))?;
        output::write_new(&path, header.text.as_bytes(), "name an empty folder")?;
    }
    Ok(())
}

fn in_words(error: &Error, scratch: &Path) -> Advised {
    let text = hidden(&error.to_string(), scratch);
    match error {
        Error::Compile { .. } => {}
        Error::Outside { .. } => {
            return Advised::new(text, "`build -I FOLDER` lets a source read another folder");
        }
        _ => {
            let advice = error.advice();
            return Advised { what: text, advice };
        }
    }
    let advice = if text.contains("file not found") {
        "`build -I FOLDER` adds a folder of headers; `build --headers FOLDER` writes those inside \
         of runslice"
    } else {
        "correct what the compiler names"
    };
    Advised::new(text.trim_end(), advice)
}

/// Names the headers as the object does: their folder is gone when somebody reads the message.
fn hidden(text: &str, scratch: &Path) -> String {
    let headers = scratch.join("include");
    let mut text = text.to_owned();
    let whole = headers.canonicalize().unwrap_or_else(|_| headers.clone());
    for folder in [whole, headers] {
        text = text.replace(&*folder.to_string_lossy(), "runslice");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIMPLE: &str = "#include <scx/common.bpf.h>\n\
        char _license[] SEC(\"license\") = \"GPL\";\n\
        void BPF_STRUCT_OPS(mine_enqueue, struct task_struct *p, u64 enq_flags)\n\
        {\n\tscx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);\n}\n\
        SCX_OPS_DEFINE(mine_ops, .enqueue = (void *)mine_enqueue, .name = \"mine\");\n";

    fn source(folder: &OwnFolder, text: &str) -> PathBuf {
        let path = folder.path().join("mine.bpf.c");
        fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn a_policy_of_the_tools_compiles_anywhere_to_the_same_object() {
        let [one, other] = [(); 2].map(|()| OwnFolder::new().unwrap());
        let built = compile(&source(&one, SIMPLE), &Readable::own_folder()).unwrap();
        assert_eq!(
            built,
            compile(&source(&other, SIMPLE), &Readable::own_folder()).unwrap()
        );
        let (built, notes) = built;
        assert!(notes.is_empty(), "{notes:?}");
        let object = bpf::Object::parse(&built.object).unwrap();
        assert_eq!(object.tables(), ["mine_ops"]);
    }

    /// Both families of headers, so that none is forgotten in the program.
    #[test]
    fn the_shipped_sources_compile_with_the_headers_of_the_program() {
        for policy in policies::ALL {
            let folder = OwnFolder::new().unwrap();
            let built = compile(&source(&folder, policy.text), &Readable::own_folder());
            let (built, _) = built.unwrap_or_else(|error| panic!("{}: {error}", policy.name));
            assert!(bpf::Object::parse(&built.object).is_ok(), "{}", policy.name);
        }
    }

    /// C schedulers of 2024 begin so.
    #[test]
    fn a_constant_of_the_kernel_stands_outside_of_functions_too() {
        let folder = OwnFolder::new().unwrap();
        let text = SIMPLE.replace("SCX_SLICE_DFL,", "slice_ns + table[0],");
        let before = "const volatile u64 slice_ns = SCX_SLICE_DFL;\n\
            static const volatile u64 table[] = { SCX_ENQ_HEAD | SCX_ENQ_PREEMPT };\nvoid";
        let text = text.replacen("void", before, 1);
        let (built, notes) = compile(&source(&folder, &text), &Readable::own_folder()).unwrap();
        assert!(notes.is_empty(), "{notes:?}");
        let slice = 20_000_000_u64.to_le_bytes();
        assert!(built.object.windows(8).any(|it| it == slice));
    }

    #[test]
    fn a_message_names_no_folder_that_is_gone() {
        let folder = OwnFolder::new().unwrap();
        let text = "#include <scx/common.bpf.h>\nint f(void) { return MEMBER_VPTR(1, 2); }\n";
        let error = compile(&source(&folder, text), &Readable::own_folder())
            .unwrap_err()
            .to_string();
        assert!(error.contains("mine.bpf.c:2:"), "{error}");
        // The source's own folder stands where it is named; that of the headers nowhere.
        let own = folder.path().display().to_string();
        let error = error.replace(&own, "");
        assert!(!error.contains("/include"), "{error}");
        assert!(!error.contains("runslice-"), "{error}");
    }
}
