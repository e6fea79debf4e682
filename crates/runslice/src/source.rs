//! Policies as C sources: compiled where a policy is asked for, with the headers that this program
//! carries.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::Context as _;
pub use bpf_build::Readable;
use bpf_build::{Built, Error};
use folder::OwnFolder;
use model::{Advice as _, Advised};

use crate::exit::{self, BadSource, UnsupportedError};
use crate::output;
use crate::say::say;

pub use ask::policy::is_source;

/// The object of the user's own policy in `path`, compiled once in the life of this process. It may
/// read what lies beside it.
///
/// # Errors
/// The errors of [`compile`].
pub fn object(path: &Path) -> anyhow::Result<Vec<u8>> {
    static DONE: Mutex<BTreeMap<PathBuf, Vec<u8>>> = Mutex::new(BTreeMap::new());
    let mut done = DONE.lock().expect("whoever held it did not panic");
    if let Some(object) = done.get(path) {
        return Ok(object.clone());
    }
    let object = compile(path, &Readable::own_folder())?.object;
    done.insert(path.to_owned(), object.clone());
    Ok(object)
}

/// The object of the policy with this text, whose file would be called `name`.
///
/// # Errors
/// The errors of [`compile`].
pub fn object_of_text(name: &str, text: &str) -> anyhow::Result<Vec<u8>> {
    let folder = OwnFolder::new().context("no folder for the source")?;
    let path = folder.path().join(name);
    fs::write(&path, text).map_err(model::CannotWrite::at(path.display()))?;
    // There is nothing else in the folder.
    let compiled = compile(&path, &Readable::own_folder()).map_err(|error| {
        // The folder is gone when somebody reads the message.
        let own = format!("{}/", folder.path().display());
        let mut told = exit::advised(&error);
        told.what = told.what.replace(&own, "");
        anyhow::anyhow!(told)
    });
    Ok(compiled?.object)
}

/// Compiles `path`, which can read what `may` says and the headers of this program. Warnings go to
/// standard error.
///
/// # Errors
/// [`BadSource`] when the file cannot be read, does not compile, or asks for a file that it may
/// not read; [`UnsupportedError`] when there is no suitable clang, or the kernel cannot hold it to
/// what a source may read that may read nothing.
pub fn compile(path: &Path, may: &Readable) -> anyhow::Result<Built> {
    let scratch = OwnFolder::new().context("no folder for the compiler")?;
    let headers = scratch.path().join("include");
    write_headers(&headers)?;
    let built = bpf_build::compile_others(path, may, &headers, scratch.path())
        .map_err(|error| kind(&error, in_words(&error, scratch.path())))?;
    if !built.is_walled {
        say_unwalled(path);
    }
    if !built.warnings.is_empty() {
        say(
            "runslice",
            hidden(&built.warnings, scratch.path()).trim_end(),
        );
    }
    Ok(built)
}

fn say_unwalled(path: &Path) {
    let text = format!(
        "{}: this kernel lacks Landlock or seccomp, so that assembly and links in the source \
         can reach any file of yours; compile only what you trust",
        path.display()
    );
    say("runslice", &text);
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
        let made = path.parent().map_or(Ok(()), fs::create_dir_all);
        made.map_err(model::CannotWrite::at(path.display()))?;
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
    } else if text.contains("not a compile-time constant") && text.contains("SCX_") {
        "the kernel gives SCX_SLICE_DFL and the like their values when it loads the policy: write \
         a number, such as 20000000, or use the name inside of a function"
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
        assert_eq!(built.warnings, "");
        let object = bpf::Object::parse(&built.object).unwrap();
        assert_eq!(object.tables(), ["mine_ops"]);
    }

    /// Both families of headers, so that none is forgotten in the program.
    #[test]
    fn the_shipped_sources_compile_with_the_headers_of_the_program() {
        for policy in policies::ALL {
            let folder = OwnFolder::new().unwrap();
            let built = compile(&source(&folder, policy.text), &Readable::own_folder());
            let built = built.unwrap_or_else(|error| panic!("{}: {error}", policy.name));
            assert!(bpf::Object::parse(&built.object).is_ok(), "{}", policy.name);
        }
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
