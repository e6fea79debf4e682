//! The loader, from the outside: fixtures in C, compiled here, linked against a small kernel.

mod core_reloc;
mod damage;
mod externs;
mod globals;
mod image;
mod paths;

use std::path::Path;

use bpf::{Image, Insn, Kconfig, Object, Target};

/// A fixture's object file.
fn bytes(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    bpf_build::compile(&folder.join(name), &[&folder]).expect("the fixture compiles")
}

fn object(name: &str) -> Object {
    Object::parse(&bytes(name)).expect("the fixture parses")
}

/// The kernel of `fixtures/kernel.h`, version 6.18.3.
fn target() -> Target {
    let target = Target::new("toy", (6, 18, 3), &bytes("kernel.h")).expect("the kernel parses");
    target
        .with_kconfig("CONFIG_ON", Kconfig::Bool(true))
        .with_kconfig("CONFIG_HZ", Kconfig::Int(250))
        .with_kconfig("CONFIG_TEXT", Kconfig::Text("abc".to_owned()))
}

fn linked(name: &str) -> Image {
    object(name).link(&target()).expect("the fixture links")
}

/// The instructions of a function.
fn code<'a>(image: &'a Image, name: &str) -> &'a [Insn] {
    let function = image
        .functions
        .iter()
        .find(|function| function.name == name);
    let function = function.expect("the image has the function");
    &image.code[function.start as usize..][..function.len as usize]
}
