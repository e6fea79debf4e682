//! Which functions come from headers of others.
//!
//! A header such as scx's compat.bpf.h wraps functions of the kernel, and a compiler may leave the
//! wrapper a function of its own. Where its caller is tells more than where the wrapper is.

use std::collections::BTreeSet;

use model::source::folder;

use crate::Image;
use crate::op::FunctionEntry;

/// Sections of a policy's callbacks begin so; `?` keeps a program from being loaded unasked.
const CALLBACKS: &str = "struct_ops";

/// Marks functions from `first` on that lie outside of the policy's own folders: those of the files
/// with its callbacks. A program that was loaded alone has the folder of its first function.
pub(crate) fn mark(image: &Image, entries: &mut [FunctionEntry], first: usize) {
    let own = folders(image, first);
    if own.is_empty() {
        return;
    }
    for (function, entry) in image.functions.iter().zip(entries).skip(first) {
        let folder = image.file_of(function).map(folder);
        entry.is_header = folder.is_some_and(|folder| !own.contains(&folder));
    }
}

fn folders(image: &Image, first: usize) -> BTreeSet<Vec<&str>> {
    let is_callback = |section: &str| section.trim_start_matches('?').starts_with(CALLBACKS);
    let has_any = image.programs.iter().any(|it| is_callback(&it.section));
    let programs = image.programs.iter();
    let programs = programs.filter(|it| !has_any || is_callback(&it.section));
    let mut functions: Vec<_> = programs.map(|it| it.function as usize).collect();
    if functions.is_empty() {
        functions.push(first);
    }
    let functions = functions.iter().filter_map(|at| image.functions.get(*at));
    functions
        .filter_map(|it| image.file_of(it))
        .map(folder)
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::image::Line;
    use crate::scene::insn::{EXIT, call, call_local, jump_if_zero, mov};
    use crate::scene::{SceneObject, SceneWorld};
    use crate::{Backend, CallCtx, Config, HostFunction, Instance, Stop};

    const MINE: &str = "/src/./mine.bpf.c";

    fn where_it_is(ctx: &mut CallCtx<'_, SceneWorld>, _: [u64; 5]) -> Result<u64, Stop> {
        ctx.host.released.push(ctx.vm.current_place().into());
        Ok(0)
    }

    /// A callback that calls a function of `file`, which calls the host and chooses, at
    /// operations 0 to 1 and 2 to 6. `begin` is the file of the callback's first instruction.
    fn object(begin: &str, file: &str) -> Instance<SceneWorld> {
        let wrapper = [call(0), jump_if_zero(0), mov(0, 1), EXIT];
        let object = SceneObject::default()
            .import("host", "void()")
            .function(&[&[call_local(1), EXIT]])
            .function(&[&wrapper]);
        let mut image = (*object.image()).clone();
        let line = |insn, file: &str, line| Line {
            insn,
            file: file.into(),
            line,
        };
        image.lines = vec![
            line(0, begin, 9),
            line(1, MINE, 10),
            line(2, file, 300),
            line(3, file, 343),
        ];
        let table = [HostFunction {
            name: "host",
            prototype: "void()",
            cost_ps: 0,
            body: Some(where_it_is as crate::Body<SceneWorld>),
            direct: None,
        }];
        let config = Config {
            places: true,
            backend: Backend::Jit,
            ..Config::default()
        };
        Instance::new(image.into(), &table, config).expect("a good object")
    }

    #[test]
    fn a_wrapper_of_a_header_is_where_its_caller_is() {
        for (file, places, line) in [
            ("/src/scx/compat.bpf.h", [0, 0], 9),
            ("/usr/include/scx/compat.bpf.h", [0, 0], 9),
            ("/src/queue.bpf.h", [2, 3], 343),
            ("/src/scx/../queue.bpf.h", [2, 3], 343),
            ("/src/mine.bpf.c", [2, 3], 343),
        ] {
            let (mut vm, mut host) = (object(MINE, file), SceneWorld::default());
            // The first calls are interpreted.
            for _ in 0..50 {
                host.released.clear();
                assert_eq!(vm.call_program(0, &[], &mut host), Ok(0));
                let [called, chose] = places;
                assert_eq!(host.released, [u64::from(called)], "{file}");
                assert_eq!(vm.current_place(), chose, "{file}");
            }
            assert_eq!(
                vm.place(vm.current_place()).map(|it| it.line),
                Some(line),
                "{file}"
            );
        }
    }

    /// A compiler may build a header's function in as the first thing that a callback does.
    #[test]
    fn a_callback_that_begins_with_a_header_is_in_its_own_file() {
        let header = "/src/scx/compat.bpf.h";
        let (mut vm, mut host) = (object(header, header), SceneWorld::default());
        assert_eq!(vm.call_program(0, &[], &mut host), Ok(0));
        let place = vm.place(vm.current_place()).expect("it has lines");
        assert_eq!((place.file.as_deref(), place.line), (Some(MINE), 10));
    }
}
