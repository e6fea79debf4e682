//! Where an address is in a policy's source.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::os::fd::OwnedFd;

use libbpf_rs::btf::types::{Func, MemberAttr, Struct};
use libbpf_rs::btf::{Btf, TypeId};
use libbpf_rs::query::{LineInfo, MapInfoIter, ProgInfoIter, ProgInfoQueryOptions, ProgramInfo};
use libbpf_rs::{
    AsRawLibbpf as _, MapCore as _, MapFlags, MapHandle, MapType, Program, ProgramType,
};
use model::source::{folder, own_file};
use model::{Caller, NOWHERE, Op, Text};

use crate::variables;

/// The type of a policy's table in the kernel (6.18): what the map of an attached one holds.
const TABLE: &str = "bpf_struct_ops_sched_ext_ops";

/// The machine code of all loaded programs.
#[derive(Debug, Default)]
pub struct KernelCode {
    /// By the first address.
    functions: BTreeMap<u64, Function>,
    /// By the address of the first instruction: the place.
    lines: BTreeMap<u64, u32>,
    /// What the places are.
    places: Vec<Text>,
    /// The `dispatch` of the attached policies: a program, and its function's name.
    dispatches: Vec<(u32, String)>,
}

#[derive(Debug)]
struct Function {
    end: u64,
    /// It comes from a header of others, whose caller tells more.
    is_header: bool,
    /// The place of the function itself.
    place: u32,
    caller: Caller,
}

impl KernelCode {
    /// Reads what the kernel tells of its programs; empty without the right to that.
    pub fn read() -> Self {
        let callbacks = callbacks();
        let wanted = ProgInfoQueryOptions::default()
            .include_func_info(true)
            .include_line_info(true)
            .include_jited_line_info(true)
            .include_jited_func_lens(true)
            .include_jited_ksyms(true);
        let mut code = Self::default();
        for program in ProgInfoIter::with_query_opts(wanted) {
            let Ok(btf) = Btf::from_prog_id(program.id) else {
                continue;
            };
            let op = callbacks.get(&program.id).copied();
            let is_callback = program.ty == ProgramType::StructOps;
            let named = || op_named(&function_name(&btf, &program, 0)?);
            let op = op.or_else(|| named().filter(|_| is_callback));
            code.add(&program, &btf, op.map_or(Caller::Program, Caller::Callback));
            if op == Some(Op::Dispatch)
                && let Some(name) = function_name(&btf, &program, 0)
            {
                code.dispatches.push((program.id, name));
            }
        }
        code
    }

    fn add(&mut self, program: &ProgramInfo, btf: &Btf<'_>, caller: Caller) {
        let starts = program.jited_ksyms.iter().map(|start| start.addr() as u64);
        let lengths = program
            .jited_func_lens
            .iter()
            .map(|length| u64::from(*length));
        // The folder of the program's first function.
        let mut main = None;
        for (at, (start, length)) in starts.zip(lengths).enumerate() {
            let name = function_name(btf, program, at);
            let name = name.unwrap_or_else(|| program.name.to_string_lossy().into_owned());
            let place = self.place(&name, None, 0);
            let end = start.saturating_add(length);
            let addresses = program.jited_line_info.iter().map(|it| it.addr() as u64);
            let lines = addresses.zip(&program.line_info);
            let lines = lines.filter(|(address, _)| (start..end).contains(address));
            let lines: Vec<_> = lines
                .map(|(address, line)| (address, file_name(btf, line), line.line_num))
                .collect();
            let files = lines.iter().filter_map(|(_, file, _)| file.as_deref());
            let file = own_file(files).map(str::to_owned);
            let of = file.as_deref().map(folder);
            let of: Option<Vec<_>> = of.map(|names| names.into_iter().map(str::to_owned).collect());
            let main = main.get_or_insert_with(|| of.clone());
            let function = Function {
                end,
                is_header: main.is_some() && of.is_some() && *main != of,
                place,
                caller,
            };
            self.functions.insert(start, function);
            // In front of its first own line it is there, too.
            let begin = lines.iter().find(|(_, it, _)| *it == file).cloned();
            let begin = begin.map(|(_, file, line)| (start, file, line));
            let lines = begin.into_iter().chain(lines).collect();
            self.add_lines(&name, lines, file.as_deref());
        }
    }

    /// Those of another file are of functions that the compiler has built in: the line in the
    /// function's own `file` in front of them says where.
    fn add_lines(
        &mut self,
        function: &str,
        lines: Vec<(u64, Option<String>, u32)>,
        file: Option<&str>,
    ) {
        let own = lines.into_iter().filter(|(_, it, _)| it.as_deref() == file);
        for (address, file, line) in own {
            let file = file.as_deref().and_then(last_name);
            let place = self.place(function, file, line);
            self.lines.insert(address, place);
        }
    }

    fn place(&mut self, function: &str, file: Option<String>, line: u32) -> u32 {
        let place = u32::try_from(self.places.len()).unwrap_or(NOWHERE);
        self.places.push(Text::Place {
            place,
            function: function.to_owned(),
            file,
            line,
        });
        place
    }

    /// Where the innermost program among the return addresses `frames` is, and who called the
    /// outermost one.
    pub fn find(&self, frames: impl Iterator<Item = u64>) -> (u32, Caller) {
        let (mut place, mut caller) = (NOWHERE, Caller::Kernel);
        let mut is_found = false;
        for frame in frames {
            // A return address stands behind the call, maybe behind the function.
            let call = frame.wrapping_sub(1);
            let before = self.functions.range(..=call).next_back();
            let Some((start, function)) = before.filter(|(_, it)| call < it.end) else {
                continue;
            };
            if !is_found {
                let line = self.lines.range(*start..=call).next_back();
                place = line.map_or(function.place, |(_, place)| *place);
                is_found = !function.is_header;
            }
            caller = function.caller;
        }
        (place, caller)
    }

    /// What the places are that [`find`](Self::find) gives.
    pub fn into_places(self) -> Vec<Text> {
        self.places
    }

    /// The program of the only attached policy's `dispatch`, and the name of its function.
    pub fn dispatch(&self) -> Option<(OwnedFd, String)> {
        let [(id, name)] = self.dispatches.as_slice() else {
            return None;
        };
        Some((Program::fd_from_id(*id).ok()?, name.clone()))
    }
}

/// Which programs are callbacks of policies.
fn callbacks() -> BTreeMap<u32, Op> {
    let mut callbacks = BTreeMap::new();
    let Ok(kernel) = Btf::from_vmlinux() else {
        return callbacks;
    };
    let Some(data) = variables::member(&kernel, TABLE, "data") else {
        return callbacks;
    };
    let Some(table) = kernel.type_by_name::<Struct<'_>>("sched_ext_ops") else {
        return callbacks;
    };
    let members = || {
        table.iter().filter_map(|member| {
            let MemberAttr::Normal { offset } = member.attr else {
                return None;
            };
            let name = member.name?.to_str()?;
            let op = Op::ALL.iter().find(|op| op.name() == name)?;
            Some((data + offset as usize / 8, *op))
        })
    };
    for map in MapInfoIter::default().filter(|map| map.ty == MapType::StructOps) {
        let kind = kernel.type_by_id::<Struct<'_>>(TypeId::from(map.btf_vmlinux_value_type_id));
        if kind
            .and_then(|it| it.name())
            .is_none_or(|name| name != TABLE)
        {
            continue;
        }
        let Ok(handle) = MapHandle::from_map_id(map.id) else {
            continue;
        };
        let Ok(Some(value)) = handle.lookup(&0_u32.to_ne_bytes(), MapFlags::empty()) else {
            continue;
        };
        for (offset, op) in members() {
            // The kernel puts the program's number where the pointer is (kernel 6.18,
            // kernel/bpf/bpf_struct_ops.c, `bpf_struct_ops_map_update_elem()`).
            let word = value.get(offset..offset + 4);
            let word = word.and_then(|word| word.try_into().ok());
            match word.map_or(0, u32::from_ne_bytes) {
                0 => {}
                program => _ = callbacks.insert(program, op),
            }
        }
    }
    callbacks
}

/// The callback that a function is, by the end of its name, as policies call them: where the table
/// of an attached policy does not say it.
fn op_named(function: &str) -> Option<Op> {
    let is_it = |op: &&Op| {
        let before = function.strip_suffix(op.name());
        before.is_some_and(|before| before.is_empty() || before.ends_with('_'))
    };
    Op::ALL
        .iter()
        .filter(is_it)
        .max_by_key(|op| op.name().len())
        .copied()
}

fn function_name(btf: &Btf<'_>, program: &ProgramInfo, at: usize) -> Option<String> {
    let id = program.func_info.get(at)?.type_id;
    let function = btf.type_by_id::<Func<'_>>(TypeId::from(id))?;
    Some(function.name()?.to_string_lossy().into_owned())
}

/// The last part of a file's name.
fn last_name(name: &str) -> Option<String> {
    let name = name.rsplit('/').next().unwrap_or_default();
    (!name.is_empty()).then(|| name.to_owned())
}

/// The name of the line's file, as the compiler wrote it.
fn file_name(btf: &Btf<'_>, line: &LineInfo) -> Option<String> {
    #[expect(
        unsafe_code,
        reason = "the library has no safe way to a string by its offset"
    )]
    // SAFETY: `btf` is alive, and libbpf checks the offset.
    let name = unsafe {
        let name = libbpf_rs::libbpf_sys::btf__name_by_offset(
            btf.as_libbpf_object().as_ptr(),
            line.file_name_off,
        );
        if name.is_null() {
            return None;
        }
        CStr::from_ptr(name)
    };
    Some(name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callback_is_known_by_the_end_of_its_name() {
        assert_eq!(op_named("stops_dispatch"), Some(Op::Dispatch));
        assert_eq!(op_named("a_b_cgroup_exit"), Some(Op::CgroupExit));
        assert_eq!(op_named("running"), Some(Op::Running));
        assert_eq!(op_named("nodispatch"), None);
        assert_eq!(op_named(""), None);
    }

    #[test]
    fn a_decision_is_where_the_innermost_program_is_and_of_whom_the_outermost_was() {
        let mut code = KernelCode::default();
        let callback = Caller::Callback(Op::Enqueue);
        for (start, caller) in [
            (0x1000, callback),
            (0x2000, Caller::Program),
            (0x4000, callback),
        ] {
            let place = code.place("whole", None, 0);
            let function = Function {
                end: start + 0x100,
                is_header: start == 0x4000,
                place,
                caller,
            };
            code.functions.insert(start, function);
        }
        let file = Some("/a/x.bpf.c".to_owned());
        let header = Some("/a/scx/compat.bpf.h".to_owned());
        let lines = vec![
            (0x1000, file.clone(), 10),
            (0x1020, file.clone(), 11),
            (0x1080, file.clone(), 12),
            (0x10a0, header.clone(), 343),
        ];
        code.add_lines("part", lines, file.as_deref());
        code.add_lines("part", vec![(0x2010, file.clone(), 20)], file.as_deref());
        code.add_lines(
            "wrapper",
            vec![(0x4000, header.clone(), 343)],
            header.as_deref(),
        );
        let found = |frames: &[u64]| {
            let (place, caller) = code.find(frames.iter().copied());
            let place = code.places.get(place as usize).map(|place| match place {
                Text::Place { line, .. } => *line,
                _ => unreachable!("places only"),
            });
            (place, caller)
        };
        assert_eq!(found(&[0x99, 0x1080, 0x5000]), (Some(11), callback));
        assert_eq!(found(&[0x1100]), (Some(12), callback), "a call at the end");
        assert_eq!(found(&[0x2008, 0x1001]), (Some(0), callback), "no line");
        assert_eq!(found(&[0x2090]), (Some(20), Caller::Program));
        assert_eq!(found(&[0x10b0]), (Some(12), callback), "built in");
        assert_eq!(found(&[0x4010, 0x1030]), (Some(11), callback), "called");
        assert_eq!(found(&[0x4010]), (Some(343), callback), "of nobody known");
        assert_eq!(found(&[0, 0x3000]), (None, Caller::Kernel));
    }
}
