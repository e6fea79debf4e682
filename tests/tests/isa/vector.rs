//! A vector: a program and what it gives.
//!
//! Sections begin with `-- name`; a line that starts with `#` is a comment.
//!
//! | section | content |
//! | --- | --- |
//! | `asm` | instructions, see `assembler.rs` |
//! | `raw` | the same, or instead: words (`0x...`) or bytes in hexadecimal |
//! | `mem` | bytes; `r1` points to them, `r2` is their number |
//! | `result` | `r0` at the end |
//! | `error` | the program does not load, or a fault ends it; some text of the message |
//! | `retired` | how many instructions were counted (ours) |
//!
//! Sections of the public suite that say nothing to us are skipped: `c`, `no register offset`.

use std::collections::BTreeMap;
use std::sync::Arc;

use bpf::{
    Backend, CallCtx, Config, Direct, Function, HostFunction, Image, Import, Insn, Instance,
    LoadError, Stop, Violation,
};
use runslice_tests::nobody::Nobody;

use super::assembler::{self, Program};

/// Every vector runs on each.
pub const BACK_ENDS: [Backend; 2] = [Backend::Interpreter, Backend::Jit];

/// A parsed vector.
#[derive(Debug)]
pub struct Vector {
    program: Program,
    mem: Vec<u8>,
    /// `r0` as stated.
    pub result: Option<u64>,
    error: Option<String>,
    retired: Option<u64>,
}

/// What a run gave.
#[derive(Debug)]
pub struct Run {
    /// `r0`.
    pub result: u64,
    retired: u64,
}

impl Vector {
    /// Parses and assembles.
    pub fn parse(text: &str) -> Result<Self, String> {
        let sections = sections(text)?;
        let raw = sections.get("raw").map(|raw| raw_code(raw)).transpose()?;
        let program = match (sections.get("asm"), raw) {
            (Some(asm), raw) => {
                let program = assembler::assemble(asm)?;
                if raw.is_some_and(|raw| raw != program.code) {
                    return Err("`asm` and `raw` differ".into());
                }
                program
            }
            (None, Some(code)) => Program {
                code,
                functions: vec![0],
            },
            (None, None) => return Err("no program".into()),
        };
        let number = |name| {
            sections
                .get(name)
                .map(|text| assembler::number(text.trim()))
        };
        let unsigned = |value: Option<Result<i128, String>>| {
            value
                .transpose()
                .map(|value| value.map(|value| value as u64))
        };
        Ok(Self {
            program,
            mem: sections
                .get("mem")
                .map(|mem| hex_bytes(mem))
                .transpose()?
                .unwrap_or_default(),
            result: unsigned(number("result"))?,
            error: sections.get("error").map(|text| text.trim().to_owned()),
            retired: unsigned(number("retired"))?,
        })
    }

    /// Runs the program on both back ends and compares with what the vector states.
    pub fn check(&self) -> Result<(), String> {
        for backend in BACK_ENDS {
            self.check_on(backend)
                .map_err(|error| format!("{backend:?}: {error}"))?;
        }
        Ok(())
    }

    /// Runs the program on one back end and compares.
    pub fn check_on(&self, backend: Backend) -> Result<(), String> {
        let run = match (self.run(backend), &self.error) {
            (Err(error), Some(stated)) if error.contains(stated.as_str()) => return Ok(()),
            (Err(error), _) => return Err(error),
            (Ok(_), Some(_)) => return Err("it runs, and should not".into()),
            (Ok(run), None) => run,
        };
        let stated = self.result.ok_or("it states no result")?;
        if run.result != stated {
            return Err(format!("r0 is {:#x}, not {stated:#x}", run.result));
        }
        match self.retired {
            Some(stated) if stated != run.retired => Err(format!(
                "{} instructions were counted, not {stated}",
                run.retired
            )),
            _ => Ok(()),
        }
    }

    /// The first instruction with a field that must be zero and is not, and that field. The offset
    /// of a move is zero or one of a few widths.
    pub fn reserved_field(&self) -> Option<(usize, &'static str)> {
        use Violation::{ReservedField, UndefinedField};
        match self.image().check() {
            Err(LoadError::Structure {
                insn,
                violation: ReservedField { field, .. } | UndefinedField { field, .. },
                ..
            }) => Some((insn as usize, field)),
            _ => None,
        }
    }

    /// The same program with `field` of an instruction zeroed.
    pub fn without(mut self, (insn, field): (usize, &str)) -> Self {
        let insn = &mut self.program.code[insn];
        match field {
            "dst" => insn.dst = 0,
            "src" => insn.src = 0,
            "off" => insn.off = 0,
            _ => insn.imm = 0,
        }
        self
    }

    /// Makes the program ready to run, on both back ends.
    pub fn load(&self) -> Result<(), String> {
        let image = Arc::new(self.image());
        image.check().map_err(|error| error.to_string())?;
        for backend in BACK_ENDS {
            let config = Config {
                backend,
                ..Config::default()
            };
            Instance::new(Arc::clone(&image), &TABLE, config).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    /// Loads and runs the program.
    pub fn run(&self, backend: Backend) -> Result<Run, String> {
        let image = Arc::new(self.image());
        image.check_unless_call_by_register()?;
        let config = Config {
            budget: 1_000_000,
            backend,
            ..Config::default()
        };
        let mut instance =
            Instance::new(image, &TABLE, config).map_err(|error| error.to_string())?;
        let len = self.mem.len() as u64;
        let mem = instance
            .memory()
            .alloc_map(len)
            .map_err(|error| error.to_string())?;
        instance.memory().write(mem, &self.mem);
        let entry = instance.function_address(0).ok_or("no function")?;
        let result = instance.call_function(entry, [mem, len, 0, 0, 0], &mut Nobody::default());
        let result = result.map_err(|fault| fault.to_string())?;
        Ok(Run {
            result,
            retired: instance.retired(),
        })
    }

    fn image(&self) -> Image {
        let starts = &self.program.functions;
        let ends = starts[1..]
            .iter()
            .copied()
            .chain([self.program.code.len() as u32]);
        let function = |(at, (start, end)): (usize, (&u32, u32))| Function {
            name: format!("function{at}"),
            start: *start,
            len: end - start,
        };
        Image {
            code: self.program.code.clone(),
            functions: starts.iter().zip(ends).enumerate().map(function).collect(),
            programs: Vec::new(),
            maps: Vec::new(),
            imports: (0..=UNWIND).map(import).collect(),
            variables: Vec::new(),
            poisons: vec!["poisoned".into()],
            struct_ops: Vec::new(),
            symbols: Vec::new(),
            knobs: Vec::new(),
            types: Vec::new(),
            lines: Vec::new(),
            reads: Vec::new(),
            license: "MIT".into(),
        }
    }
}

/// The structural check refuses calls by register, as the kernel does; the suite has one.
trait StructuralCheck {
    fn check_unless_call_by_register(&self) -> Result<(), String>;
}

impl StructuralCheck for Image {
    fn check_unless_call_by_register(&self) -> Result<(), String> {
        if self
            .code
            .iter()
            .any(|insn| insn.code == assembler::CALL_REGISTER)
        {
            return Ok(());
        }
        self.check().map_err(|error| error.to_string())
    }
}

/// The suite's helper 5 ends a program when its argument is 0; no vector passes 0.
const UNWIND: u32 = 5;

/// Import `number` is the suite's helper `number`.
fn import(number: u32) -> Import {
    Import {
        name: "unwind".into(),
        prototype: String::new(),
        helper: Some(number),
        callers: Vec::new(),
    }
}

const TABLE: [HostFunction<Nobody>; 1] = [HostFunction {
    name: "unwind",
    prototype: "",
    cost_ps: 0,
    body: Some(unwind),
    direct: Some(Direct::of(unwind)),
}];

fn unwind(_: &mut CallCtx<'_, Nobody>, args: [u64; 5]) -> Result<u64, Stop> {
    match args[0] {
        0 => Err(Stop::Refused("unwound".into())),
        value => Ok(value),
    }
}

const SECTIONS: [&str; 8] = [
    "asm",
    "raw",
    "mem",
    "result",
    "error",
    "retired",
    "c",
    "no register offset",
];

fn sections(text: &str) -> Result<BTreeMap<&'static str, String>, String> {
    let mut sections: BTreeMap<&'static str, String> = BTreeMap::new();
    let mut current = None;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("--") {
            let known = SECTIONS.iter().find(|known| **known == name.trim());
            let known = known.ok_or_else(|| format!("unknown section `{}`", name.trim()))?;
            sections.insert(known, String::new());
            current = Some(*known);
        } else if let Some(section) = current.and_then(|name| sections.get_mut(name))
            && !line.trim_start().starts_with('#')
        {
            section.push_str(line);
            section.push('\n');
        }
    }
    Ok(sections)
}

fn hex_bytes(text: &str) -> Result<Vec<u8>, String> {
    let byte = |word: &str| u8::from_str_radix(word, 16).map_err(|e| format!("`{word}`: {e}"));
    text.split_whitespace().map(byte).collect()
}

fn raw_code(text: &str) -> Result<Vec<Insn>, String> {
    let mut bytes = Vec::new();
    for word in text.split_whitespace() {
        match word.strip_prefix("0x") {
            Some(digits) => {
                let word = u64::from_str_radix(digits, 16).map_err(|error| error.to_string())?;
                bytes.extend(word.to_le_bytes());
            }
            None => bytes.extend(hex_bytes(word)?),
        }
    }
    match bytes.as_chunks::<8>() {
        (slots, []) => Ok(slots.iter().map(slot).collect()),
        _ => Err("an instruction has 8 bytes".into()),
    }
}

fn slot(bytes: &[u8; 8]) -> Insn {
    let [code, registers, low, high, imm @ ..] = *bytes;
    Insn {
        code,
        dst: registers & 15,
        src: registers >> 4,
        off: i16::from_le_bytes([low, high]),
        imm: i32::from_le_bytes(imm),
    }
}
