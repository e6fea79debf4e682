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
}
