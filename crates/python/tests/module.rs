//! The compiled half of the Python package, as a file: no interpreter is needed to look at it.

use std::path::PathBuf;

use object::read::elf::ElfFile64;
use object::{Object as _, ObjectSymbol as _};

/// The file that Python loads. Cargo makes it for this test.
fn library() -> PathBuf {
    let me = std::env::current_exe().expect("a test has a file");
    me.with_file_name("lib_runslice.so")
}

/// Any Python from 3.10 on loads it, and none is needed to build it: what it takes from Python is
/// looked up in the process that loads it.
#[test]
fn it_is_an_extension_module_that_needs_no_library_of_python() {
    let bytes = std::fs::read(library()).expect("cargo has built it");
    let file: ElfFile64<'_> = ElfFile64::parse(&*bytes).expect("a shared object");
    let exported = |name: &str| {
        let mut symbols = file.dynamic_symbols();
        symbols.any(|it| it.is_definition() && it.name() == Ok(name))
    };
    assert!(exported("PyInit__runslice"));
    let text = |name: &[u8]| bytes.windows(name.len()).any(|it| it == name);
    assert!(!text(b"libpython"), "it names a library of Python");
}
