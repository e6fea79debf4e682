//! `runslice build SOURCE`.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::bail;
use bpf::Object;
use clap::Args;
use model::{Advised, Kernel};

use crate::computer::COMPUTER;
use crate::exit::{Status, UsageError};
use crate::say::say;
use crate::source::Readable;
use crate::{embedded, input, kernel, output, source};

/// Arguments of `runslice build`.
#[derive(Debug, Args)]
pub struct Build {
    /// Source of the policy, such as mine.bpf.c. It may include bpf.h, scx.h and what lies beside
    /// them in policies/include, or scx/common.bpf.h, which the sched_ext tools include, and files
    /// of its own folder and the folders below. It can read no other file.
    #[arg(required_unless_present = "headers", value_hint = clap::ValueHint::FilePath)]
    source: Option<PathBuf>,

    /// Object to write. Default: the source's name with .o instead of .c, in this folder.
    #[arg(short, long, value_name = "FILE", requires = "source")]
    output: Option<PathBuf>,

    /// Let the source read this folder, too, and look for headers in it. May be repeated.
    #[arg(short = 'I', long, value_name = "FOLDER", requires = "source")]
    include: Vec<PathBuf>,

    /// Let the source read nothing beside it: for a source that somebody else wrote. Needs a kernel
    /// with Landlock.
    #[arg(long, requires = "source")]
    alone: bool,

    /// Write the headers that this program has inside into a new folder, for an editor.
    #[arg(long, value_name = "FOLDER", conflicts_with = "source")]
    headers: Option<PathBuf>,
}

impl Build {
    fn readable(&self) -> Readable {
        let own = if self.alone {
            Readable::source_alone()
        } else {
            Readable::own_folder()
        };
        let folders = self.include.iter();
        folders.fold(own, |readable, folder| readable.with(folder))
    }
}

/// Compiles a policy.
///
/// # Errors
/// When there is no clang, the source does not compile, or the object cannot be written.
pub fn run(request: &Build) -> anyhow::Result<Status> {
    if let Some(folder) = &request.headers {
        source::write_headers(folder)?;
        return Ok(Status::Done);
    }
    let path = request.source.as_deref().unwrap_or(Path::new(""));
    if !source::is_source(path) {
        let message = Advised::new(
            format!("{}: no source in C", path.display()),
            "give a file that ends in .c, such as mine.bpf.c",
        );
        return Err(UsageError::new(message).into());
    }
    let beside = PathBuf::from(path.with_extension("o").file_name().unwrap_or_default());
    let to = request.output.clone().unwrap_or(beside);
    output::spare(&[("the source", Some(path))], &[("--output", Some(&to))])?;
    if !output::is_standard(&to) {
        folder::check_file(&to).map_err(model::CannotWrite::at(to.display()))?;
    }
    let is_other = |old: Vec<u8>| !old.is_empty() && !embedded::is_object(&old);
    let is_there = !output::is_standard(&to) && to.is_file();
    if is_there && input::bytes(&COMPUTER, &to, input::OBJECT).map_or(true, is_other) {
        bail!(Advised::new(
            format!("{} is no object, and stays as it is", to.display()),
            "give another name with -o"
        ));
    }
    let (built, notes) = source::compile(path, &request.readable())?;
    for note in notes {
        say("runslice", &note);
    }
    let tables = Object::parse(&built.object).map(|object| object.tables())?;
    if tables.is_empty() {
        bail!(Advised::new(
            format!(
                "{}: no policy, since it has no table of callbacks",
                path.display()
            ),
            "write one with SCX_OPS_DEFINE or POLICY"
        ));
    }
    let mut file = output::create(&to)?;
    file.write_all(&built.object)?;
    file.flush()?;
    if let Some(words) = kernel::elsewhere(&built.object, Kernel::default()) {
        say("build", &format!("{}: {words}", to.display()));
    }
    let line = format!(
        "{}: {} (clang {})",
        to.display(),
        tables.join(", "),
        built.clang
    );
    if output::is_standard(&to) {
        say("build", &line);
        return Ok(Status::Done);
    }
    let mut out = output::open(None)?;
    writeln!(out, "{line}")?;
    out.flush()?;
    Ok(Status::Done)
}
