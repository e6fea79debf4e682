//! What a program has written.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// Bytes of each stream that are looked at.
const BYTES_MAX: u64 = 8192;
/// Lines of each stream.
const LINES_MAX: usize = 20;
/// Characters of a line.
const LINE_MAX: usize = 400;

/// The last lines of the standard output and of the error output. A program's output may have
/// anything in it: what is not text is escaped, long lines are cut.
#[must_use]
pub fn last_lines(files: &[PathBuf; 2]) -> String {
    let mut lines = Vec::new();
    for file in files {
        let text = tail(file);
        let all: Vec<&str> = text.lines().collect();
        let from = all.len().saturating_sub(LINES_MAX);
        lines.extend(all[from..].iter().map(|it| plain(it)));
    }
    lines.join("\n")
}

fn tail(file: &Path) -> String {
    let read = || {
        let mut file = File::open(file)?;
        let len = file.metadata()?.len();
        file.seek(SeekFrom::Start(len.saturating_sub(BYTES_MAX)))?;
        let mut bytes = Vec::new();
        file.take(BYTES_MAX).read_to_end(&mut bytes)?;
        Ok::<_, std::io::Error>(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}

/// A line that does nothing to a terminal, cut where nobody reads on.
fn plain(line: &str) -> String {
    match line.char_indices().nth(LINE_MAX) {
        Some((cut, _)) => model::plain::shown(&line[..cut]) + " ...",
        None => model::plain::shown(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_plain_and_few() {
        let folder = folder::OwnFolder::new().unwrap();
        let files = [folder.join("out"), folder.join("err")];
        let many: String = (0..5000).map(|it| format!("line {it}\n")).collect();
        std::fs::write(&files[0], many).unwrap();
        let long = "x".repeat(1000);
        std::fs::write(&files[1], format!("\u{1b}[31mred\u{202e}\n{long}\n")).unwrap();
        let text = last_lines(&files);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), LINES_MAX + 2);
        assert_eq!((lines[0], lines[19]), ("line 4980", "line 4999"));
        assert_eq!(lines[20], "\\u001b[31mred\\u202e");
        assert_eq!(lines[21].len(), LINE_MAX + 4);
    }
}
