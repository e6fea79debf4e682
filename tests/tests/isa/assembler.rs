//! An assembler for the text of the conformance vectors.
//!
//! Registers are `r0` or `%r0`, memory is `[r1+2]`, numbers are decimal or `0x` hexadecimal. The
//! label `exit` exists without being defined: it is the last `exit` instruction.

use std::collections::BTreeMap;

use bpf::Insn;

/// Instructions, and where their functions begin: the first at 0, the others where a
/// `call local` leads.
#[derive(Debug)]
pub struct Program {
    /// Slots.
    pub code: Vec<Insn>,
    /// First slot of each function, in order.
    pub functions: Vec<u32>,
}

/// Code of a call whose target is in a register.
pub const CALL_REGISTER: u8 = 0x8d;

/// An instruction, and the label that it needs.
struct Line<'a> {
    slots: Vec<Insn>,
    label: Option<(&'a str, Place)>,
}

/// Where a label's distance or index goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Off,
    Imm,
    Function,
}

type Assembled<T> = Result<T, String>;

/// Assembles a text of one instruction or label a line.
pub fn assemble(text: &str) -> Assembled<Program> {
    let mut lines = Vec::new();
    let mut labels = BTreeMap::new();
    let mut slot = 0;
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        if let Some(label) = line.strip_suffix(':') {
            labels.insert(label.trim(), slot);
            continue;
        }
        let parsed = parse(line).map_err(|error| format!("`{line}`: {error}"))?;
        if line == "exit" {
            labels.insert("exit", slot);
        }
        slot += parsed.slots.len() as i64;
        lines.push(parsed);
    }
    if lines.is_empty() {
        return Err("no instructions".into());
    }
    link(lines, &labels)
}

fn link(lines: Vec<Line<'_>>, labels: &BTreeMap<&str, i64>) -> Assembled<Program> {
    let is_function = |line: &Line<'_>| match line.label {
        Some((label, Place::Function)) => labels.get(label).map(|slot| *slot as u32),
        _ => None,
    };
    let mut functions: Vec<u32> = lines.iter().filter_map(is_function).chain([0]).collect();
    functions.sort_unstable();
    functions.dedup();
    let mut code: Vec<Insn> = Vec::new();
    for Line { mut slots, label } in lines {
        if let Some((label, place)) = label {
            let target = *labels
                .get(label)
                .ok_or_else(|| format!("no label `{label}`"))?;
            let distance = target - (code.len() as i64 + 1);
            let index = functions
                .iter()
                .position(|start| i64::from(*start) == target);
            match place {
                Place::Off => slots[0].off = fit(distance.into(), "jump")?,
                Place::Imm => slots[0].imm = fit(distance.into(), "jump")?,
                Place::Function => slots[0].imm = fit(index.unwrap_or(0) as i128, "function")?,
            }
        }
        code.extend(slots);
    }
    Ok(Program { code, functions })
}

fn parse(line: &str) -> Assembled<Line<'_>> {
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let operands: Vec<&str> = rest
        .split(',')
        .map(str::trim)
        .filter(|o| !o.is_empty())
        .collect();
    let plain = |insn| {
        Ok(Line {
            slots: vec![insn],
            label: None,
        })
    };
    match (name, operands.as_slice()) {
        ("exit", []) => plain(Insn {
            code: 0x95,
            ..Insn::default()
        }),
        ("lddw", [dst, value]) => constant(register(dst)?, number(value)?),
        ("lock", [target, value]) => plain(atomic(target, register(value)?)?),
        ("call", [target]) => call(target),
        ("ja", [label]) => Ok(jump(
            Insn {
                code: 0x05,
                ..Insn::default()
            },
            label,
            Place::Off,
        )),
        ("ja32", [label]) => Ok(jump(
            Insn {
                code: 0x06,
                ..Insn::default()
            },
            label,
            Place::Imm,
        )),
        (_, [dst]) => plain(unary(name, register(dst)?)?),
        (_, [dst, src]) if name.starts_with("ldx") => plain(load(name, dst, src)?),
        (_, [dst, src]) if name.starts_with("st") => plain(store(name, dst, src)?),
        (_, [dst, src]) => plain(arithmetic(name, register(dst)?, src)?),
        (_, [dst, src, label]) => Ok(jump(
            conditional(name, register(dst)?, src)?,
            label,
            Place::Off,
        )),
        _ => Err("no such instruction".into()),
    }
}

fn jump(insn: Insn, target: &str, place: Place) -> Line<'_> {
    let relative = target.strip_prefix('+').unwrap_or(target);
    let mut line = Line {
        slots: vec![insn],
        label: Some((target, place)),
    };
    if let Some(off) = number(relative)
        .ok()
        .and_then(|distance| i16::try_from(distance).ok())
    {
        line.label = None;
        match place {
            Place::Imm => line.slots[0].imm = off.into(),
            _ => line.slots[0].off = off,
        }
    }
    line
}

fn constant<'a>(dst: u8, value: i128) -> Assembled<Line<'a>> {
    if value < i64::MIN.into() || value > u64::MAX.into() {
        return Err("more than 64 bits".into());
    }
    let low = Insn {
        code: 0x18,
        dst,
        imm: value as i32,
        ..Insn::default()
    };
    let high = Insn {
        imm: (value >> 32) as i32,
        ..Insn::default()
    };
    Ok(Line {
        slots: vec![low, high],
        label: None,
    })
}

fn call(target: &str) -> Assembled<Line<'_>> {
    let insn = Insn {
        code: 0x85,
        ..Insn::default()
    };
    if let Some(label) = target.strip_prefix("local") {
        let insn = Insn { src: 1, ..insn };
        return Ok(Line {
            slots: vec![insn],
            label: Some((label.trim(), Place::Function)),
        });
    }
    let insn = match register(target) {
        Ok(dst) => Insn {
            code: CALL_REGISTER,
            dst,
            ..insn
        },
        Err(_) => Insn {
            imm: fit(number(target)?, "helper")?,
            ..insn
        },
    };
    Ok(Line {
        slots: vec![insn],
        label: None,
    })
}

/// `lock [fetch] add32 [r10-8], r1`: `target` is all before the comma.
fn atomic(target: &str, src: u8) -> Assembled<Insn> {
    let (words, memory) = target.split_once('[').ok_or("no memory operand")?;
    let (dst, off) = memory_operand(&format!("[{memory}"))?;
    let words: Vec<&str> = words.split_whitespace().collect();
    let (fetch, name) = match words[..] {
        ["fetch", name] => (1, name),
        [name] => (0, name),
        _ => return Err("no such atomic operation".into()),
    };
    let (name, code) = match name.strip_suffix("32") {
        Some(name) => (name, 0xc3),
        None => (name, 0xdb),
    };
    let imm = match (name, fetch) {
        ("add", _) => fetch,
        ("or", _) => 0x40 | fetch,
        ("and", _) => 0x50 | fetch,
        ("xor", _) => 0xa0 | fetch,
        ("xchg", 0) => 0xe1,
        ("cmpxchg", 0) => 0xf1,
        _ => return Err("no such atomic operation".into()),
    };
    Ok(Insn {
        code,
        dst,
        src,
        off,
        imm,
    })
}

fn unary(name: &str, dst: u8) -> Assembled<Insn> {
    let (code, imm) = match name {
        "neg" => (0x87, 0),
        "neg32" => (0x84, 0),
        "le16" => (0xd4, 16),
        "le32" => (0xd4, 32),
        "le64" => (0xd4, 64),
        "be16" => (0xdc, 16),
        "be32" => (0xdc, 32),
        "be64" => (0xdc, 64),
        "swap16" | "bswap16" => (0xd7, 16),
        "swap32" | "bswap32" => (0xd7, 32),
        "swap64" | "bswap64" => (0xd7, 64),
        _ => return Err("no such instruction".into()),
    };
    Ok(Insn {
        code,
        dst,
        imm,
        ..Insn::default()
    })
}

/// The size bits of a load or store.
fn size(letter: &str) -> Assembled<u8> {
    Ok(match letter {
        "w" => 0x00,
        "h" => 0x08,
        "b" => 0x10,
        "dw" => 0x18,
        _ => return Err("no such size".into()),
    })
}

fn load(name: &str, dst: &str, memory: &str) -> Assembled<Insn> {
    let letters = &name["ldx".len()..];
    let code = match letters.strip_prefix('s') {
        Some("dw") => return Err("no such instruction".into()),
        Some(letter) => 0x81 | size(letter)?,
        None => 0x61 | size(letters)?,
    };
    let (src, off) = memory_operand(memory)?;
    Ok(Insn {
        code,
        dst: register(dst)?,
        src,
        off,
        imm: 0,
    })
}

fn store(name: &str, memory: &str, value: &str) -> Assembled<Insn> {
    let (dst, off) = memory_operand(memory)?;
    match name.strip_prefix("stx") {
        Some(letter) => {
            let src = register(value)?;
            Ok(Insn {
                code: 0x63 | size(letter)?,
                dst,
                src,
                off,
                imm: 0,
            })
        }
        None => {
            let imm = immediate(value)?;
            Ok(Insn {
                code: 0x62 | size(&name["st".len()..])?,
                dst,
                src: 0,
                off,
                imm,
            })
        }
    }
}

fn arithmetic(name: &str, dst: u8, operand: &str) -> Assembled<Insn> {
    let moves = [
        ("movsx832", 0xbc, 8),
        ("movsx1632", 0xbc, 16),
        ("movsx864", 0xbf, 8),
        ("movsx1664", 0xbf, 16),
        ("movsx3264", 0xbf, 32),
    ];
    if let Some((_, code, off)) = moves.into_iter().find(|(other, ..)| *other == name) {
        return Ok(Insn {
            code,
            dst,
            src: register(operand)?,
            off,
            imm: 0,
        });
    }
    let (name, class) = match name.strip_suffix("32") {
        Some(name) => (name, 4),
        None => (name, 7),
    };
    let (operation, off) = match name {
        "add" => (0x00, 0),
        "sub" => (0x10, 0),
        "mul" => (0x20, 0),
        "div" => (0x30, 0),
        "sdiv" => (0x30, 1),
        "or" => (0x40, 0),
        "and" => (0x50, 0),
        "lsh" => (0x60, 0),
        "rsh" => (0x70, 0),
        "mod" => (0x90, 0),
        "smod" => (0x90, 1),
        "xor" => (0xa0, 0),
        "mov" => (0xb0, 0),
        "arsh" => (0xc0, 0),
        _ => return Err("no such instruction".into()),
    };
    let insn = Insn {
        code: operation | class,
        dst,
        off,
        ..Insn::default()
    };
    second_operand(insn, operand)
}

fn conditional(name: &str, dst: u8, operand: &str) -> Assembled<Insn> {
    let (name, class) = match name.strip_suffix("32") {
        Some(name) => (name, 6),
        None => (name, 5),
    };
    let operation = match name {
        "jeq" => 0x10,
        "jgt" => 0x20,
        "jge" => 0x30,
        "jset" => 0x40,
        "jne" => 0x50,
        "jsgt" => 0x60,
        "jsge" => 0x70,
        "jlt" => 0xa0,
        "jle" => 0xb0,
        "jslt" => 0xc0,
        "jsle" => 0xd0,
        _ => return Err("no such instruction".into()),
    };
    second_operand(
        Insn {
            code: operation | class,
            dst,
            ..Insn::default()
        },
        operand,
    )
}

/// A register or an immediate.
fn second_operand(insn: Insn, operand: &str) -> Assembled<Insn> {
    match register(operand) {
        Ok(src) => Ok(Insn {
            code: insn.code | 0x08,
            src,
            ..insn
        }),
        Err(_) => Ok(Insn {
            imm: immediate(operand)?,
            ..insn
        }),
    }
}

fn register(text: &str) -> Assembled<u8> {
    let digits = text.strip_prefix('%').unwrap_or(text).strip_prefix('r');
    let number = digits
        .and_then(|digits| digits.parse().ok())
        .filter(|number| *number <= 10);
    number.ok_or_else(|| format!("`{text}` is no register"))
}

fn memory_operand(text: &str) -> Assembled<(u8, i16)> {
    let inner = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let inner = inner.ok_or_else(|| format!("`{text}` is no memory operand"))?;
    match inner.find(['+', '-']) {
        Some(at) => {
            let (base, off) = inner.split_at(at);
            let off = number(off.strip_prefix('+').unwrap_or(off))?;
            Ok((register(base.trim())?, fit(off, "offset")?))
        }
        None => Ok((register(inner)?, 0)),
    }
}

fn immediate(text: &str) -> Assembled<i32> {
    let value = number(text)?;
    match u32::try_from(value) {
        Ok(value) => Ok(value.cast_signed()),
        Err(_) => fit(value, "immediate"),
    }
}

/// A number, decimal or hexadecimal, maybe negative.
pub fn number(text: &str) -> Assembled<i128> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    let unsigned = digits.starts_with(|char: char| char.is_ascii_digit());
    let value = value.ok().filter(|_| unsigned).map(|value| sign * value);
    value.ok_or_else(|| format!("`{text}` is no number"))
}

fn fit<T: TryFrom<i128>>(value: i128, what: &str) -> Assembled<T> {
    T::try_from(value).map_err(|_| format!("{what} {value} is out of range"))
}
