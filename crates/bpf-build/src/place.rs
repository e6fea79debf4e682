//! Where the compiler works, and what it may see there.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::{Error, Readable, paths};

/// Most bytes of a source. The largest published schedulers have 200 kB.
const MOST: u64 = 16 << 20;

/// A source that is ready to be compiled.
#[derive(Debug)]
pub(crate) struct PreparedSource {
    /// The compiler's working folder, in which the source lies.
    pub folder: PathBuf,
    /// The source's name in `folder`, of which the compiler makes no option.
    pub name: OsString,
    /// The source's own file.
    pub source: PathBuf,
    /// Folders of the user that are searched for headers.
    pub includes: Vec<PathBuf>,
    /// The folder of the headers that the caller brings.
    pub headers: PathBuf,
    /// Whether nothing beside the source may be read.
    pub is_alone: bool,
}

impl PreparedSource {
    /// Looks at `source`. One that may read nothing else is copied into `scratch`, so that its own
    /// folder need not be readable.
    ///
    /// # Errors
    /// When the source is no file, too long or cannot be read, or a folder is not there.
    pub(crate) fn prepare(
        source: &Path,
        may: &Readable,
        headers: &Path,
        scratch: &Path,
    ) -> Result<Self, Error> {
        let bytes = read(source, !may.own_folder)?;
        let name = source.file_name().unwrap_or_default().to_os_string();
        let (folder, whole) = if may.own_folder {
            (paths::folder(source)?, paths::canonical(source)?)
        } else {
            let folder = scratch.join("source");
            let file = folder.join(&name);
            let written = fs::create_dir(&folder).and_then(|()| fs::write(&file, bytes));
            written.map_err(|source| Error::File { path: file, source })?;
            let folder = paths::canonical(&folder)?;
            (folder.clone(), folder.join(&name))
        };
        let includes = may.folders.iter().map(|path| paths::canonical(path));
        Ok(Self {
            folder,
            name: as_file(name),
            source: whole,
            includes: includes.collect::<Result<_, _>>()?,
            headers: paths::canonical(headers)?,
            is_alone: !may.own_folder,
        })
    }

    /// The folders that the compiler may read, none of which lies in another.
    pub(crate) fn readable(&self) -> Vec<&Path> {
        let all = || {
            [&self.folder, &self.headers]
                .into_iter()
                .chain(&self.includes)
        };
        let mut folders: Vec<&Path> = Vec::new();
        for folder in all().map(PathBuf::as_path) {
            let lies_in = |other: &PathBuf| folder != other && folder.starts_with(other);
            if !folders.contains(&folder) && !all().any(lies_in) {
                folders.push(folder);
            }
        }
        folders
    }

    /// Writes into `scratch` which files the compiler's own file system has: those of
    /// [`PreparedSource::readable`], and no other, so that a name outside of them is the name of
    /// nothing, whether or not something is there. The kernel's walls alone would tell the two
    /// apart.
    ///
    /// None where the compiler cannot be told: for a name that is not UTF-8.
    ///
    /// Source: LLVM, `VirtualFileSystem.h`, `RedirectingFileSystem`, since version 15.
    pub(crate) fn write_view(&self, scratch: &Path) -> Result<Option<PathBuf>, Error> {
        let mut roots = Vec::new();
        for folder in self.readable() {
            let Some(text) = folder.to_str() else {
                return Ok(None);
            };
            let text = quoted(text);
            roots.push(format!(
                "{{\"type\":\"directory-remap\",\"name\":{text},\"external-contents\":{text}}}"
            ));
        }
        let view = format!(
            "{{\"version\":0,\"redirecting-with\":\"redirect-only\",\"use-external-names\":false,\
             \"case-sensitive\":true,\"roots\":[{}]}}",
            roots.join(",")
        );
        let path = paths::canonical(scratch)?.join("view.yaml");
        let written = fs::write(&path, view);
        written.map_err(|source| Error::File {
            path: path.clone(),
            source,
        })?;
        Ok(Some(path))
    }

    /// Whether a path, as the compiler names it, lies in a folder that may be read. Nobody looks
    /// whether it exists.
    pub(crate) fn lies_inside(&self, path: &Path) -> bool {
        let whole = paths::without_dots(&self.folder.join(path));
        self.readable()
            .iter()
            .any(|folder| whole.starts_with(folder))
    }
}

/// The bytes of a source. A device or a pipe could have no end, and a pipe without a writer would
/// be waited for. A link of somebody else may name a file that is none of his, so `is_others`
/// follows none.
fn read(source: &Path, is_others: bool) -> Result<Vec<u8>, Error> {
    let cannot = |error| Error::Source {
        path: source.to_path_buf(),
        source: error,
    };
    let is_link = fs::symlink_metadata(source).map_err(cannot)?.is_symlink();
    if is_link && is_others {
        let error = io::Error::new(io::ErrorKind::InvalidInput, "it is a link");
        return Err(cannot(error));
    }
    let mut flags = rustix::fs::OFlags::NONBLOCK;
    if is_others {
        flags |= rustix::fs::OFlags::NOFOLLOW;
    }
    let flags = flags.bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(source);
    whole(file.map_err(cannot)?).map_err(cannot)
}

fn whole(file: File) -> io::Result<Vec<u8>> {
    let invalid = |text: &str| io::Error::new(io::ErrorKind::InvalidInput, text);
    if !file.metadata()?.is_file() {
        return Err(invalid("it is no file but a folder, a device or a pipe"));
    }
    let mut bytes = Vec::new();
    file.take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST {
        return Err(invalid("it is longer than 16 MiB, the most of a source"));
    }
    Ok(bytes)
}

/// The compiler hands the name on to parts of itself, which know no `--`, and takes a name with `@`
/// for a list of options. Other names stay as they are: objects quote them.
fn as_file(name: OsString) -> OsString {
    if !name.as_encoded_bytes().starts_with(b"-") && !name.as_encoded_bytes().starts_with(b"@") {
        return name;
    }
    let mut whole = OsString::from("./");
    whole.push(name);
    whole
}

/// A text of YAML, whose double quotation is that of JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted += &format!("\\u{:04x}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}
