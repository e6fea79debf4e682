//! Names of source files, as compilers write them into objects.

/// The folder of a source file, name by name from the top. Compilers write one folder in several
/// ways: `/a/b/c.h` and `/a/./x/../b/d.h` lie in the same one.
#[must_use]
pub fn folder(file: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for name in file.split('/') {
        match name {
            "." => {}
            ".." if names.last().is_some_and(|it| !["", ".."].contains(it)) => _ = names.pop(),
            name => names.push(name),
        }
    }
    names.pop();
    names
}

/// The file of a function whose lines are in these files, in the order of its instructions. The
/// first one may come from a header that is built in; no header has another file built in.
#[must_use]
pub fn own_file<'a>(files: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut files = files.peekable();
    let first = files.peek().copied();
    files.find(|file| !file.ends_with(".h")).or(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_the_same_however_they_are_written() {
        for (one, other) in [
            ("/a/b/c.h", "/a/./b/d.h"),
            ("./x.c", "y.h"),
            ("/a/../b/c", "/b/d"),
        ] {
            assert_eq!(folder(one), folder(other));
        }
        assert_ne!(folder("../x.h"), folder("x.h"));
        assert_ne!(folder("/x.h"), folder("x.h"));
    }

    #[test]
    fn a_function_that_begins_with_a_header_is_in_its_own_file() {
        let own = |files: &[&'static str]| own_file(files.iter().copied());
        assert_eq!(
            own(&["x/compat.bpf.h", "mine.bpf.c", "x/common.h"]),
            Some("mine.bpf.c")
        );
        assert_eq!(
            own(&["x/compat.bpf.h", "x/common.h"]),
            Some("x/compat.bpf.h")
        );
        assert_eq!(own(&[]), None);
    }
}
