//! Names of students, from a file that comes from outside.

use std::collections::BTreeMap;

use model::{Advised, Fnv1a, plain};

use crate::error::UsageError;

/// Most students of an exam.
pub const STUDENTS_MAX: usize = 10_000;
/// Most characters of a name.
const NAME_MAX: usize = 200;
/// Most letters of a name that the name of a file has.
const SLUG_MAX: usize = 40;
/// Headings of the column with the names.
const HEADINGS: [&str; 5] = ["name", "names", "student", "students", "full name"];

/// A student of an exam.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Student {
    /// The name, as it can be shown anywhere.
    pub name: String,
    /// A name for files: letters, digits and `-`; no two students of a list have the same one.
    pub slug: String,
    /// Seed of the own sheet.
    pub seed: u64,
}

/// Reads a list of students: a name a line, or a table of CSV (RFC 4180; comma, semicolon or tab)
/// with a column `name`, or with the names in its first column.
///
/// Each student's seed depends on the name and on `key` alone, and on how often the name stood in
/// the list before: it stays when others are added.
///
/// # Errors
/// When `bytes` is no UTF-8, or has no name, too many, or too long a one.
pub fn read_students(bytes: &[u8], file: &str, key: &str) -> Result<Vec<Student>, UsageError> {
    let wrong = |what: String, advice: &str| Err(UsageError::new(Advised::new(what, advice)));
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let lines = bytes[..error.valid_up_to()]
                .iter()
                .filter(|it| **it == b'\n');
            let what = format!("{file}, line {}: no UTF-8", lines.count() + 1);
            return wrong(what, "save the list as UTF-8");
        }
    };
    let mut rows = rows(text);
    let column = rows.first().and_then(|(_, cells)| heading(cells));
    if column.is_some() {
        rows.remove(0);
    }
    let names = rows.iter().filter_map(|(line, cells)| {
        let name = cells.get(column.unwrap_or(0))?.trim();
        (!name.is_empty()).then_some((*line, name))
    });
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    let mut students = Vec::new();
    for (line, name) in names {
        if name.chars().count() > NAME_MAX {
            let what = format!("{file}, line {line}: a name of more than {NAME_MAX} characters");
            return wrong(what, "write one name in each line");
        }
        let times = seen.entry(name).or_default();
        students.push(student(name, *times, key));
        *times += 1;
    }
    match students.len() {
        0 => wrong(
            format!("{file} has no names"),
            "write one name in each line",
        ),
        count if count > STUDENTS_MAX => {
            let what = format!("{file} has {count} names, more than {STUDENTS_MAX}");
            wrong(what, "make several lists")
        }
        _ => Ok(students),
    }
}

/// The column with the names, if these cells are headings.
fn heading(cells: &[String]) -> Option<usize> {
    let is_heading = |cell: &String| HEADINGS.contains(&cell.trim().to_lowercase().as_str());
    cells.iter().position(is_heading)
}

/// A name for a file made of any text: it has no way out of its folder, and texts that differ have
/// other names.
#[must_use]
pub fn file_name_of(text: &str) -> String {
    slug(text, Fnv1a::of(text.bytes()))
}

fn student(name: &str, times: u64, key: &str) -> Student {
    let hash = |parts: &[&[u8]]| {
        let mut hash = Fnv1a::new();
        for part in parts {
            hash.write(&(part.len() as u64).to_le_bytes());
            hash.write(part);
        }
        hash.value()
    };
    let times = times.to_le_bytes();
    // A name of a file that tells nothing of the key.
    let told = hash(&[name.as_bytes(), &times]);
    Student {
        name: plain::shown(name),
        slug: slug(name, told),
        seed: hash(&[key.as_bytes(), name.as_bytes(), &times]),
    }
}

/// A name for a file: it has no way out of its folder, and no system keeps it for itself.
fn slug(name: &str, told: u64) -> String {
    let mut slug = String::new();
    for char in name.chars() {
        if char.is_ascii_alphanumeric() {
            slug.push(char.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(SLUG_MAX);
    let letters = slug.trim_matches('-');
    let letters = if letters.is_empty() {
        "student"
    } else {
        letters
    };
    format!("{letters}-{told:016x}")
}

/// The rows of a table of CSV, each with the line on which it begins.
fn rows(text: &str) -> Vec<(usize, Vec<String>)> {
    let mut rows = Vec::new();
    let (mut row, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    let (mut line, mut begin) = (1, 1);
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cell.push('"');
            }
            '"' if quoted || cell.trim().is_empty() => quoted = !quoted,
            ',' | ';' | '\t' if !quoted => row.push(std::mem::take(&mut cell)),
            '\n' if !quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push((begin, std::mem::take(&mut row)));
                begin = line + 1;
            }
            '\r' if chars.peek() == Some(&'\n') => {}
            char => cell.push(char),
        }
        line += usize::from(char == '\n');
    }
    row.push(cell);
    rows.push((begin, row));
    rows
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use model::Advice as _;

    use super::*;

    fn names(text: &str) -> Vec<String> {
        let students = read_students(text.as_bytes(), "names.csv", "k").unwrap();
        students.into_iter().map(|it| it.name).collect()
    }

    #[test]
    fn a_list_is_a_name_a_line_or_a_table() {
        let both = ["Ada Lovelace", "Zoë"];
        assert_eq!(names("Ada Lovelace\r\nZoë\r\n\r\n"), both);
        assert_eq!(names("\u{feff}Ada Lovelace\nZoë"), both);
        assert_eq!(names("id;Name\n1;Ada Lovelace\n2;\"Zoë\"\n"), both);
        assert_eq!(names("\"Lovelace, \"\"Ada\"\"\"\n"), ["Lovelace, \"Ada\""]);
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        let list = "../../x\n/etc/passwd\n=cmd|'/C calc'!A0\n..\nCON\n漢字\n\u{202e}x\na\0b\n";
        let students = read_students(list.as_bytes(), "names.csv", "k").unwrap();
        for student in &students {
            let plain = |char: char| char.is_ascii_alphanumeric() || char == '-';
            assert!(student.slug.chars().all(plain), "{}", student.slug);
            assert!(!student.name.chars().any(plain::is_obeyed));
        }
        let slugs: BTreeSet<_> = students.iter().map(|it| &it.slug).collect();
        assert_eq!(slugs.len(), students.len());
    }

    #[test]
    fn a_seed_is_of_the_name_and_the_key_alone() {
        let of = |list: &str, key| read_students(list.as_bytes(), "names.csv", key).unwrap();
        let (few, many) = (of("Ada\nZoë\n", "k"), of("Bob\nZoë\nAda\nZoë\n", "k"));
        assert_eq!((&few[0], &few[1]), (&many[2], &many[1]));
        assert_ne!(many[1].seed, many[3].seed, "two of one name");
        assert_ne!(many[1].slug, many[3].slug);
        let other = of("Ada\n", "another");
        assert_ne!(few[0].seed, other[0].seed);
        assert_eq!(
            few[0].slug, other[0].slug,
            "the file tells nothing of the key"
        );
    }

    #[test]
    fn a_bad_list_is_refused_with_its_place() {
        let said = |bytes: &[u8]| {
            let error = read_students(bytes, "names.csv", "k").unwrap_err();
            (error.to_string(), error.advice().unwrap_or_default())
        };
        assert_eq!(
            said(b"Ada\nZo\xeb\n"),
            (
                "names.csv, line 2: no UTF-8".into(),
                "save the list as UTF-8".into()
            )
        );
        assert_eq!(said(b"name\n\n").0, "names.csv has no names");
        assert!(
            said("x".repeat(201).as_bytes())
                .0
                .contains("line 1: a name of more")
        );
        let many = "x\n".repeat(STUDENTS_MAX + 1);
        assert!(said(many.as_bytes()).0.contains("more than 10000"));
    }
}
