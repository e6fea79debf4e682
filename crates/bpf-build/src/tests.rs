use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use super::clang::{Clang, major_version};
use super::{Error, compile, paths};

/// A folder that is removed when the test ends.
pub(crate) struct Folder(pub PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("bpf-build-{}-{name}", process::id()));
        fs::create_dir_all(path.join("include")).unwrap();
        Self(path)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn build_in(folder: &Folder) -> Vec<u8> {
    folder.write(
        "include/two.h",
        "static inline int two(void) { return 2; }\n",
    );
    let source = folder.write(
        "a.bpf.c",
        "#include <two.h>\nint f(int a) { return a + two(); }\n",
    );
    compile(&source, &[&folder.0.join("include")]).unwrap()
}

#[test]
fn an_object_is_an_elf_file_for_the_bpf_machine() {
    let object = build_in(&Folder::new("elf"));
    assert_eq!(object[..4], *b"\x7fELF");
    // e_machine of a little-endian file; EM_BPF is 247 (ELF specification, machine numbers).
    assert_eq!(u16::from_le_bytes([object[18], object[19]]), 247);
}

#[test]
fn the_folder_does_not_show_in_the_object() {
    let [short, long] = [Folder::new("s"), Folder::new("a-much-longer-name")];
    let object = build_in(&short);
    assert_eq!(object, build_in(&long));
    let folder = short.0.to_str().unwrap().as_bytes();
    assert!(!object.windows(folder.len()).any(|window| window == folder));
}

#[test]
fn a_line_of_the_source_is_in_the_line_information() {
    let object = build_in(&Folder::new("lines"));
    let line = b"return a + two();";
    assert!(object.windows(line.len()).any(|window| window == line));
}

#[test]
fn a_warning_is_an_error_that_names_file_and_line() {
    let folder = Folder::new("warning");
    let source = folder.write(
        "bad.bpf.c",
        "int f(void)\n{\n\tint unused;\n\treturn 0;\n}\n",
    );
    let error = compile(&source, &[]).unwrap_err().to_string();
    assert!(error.contains("bad.bpf.c:3:6"), "{error}");
    assert!(error.contains("unused variable"), "{error}");
}

#[test]
fn headers_of_the_system_are_out_of_reach() {
    let folder = Folder::new("system");
    let source = folder.write("a.bpf.c", "#include <stdio.h>\n");
    assert!(matches!(compile(&source, &[]), Err(Error::Compile { .. })));
}

#[test]
fn a_missing_include_folder_is_named() {
    let folder = Folder::new("missing");
    let source = folder.write("a.bpf.c", "int x;\n");
    let error = compile(&source, &[Path::new("/nonexistent/include")]).unwrap_err();
    assert!(
        error.to_string().starts_with("/nonexistent/include: "),
        "{error}"
    );
}

#[test]
fn without_a_compiler_the_message_says_what_to_install() {
    let error = Clang::choose(None, &["no-such-clang-19"]).unwrap_err();
    let error = model::Advice::in_full(&error);
    assert!(
        error.contains("install clang-19 or set RUNSLICE_CLANG"),
        "{error}"
    );
}

#[test]
fn a_compiler_that_was_asked_for_is_never_replaced_by_another() {
    let error = Clang::choose(Some("/bin/true".into()), &["clang-19"]).unwrap_err();
    assert!(matches!(error, Error::ClangUnusable { .. }), "{error}");
}

#[test]
fn versions_are_read_from_what_distributions_print() {
    assert_eq!(
        major_version("Debian clang version 19.1.7 (3+b1)\nTarget: x\n"),
        Some(19)
    );
    assert_eq!(major_version("clang version 21.0.0git"), Some(21));
    assert_eq!(major_version("Apple clang version 15.0.0"), Some(15));
    assert_eq!(major_version("gcc (Debian 12.2.0-14) 12.2.0"), None);
}

#[test]
fn a_path_leads_from_one_folder_to_another() {
    let lead = |from: &str, to: &str| paths::relative(Path::new(from), Path::new(to));
    assert_eq!(
        lead("/a/tests/policies", "/a/policies/include"),
        Path::new("../../policies/include")
    );
    assert_eq!(
        lead("/a/policies", "/a/policies/include"),
        Path::new("include")
    );
    assert_eq!(lead("/a", "/a"), Path::new("."));
}

#[test]
fn the_rule_that_the_compiler_writes_is_read_back() {
    let rule = "out.o: a.bpf.c include/two.h \\\n  ../with\\ space.h\n";
    assert_eq!(
        paths::prerequisites(rule),
        ["a.bpf.c", "include/two.h", "../with space.h"]
    );
    assert!(paths::prerequisites("").is_empty());
}
