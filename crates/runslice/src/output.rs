//! Where results go: standard output, or a file that the user names.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, IsTerminal as _, Read as _, Write};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use folder::NewFile;
use model::Advised;
use model::plain::{escape, is_obeyed};
use show::format::{self, OfferedFormats};

use crate::exit::UsageError;
use crate::export;
use crate::look::Tone;
use crate::report::{Format, Shape, format_of};
use crate::{files, input, interrupt, left_out};

/// The file, if it is one: `-` stands for standard output.
fn named(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| !is_standard(path))
}

/// Whether `path` stands for standard output.
pub fn is_standard(path: &Path) -> bool {
    path == Path::new(input::STANDARD)
}

/// Opens `path` for results that are text, or standard output when there is none. Control
/// characters are escaped: names in results come from anywhere, and a terminal obeys what is in
/// them.
///
/// # Errors
/// When the file cannot be created.
pub fn open(path: Option<&Path>) -> anyhow::Result<Box<dyn Write>> {
    Ok(match named(path) {
        Some(path) => Box::new(Printable::new(create(path)?)),
        None => Box::new(Printable::new(BufWriter::new(io::stdout().lock()))),
    })
}

/// Opens the output of a table in `form`, which may be bytes.
///
/// # Errors
/// The errors of [`open`].
pub fn open_form(
    form: Option<export::Form>,
    path: Option<&Path>,
) -> anyhow::Result<Box<dyn Write>> {
    if form.is_none_or(export::Form::is_text) {
        return open(path);
    }
    Ok(match named(path) {
        Some(path) => Box::new(create(path)?),
        None => Box::new(BufWriter::new(io::stdout().lock())),
    })
}

/// Opens the output of results that may be for people: on standard output with colors, if they are
/// wanted.
///
/// # Errors
/// The errors of [`open`].
pub fn open_shape(shape: Shape, path: Option<&Path>) -> anyhow::Result<Box<dyn Write>> {
    if shape.format == Format::Human && named(path).is_none() && shape.look.has_color() {
        let mut to = Printable::new(BufWriter::new(io::stdout().lock()));
        to.has_color = true;
        return Ok(Box::new(to));
    }
    open_form(shape.format.export(), path)
}

/// Writes results into memory: the bytes that their file has.
///
/// # Errors
/// Those of `write`.
pub fn in_memory(
    form: Option<export::Form>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<Vec<u8>> {
    if form.is_none_or(export::Form::is_text) {
        let mut to = Printable::new(Vec::new());
        return write(&mut to).map(|()| to.to);
    }
    let mut to = Vec::new();
    write(&mut to).map(|()| to)
}

/// Endings of files and the formats that they stand for.
const ENDINGS: [(&str, &str); 7] = [
    ("html", "html"),
    ("htm", "html"),
    ("json", "json"),
    ("csv", "csv"),
    ("parquet", "parquet"),
    ("md", "markdown"),
    ("xml", "junit"),
];

/// Endings of formats that no results have. A file of another ending gets text, but nobody who
/// names one of these wants text.
const OTHER_ENDINGS: [&str; 9] = [
    "pdf", "png", "svg", "xls", "xlsx", "ods", "tsv", "yaml", "yml",
];

/// Where results go, and as what.
#[derive(Debug, Args)]
pub struct To {
    /// Output format. Default: what the ending of the output file stands for (.json, .csv,
    /// .parquet), else `human`.
    #[arg(long, value_parser = format_of(format::TABLES))]
    format: Option<Format>,

    /// Write the results to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

impl To {
    /// As what.
    ///
    /// # Errors
    /// When the file's ending stands for another format, or a terminal would get bytes.
    pub fn format(&self) -> Result<Format, UsageError> {
        let format = form(self.format, self.output.as_deref(), format::TABLES)?;
        check(format.export(), self.output.as_deref())?;
        Ok(format)
    }
}

/// The format of results: the one that the user named, or else the one of `offered` that the ending
/// of the file stands for, or else text.
///
/// # Errors
/// When the ending stands for a format that these results do not have.
pub fn form(
    given: Option<Format>,
    path: Option<&Path>,
    offered: OfferedFormats,
) -> Result<Format, UsageError> {
    let given = given.map_or_else(|| ending(path, offered), |it| Ok(Some(it)));
    given.map(|it| it.unwrap_or(Format::Human))
}

/// Which of these formats the ending of the file stands for, if for any.
///
/// # Errors
/// When it stands for a format that is not among them.
pub fn ending(path: Option<&Path>, offered: OfferedFormats) -> Result<Option<Format>, UsageError> {
    let ending = path
        .and_then(Path::extension)
        .map(|it| it.to_string_lossy().to_lowercase());
    let known = ENDINGS
        .iter()
        .find(|(known, _)| Some(*known) == ending.as_deref());
    let other = OTHER_ENDINGS
        .into_iter()
        .find(|it| Some(*it) == ending.as_deref());
    let (Some(name), Some(path)) = (known.map(|(_, name)| *name).or(other), path) else {
        return Ok(None);
    };
    if let Some(format) = Format::of(name, offered) {
        return Ok(Some(format));
    }
    // Tables have both forms.
    let is_table = Format::of("csv", offered).is_some();
    if let Some(words) = left_out::unknown_format(name).filter(|_| is_table) {
        return Err(UsageError::new(words));
    }
    let has = |(_, name): &&(&str, &str)| Format::of(name, offered).is_some();
    let endings: Vec<String> = ENDINGS
        .iter()
        .filter(has)
        .map(|(ending, _)| format!(".{ending}"))
        .collect();
    Err(UsageError::new(Advised::new(
        format!("{}: there are no such results as {name}", path.display()),
        format!(
            "name a file that ends in {}, or give --format",
            endings.join(", ")
        ),
    )))
}

/// Says on standard output what a page says first, and where it is.
///
/// # Errors
/// When standard output does not take it.
pub fn announce(verdict: &[String], path: Option<&Path>) -> anyhow::Result<()> {
    if path.is_some_and(is_standard) {
        // The page has it, and stands there itself.
        return Ok(());
    }
    let mut to = open(None)?;
    for sentence in verdict {
        writeln!(to, "{sentence}")?;
    }
    if let Some(path) = path {
        writeln!(to, "Pictures: {}", path.display())?;
    }
    Ok(to.flush()?)
}

/// Refuses a page for standard output: nobody reads one there.
///
/// # Errors
/// When there is no file for it.
pub fn page_file(path: Option<&Path>) -> Result<&Path, UsageError> {
    let message = "a page needs a file: name one with --output, such as page.html";
    path.ok_or_else(|| UsageError::new(message))
}

/// Refuses bytes that no terminal can show, before the work for them is done.
///
/// # Errors
/// When they would go to a terminal.
pub fn check(form: Option<export::Form>, path: Option<&Path>) -> Result<(), UsageError> {
    let is_text = form.is_none_or(export::Form::is_text);
    if is_text || named(path).is_some() || !io::stdout().is_terminal() {
        return Ok(());
    }
    let message = Advised::new(
        "a Parquet file is bytes that no terminal shows",
        "name a file with --output",
    );
    Err(UsageError::new(message))
}

/// Refuses one file for two purposes: the one would be written over the other. Devices may be given
/// as often as one likes.
///
/// # Errors
/// Names the file and the two options.
pub fn distinct(files: &[(&str, Option<&Path>)]) -> Result<(), UsageError> {
    let whole = |path: &Path| {
        let path = files::real(path);
        path.canonicalize()
            .or_else(|_| std::path::absolute(&path))
            .ok()
    };
    // One file may have two names (hard links).
    let facts = |path: &Path| files::real(path).metadata();
    let node = |path: &Path| facts(path).ok().map(|it| (it.dev(), it.ino()));
    let is_device = |path: &Path| is_standard(path) || facts(path).is_ok_and(|it| !it.is_file());
    let given = files
        .iter()
        .filter_map(|(option, path)| Some((option, (*path)?)));
    let given: Vec<_> = given.filter(|(_, path)| !is_device(path)).collect();
    for (at, (option, path)) in given.iter().enumerate() {
        let same = |(_, other): &&(&&str, &Path)| {
            let is_one = node(path).is_some() && node(other) == node(path);
            is_one || whole(path).is_some() && whole(other) == whole(path)
        };
        if let Some((other, _)) = given[..at].iter().find(same) {
            return Err(UsageError::new(Advised::new(
                format!("{} is given for {other} and for {option}", path.display()),
                "name two files",
            )));
        }
    }
    Ok(())
}

/// Refuses a result in the place of its source: compares files that are read with files that are
/// written. One source may be given twice. What is written is tried: [`can_write`].
///
/// # Errors
/// The errors of [`distinct`] and [`can_write`].
pub fn spare(
    read: &[(&str, Option<&Path>)],
    written: &[(&str, Option<&Path>)],
) -> anyhow::Result<()> {
    distinct(written)?;
    read.iter()
        .try_for_each(|source| distinct(&[&[*source], written].concat()))?;
    can_write(written)
}

/// Refuses what cannot be written before the work for it is done: a folder, a file in a folder that
/// takes none, and standard output for two. A file that is there stays as it is.
///
/// # Errors
/// Names the option and the file.
pub fn can_write(written: &[(&str, Option<&Path>)]) -> anyhow::Result<()> {
    let mut standard = None;
    for (option, path) in written {
        let Some(path) = path else { continue };
        if is_standard(path) {
            if let Some(other) = standard.replace(option) {
                return Err(UsageError::new(Advised::new(
                    format!("standard output is given for {other} and for {option}"),
                    "name a file for one of them",
                ))
                .into());
            }
            continue;
        }
        let is_new = path.symlink_metadata().is_err();
        let cannot = model::CannotWrite::at(path.display());
        drop(folder::append(path).map_err(cannot)?);
        if is_new {
            // Whoever cannot remove it can write it, which is what was asked.
            let _ = std::fs::remove_file(path);
        }
    }
    Ok(())
}

/// Creates a file, or empties it. What could not be written to its end does not stay. Which links
/// root follows: [`folder::create`].
///
/// # Errors
/// When the file cannot be created; the message names it.
pub fn create(path: &Path) -> anyhow::Result<ResultsFile> {
    Ok(ResultsFile {
        to: create_log(path)?,
        path: path.to_owned(),
        is_whole: false,
    })
}

/// Creates a file of which every part is of use: it stays as far as it was written.
///
/// # Errors
/// The errors of [`create`].
pub fn create_log(path: &Path) -> anyhow::Result<BufWriter<File>> {
    if is_standard(path) {
        let same = io::stdout().as_fd().try_clone_to_owned();
        let same = same.map_err(model::CannotWrite::at("standard output"))?;
        return Ok(BufWriter::new(File::from(same)));
    }
    let file = folder::create(path);
    let file = file.map_err(model::CannotWrite::at(path.display()))?;
    Ok(BufWriter::new(file))
}

/// Writes a file that must not be there yet; `advice` is for whoever has it already. What could not
/// be written to its end does not stay.
///
/// # Errors
/// When it is there, or cannot be written; the message names it.
pub fn write_new(path: &Path, bytes: &[u8], advice: &str) -> anyhow::Result<()> {
    if is_standard(path) {
        let mut to = create(path)?;
        to.write_all(bytes)?;
        return Ok(to.flush()?);
    }
    let file = folder::create_new(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            anyhow!(Advised::new(
                format!("{} is there already, and stays as it is", path.display()),
                advice
            ))
        }
        _ => model::CannotWrite::at(path.display())(error).into(),
    })?;
    let mut to = ResultsFile {
        to: BufWriter::new(file),
        path: path.to_owned(),
        is_whole: false,
    };
    to.write_all(bytes)?;
    Ok(to.flush()?)
}

/// A file of results. Its errors name it, and the first one removes it, as does a signal that comes
/// before its end.
#[derive(Debug)]
pub struct ResultsFile {
    to: BufWriter<File>,
    path: PathBuf,
    is_whole: bool,
}

impl Drop for ResultsFile {
    fn drop(&mut self) {
        if !self.is_whole && interrupt::has_come() {
            self.remove();
        }
    }
}

impl ResultsFile {
    fn remove(&self) {
        let is_file = || self.path.symlink_metadata().is_ok_and(|it| it.is_file());
        if !is_standard(&self.path) && is_file() {
            // What cannot be removed either is named all the same.
            let _ = std::fs::remove_file(&self.path);
        }
    }

    fn named<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            self.remove();
            let path = self.path.display();
            let what = format!("cannot write {path}: {error}");
            let advice = model::to_write(&error);
            io::Error::new(error.kind(), Advised { what, advice })
        })
    }
}

impl Write for ResultsFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_whole = false;
        let written = self.to.write(bytes);
        self.named(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.to.flush();
        self.is_whole = flushed.is_ok();
        self.named(flushed)
    }
}

/// Escapes what a terminal obeys, but for newlines and tabs, as JSON does in its strings.
struct Printable<W> {
    to: W,
    /// The first bytes of a character that may be one of those that a terminal obeys.
    held: Vec<u8>,
    /// Makes colors of tones, and leaves them out otherwise.
    has_color: bool,
}

/// First bytes of characters in UTF-8 of which a terminal obeys some, and how many bytes such a
/// character has.
const fn length(first: u8) -> Option<usize> {
    match first {
        // U+0080 to U+00BF, U+0600 to U+063F.
        0xc2 | 0xd8 => Some(2),
        // U+2000 to U+2FFF.
        0xe2 => Some(3),
        _ => None,
    }
}

impl<W> Printable<W> {
    fn new(to: W) -> Self {
        Self {
            to,
            held: Vec::new(),
            has_color: false,
        }
    }
}

impl<W: Write> Write for Printable<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut clean = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            if let Some(length) = self.held.first().and_then(|first| length(*first)) {
                if (0x80..0xc0).contains(&byte) {
                    self.held.push(byte);
                    if self.held.len() < length {
                        continue;
                    }
                    match std::str::from_utf8(&self.held).map(|it| it.chars().next()) {
                        Ok(Some(char)) if is_obeyed(char) => {
                            clean.extend(escape(char).bytes());
                            self.held.clear();
                        }
                        _ => clean.append(&mut self.held),
                    }
                    continue;
                }
                clean.append(&mut self.held);
            }
            if let Some(color) = Tone::of_mark(byte) {
                let color = if self.has_color { color } else { "" };
                clean.extend(color.bytes());
                continue;
            }
            match byte {
                _ if length(byte).is_some() => self.held.push(byte),
                b'\n' | b'\t' | 0x20..=0x7e | 0x80.. => clean.push(byte),
                _ => clean.extend(escape(byte.into()).bytes()),
            }
        }
        self.to.write_all(&clean)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Makes a folder for results that this or a later run goes on with. See [`folder::make_kept`].
///
/// # Errors
/// When it cannot be made, or another user could have prepared it; the message names it.
pub fn make_folder(path: &Path) -> anyhow::Result<()> {
    if is_standard(path) {
        let what = "`-` stands for standard output, which is no folder";
        return Err(UsageError::new(Advised::new(what, "name a folder")).into());
    }
    folder::make_kept(path).map_err(|error| {
        let advice = match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Some("name a folder that you may write into".to_owned())
            }
            _ => model::to_write(&error),
        };
        let what = format!("cannot use the folder {error}");
        anyhow!(Advised { what, advice })
    })
}

/// Writes beside the file and then puts it in its place: it is there as a whole or not at all.
///
/// It is for files of folders that hold results. What is at `path` is replaced, also if it is a
/// link; a file that a user names is written by [`create`].
///
/// # Errors
/// When the folder takes no file; then nothing is left beside it.
pub fn write_whole(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let mut whole = Whole::create(path);
    whole.write(bytes)?;
    whole.put()
}

/// Writes a file piece by piece that is longer than memory, and puts it in place when it is whole.
/// A file that has the same bytes already needs no writing, which a read-only file system would
/// refuse.
#[derive(Debug)]
pub struct Whole {
    path: PathBuf,
    /// The file that is there, while it has the same bytes.
    old: Option<BufReader<File>>,
    /// So many bytes are the same.
    same: u64,
    new: Option<BufWriter<NewFile>>,
}

impl Whole {
    /// Begins the file.
    pub fn create(path: &Path) -> Self {
        // A link or a pipe that somebody has put there is not read: it may have no end.
        let is_file = path.symlink_metadata().is_ok_and(|it| it.is_file());
        let old = is_file.then(|| File::open(path).ok()).flatten();
        let old = old.map(BufReader::new);
        Self {
            path: path.to_owned(),
            old,
            same: 0,
            new: None,
        }
    }

    /// Writes on.
    ///
    /// # Errors
    /// When the folder takes no file.
    pub fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        if let Some(old) = &mut self.old {
            let mut there = vec![0; bytes.len()];
            if old.read_exact(&mut there).is_ok() && there == bytes {
                self.same += bytes.len() as u64;
                return Ok(());
            }
            self.old = None;
        }
        let written = self.begin().and_then(|file| file.write_all(bytes));
        Ok(written.map_err(model::CannotWrite::at(self.path.display()))?)
    }

    /// The new file, with what was the same in the old one.
    fn begin(&mut self) -> io::Result<&mut BufWriter<NewFile>> {
        if self.new.is_none() {
            let mut new = BufWriter::new(NewFile::create(&self.path)?);
            if self.same > 0 {
                io::copy(&mut File::open(&self.path)?.take(self.same), &mut new)?;
            }
            self.new = Some(new);
        }
        Ok(self.new.as_mut().expect("made before"))
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// When the folder takes no file.
    pub fn put(mut self) -> anyhow::Result<()> {
        // The old one may go on.
        let ends = |old: &mut BufReader<File>| old.fill_buf().is_ok_and(<[u8]>::is_empty);
        if self.old.as_mut().is_some_and(ends) {
            return Ok(());
        }
        let put = self.begin().map(drop).and_then(|()| match self.new.take() {
            Some(file) => file
                .into_inner()
                .map_err(io::IntoInnerError::into_error)?
                .put(),
            None => Ok(()),
        });
        Ok(put.map_err(model::CannotWrite::at(self.path.display()))?)
    }
}

/// The file for one of several policies: `events.jsonl` becomes `events.mlfq.jsonl`.
pub fn path_for(path: &Path, policy: &str, several: bool) -> PathBuf {
    if !several || is_standard(path) {
        return path.to_owned();
    }
    let plain = |c: char| {
        if c.is_alphanumeric() || c == '-' || c == '_' {
            c
        } else {
            '-'
        }
    };
    let policy: String = policy.chars().map(plain).collect();
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{policy}"));
    if let Some(ending) = path.extension() {
        name.push(".");
        name.push(ending);
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn a_long_file_is_whole_or_not_there_and_the_same_one_is_not_written_again() {
        let folder = std::env::temp_dir().join(format!("runslice-whole-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("results.json");
        let write = |pieces: &[&str]| {
            let mut whole = Whole::create(&path);
            pieces
                .iter()
                .for_each(|it| whole.write(it.as_bytes()).unwrap());
            whole.put().unwrap();
            (
                std::fs::read_to_string(&path).unwrap(),
                std::fs::metadata(&path).unwrap().ino(),
            )
        };
        let (text, first) = write(&["ab", "", "cd"]);
        assert_eq!(text, "abcd");
        assert_eq!(write(&["a", "bcd"]), ("abcd".to_owned(), first));
        for pieces in [
            &["ab", "xy", "z"][..],
            &["ab", "x"],
            &["ab", "x", "cd"],
            &[],
        ] {
            assert_eq!(write(pieces).0, pieces.concat());
        }
        // Who stops before the end leaves the old file and nothing beside it.
        write(&["old"]);
        Whole::create(&path).write(b"new").unwrap();
        let left: Vec<_> = std::fs::read_dir(&folder).unwrap().collect();
        assert_eq!((left.len(), write(&["old"]).0.as_str()), (1, "old"));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_ending_of_a_file_decides_the_format_unless_the_user_does() {
        let of = |format, name: Option<&str>| {
            let output = name.map(PathBuf::from);
            To { format, output }.format()
        };
        assert_eq!(of(None, None).unwrap(), Format::Human);
        assert_eq!(of(None, Some("runs.json")).unwrap(), Format::Json);
        assert_eq!(of(None, Some("runs.txt")).unwrap(), Format::Human);
        assert_eq!(of(Some(Format::Csv), Some("a.json")).unwrap(), Format::Csv);
        let refused = of(None, Some("runs.html")).unwrap_err();
        let refused = model::Advice::in_full(&refused);
        assert!(refused.contains(".json, .csv"), "{refused}");
    }

    #[test]
    fn results_cannot_command_a_terminal_however_they_are_cut() {
        let text = "a\x1b[2J\r\n\tb\u{9b}1m\u{7f} Gr\u{fc}\u{df}e \u{a0}";
        let want = "a\\u001b[2J\\u000d\n\tb\\u009b1m\\u007f Gr\u{fc}\u{df}e \u{a0}";
        let text = format!("{text}\u{202e}c\u{61c}\u{2010}\u{e9}");
        let want = format!("{want}\\u202ec\\u061c\u{2010}\u{e9}");
        for size in [1, 2, 99] {
            let mut clean = Printable::new(Vec::new());
            for part in text.as_bytes().chunks(size) {
                clean.write_all(part).unwrap();
            }
            assert_eq!(String::from_utf8_lossy(&clean.to), want, "{size}");
        }
    }

    #[test]
    fn tones_are_colors_or_nothing() {
        let written = |has_color| {
            let mut clean = Printable::new(Vec::new());
            clean.has_color = has_color;
            Tone::Good.paint("a\u{1b}", &mut clean).unwrap();
            String::from_utf8(clean.to).unwrap()
        };
        assert_eq!(written(false), "a\\u001b");
        assert_eq!(written(true), "\u{1b}[32ma\\u001b\u{1b}[0m");
    }

    #[test]
    fn the_ending_of_the_file_decides_unless_the_user_does() {
        let of = |given, path: &str| form(given, Some(Path::new(path)), format::EXPERIMENTS);
        assert_eq!(of(None, "a.HTML").unwrap(), Format::Html);
        assert_eq!(of(None, "a.json").unwrap(), Format::Json);
        assert_eq!(of(None, "a.txt").unwrap(), Format::Human);
        assert_eq!(of(None, "a").unwrap(), Format::Human);
        assert!(
            of(None, "a.PDF")
                .unwrap_err()
                .to_string()
                .contains("no such results as pdf")
        );
        assert_eq!(of(Some(Format::Human), "a.json").unwrap(), Format::Human);
        let said = model::Advice::in_full(&of(None, "x/a.csv").unwrap_err());
        let want = "x/a.csv: there are no such results as csv; name a file that ends in .html, \
                    .htm, .json, or give --format";
        assert_eq!(said, want);
    }

    #[test]
    fn one_file_is_not_taken_for_two_purposes() {
        let (a, b) = (Path::new("x"), Path::new("./y"));
        distinct(&[("--a", Some(a)), ("--b", Some(b)), ("--c", None)]).unwrap();
        let twice = distinct(&[("--a", Some(a)), ("--b", Some(Path::new("./x")))]);
        let said = model::Advice::in_full(&twice.unwrap_err());
        assert_eq!(said, "./x is given for --a and for --b; name two files");
        let null = Some(Path::new("/dev/null"));
        distinct(&[("--a", null), ("--b", null)]).unwrap();
    }

    #[test]
    fn a_source_is_not_written_over_and_may_be_given_twice() {
        let (a, b) = (Some(Path::new("a")), Some(Path::new("b")));
        spare(&[("x", a), ("x", a), ("x", None)], &[("--o", b)]).unwrap();
        let over = spare(&[("x", None), ("x", a)], &[("--o", b), ("--p", a)]);
        let said = crate::exit::in_full(&over.unwrap_err());
        assert_eq!(said, "a is given for x and for --p; name two files");
    }

    #[test]
    fn several_policies_get_a_file_each() {
        let file = |path: &str, policy| path_for(Path::new(path), policy, true);
        assert_eq!(file("out/e.jsonl", "mlfq"), Path::new("out/e.mlfq.jsonl"));
        assert_eq!(file("e", "mlfq:nq=3"), Path::new("e.mlfq-nq-3"));
        let alone = path_for(Path::new("e.jsonl"), "mlfq", false);
        assert_eq!(alone, Path::new("e.jsonl"));
    }
}
