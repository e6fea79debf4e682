//! Objects inside other files: a scheduler's own binary carries the object that it loads.
//!
//! The skeletons of libbpf, in C and in Rust, put the object's bytes as they are into the binary's
//! read-only data. An object is found by the header of a relocatable ELF file for the BPF machine,
//! and ends where the last thing that its tables name ends.

use std::ops::Range;
use std::path::Path;

/// Source: ELF-64 Object File Format, version 1.5, section 3: where the header's fields lie.
const TYPE: usize = 16;
const MACHINE: usize = 18;
const SECTIONS_AT: usize = 40;
const HEADER_BYTES: usize = 52;
const SECTION_BYTES: usize = 58;
const SECTION_COUNT: usize = 60;
const HEADER: usize = 64;

/// A relocatable file.
const RELOCATABLE: u16 = 1;
/// `EM_BPF`.
const BPF: u16 = 247;
/// A section without bytes in the file.
const NO_BITS: u32 = 8;

/// `\x7fELF`, 64 bits, little-endian, version 1.
const MAGIC: &[u8] = b"\x7fELF\x02\x01\x01";

/// Whether the file is itself an object for the BPF machine.
#[must_use]
pub fn is_object(file: &[u8]) -> bool {
    file.starts_with(MAGIC) && half(file, MACHINE) == Some(BPF)
}

/// An ELF file that was made for a computer's own processor.
#[derive(Debug, PartialEq, Eq)]
pub struct NativeFile {
    /// It can be executed.
    pub is_program: bool,
    /// Which kind it has, and which processor it is for.
    pub words: String,
}

/// What the file at `path` is, if it is an ELF file for another machine than BPF.
#[must_use]
pub fn native(file: &[u8], path: &Path) -> Option<NativeFile> {
    /// Where a file says in which order its bytes stand.
    const ORDER: usize = 5;
    const ENTRY: usize = 24;
    if !file.starts_with(b"\x7fELF") {
        return None;
    }
    let of_file = |at| {
        let number = half(file, at)?;
        let is_big = file.get(ORDER) == Some(&2);
        Some(if is_big { number.swap_bytes() } else { number })
    };
    let machine = match of_file(MACHINE)? {
        BPF => return None,
        // Source: include/uapi/linux/elf-em.h, kernel 6.18.
        3 => "x86".to_owned(),
        21 => "ppc64".to_owned(),
        22 => "s390".to_owned(),
        40 => "arm".to_owned(),
        62 => "x86-64".to_owned(),
        183 => "arm64".to_owned(),
        243 => "RISC-V".to_owned(),
        258 => "LoongArch".to_owned(),
        other => format!("machine {other}"),
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_library = name.contains(".so") || long(file, ENTRY) == Some(0);
    let (is_program, what) = match of_file(TYPE)? {
        RELOCATABLE => (false, "an object"),
        3 if is_library => (false, "a shared library"),
        2 | 3 => (true, "a program"),
        _ => (false, "a file"),
    };
    Some(NativeFile {
        is_program,
        words: format!("{what} for {machine}"),
    })
}

/// The objects inside `file`, without those whose bytes are the same as an earlier one's.
#[must_use]
pub fn objects(file: &[u8]) -> Vec<&[u8]> {
    let mut found: Vec<&[u8]> = Vec::new();
    let mut from = 0;
    while let Some(at) = find(&file[from..], MAGIC) {
        let start = from + at;
        match extent(&file[start..]) {
            Some(len) => {
                let object = &file[start..start + len];
                if !found.contains(&object) {
                    found.push(object);
                }
                from = start + len;
            }
            None => from = start + MAGIC.len(),
        }
    }
    found
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = wanted[0];
    let mut from = 0;
    loop {
        let at = from + text[from..].iter().position(|byte| *byte == first)?;
        if text[at..].starts_with(wanted) {
            return Some(at);
        }
        from = at + 1;
    }
}

/// Bytes of the object that begins with `file`; `None` if none begins here.
fn extent(file: &[u8]) -> Option<usize> {
    if half(file, TYPE)? != RELOCATABLE || half(file, MACHINE)? != BPF {
        return None;
    }
    let sections = usize::try_from(long(file, SECTIONS_AT)?).ok()?;
    let (size, count) = (half(file, SECTION_BYTES)?, half(file, SECTION_COUNT)?);
    if usize::from(half(file, HEADER_BYTES)?) != HEADER || usize::from(size) != HEADER {
        return None;
    }
    let table_end = sections.checked_add(usize::from(size) * usize::from(count))?;
    let table = file.get(sections..table_end)?;
    let mut end = table_end.max(HEADER);
    for section in table.chunks_exact(HEADER) {
        let place = bytes_of(section)?;
        end = end.max(place.end);
    }
    (end <= file.len()).then_some(end)
}

/// Where the bytes of a section lie, by its header.
fn bytes_of(section: &[u8]) -> Option<Range<usize>> {
    const KIND: usize = 4;
    const OFFSET: usize = 24;
    const SIZE: usize = 32;
    let kind = u32::from_le_bytes(section.get(KIND..KIND + 4)?.try_into().ok()?);
    if kind == NO_BITS || kind == 0 {
        return Some(0..0);
    }
    let offset = usize::try_from(long(section, OFFSET)?).ok()?;
    let size = usize::try_from(long(section, SIZE)?).ok()?;
    Some(offset..offset.checked_add(size)?)
}

fn half(file: &[u8], at: usize) -> Option<u16> {
    let bytes = file.get(at..at + 2)?;
    Some(u16::from_le_bytes(bytes.try_into().ok()?))
}

fn long(file: &[u8], at: usize) -> Option<u64> {
    let bytes = file.get(at..at + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped(name: &str) -> &'static [u8] {
        policies::find(name).expect("a policy").object
    }

    #[test]
    fn a_file_for_a_processor_is_told_by_kind_and_processor() {
        let file = |bits: u8, order: u8, kind: u16, machine: u16, entry: u8| {
            let number = |it: u16| {
                if order == 2 {
                    it.to_be_bytes()
                } else {
                    it.to_le_bytes()
                }
            };
            let mut file = vec![0x7f, b'E', b'L', b'F', bits, order, 1, 0];
            file.resize(TYPE, 0);
            file.extend(number(kind));
            file.extend(number(machine));
            file.resize(HEADER, 0);
            file[24] = entry;
            file
        };
        let words = |file: &[u8], name: &str| {
            native(file, Path::new(name)).map(|it| (it.is_program, it.words))
        };
        let cases = [
            (file(2, 1, 1, 183, 0), "a.o", false, "an object for arm64"),
            (file(2, 1, 3, 62, 1), "ls", true, "a program for x86-64"),
            (file(2, 1, 2, 243, 1), "ls", true, "a program for RISC-V"),
            (
                file(2, 1, 3, 62, 1),
                "libc.so.6",
                false,
                "a shared library for x86-64",
            ),
            (
                file(2, 1, 3, 62, 0),
                "m",
                false,
                "a shared library for x86-64",
            ),
            (file(2, 2, 1, 22, 0), "a.o", false, "an object for s390"),
            (
                file(1, 1, 1, 999, 0),
                "a.o",
                false,
                "an object for machine 999",
            ),
        ];
        for (file, name, is_program, want) in cases {
            assert_eq!(words(&file, name), Some((is_program, want.to_owned())));
        }
        assert_eq!(words(shipped("fifo"), "fifo"), None);
        assert_eq!(words(b"\x7fELF", "cut"), None);
    }

    /// A binary with these objects in it, at odd places and with noise between.
    fn binary(objects: &[&[u8]]) -> Vec<u8> {
        let mut file = b"\x7fELF\x02\x01\x01 a program for another machine".to_vec();
        file.resize(101, 0);
        for object in objects {
            file.extend_from_slice(object);
            file.extend_from_slice(b"\x7fELF\x02\x01\x01\x00 text about the format \x7fE");
        }
        file
    }

    #[test]
    fn every_object_is_found_byte_for_byte() {
        let (fifo, mlfq) = (shipped("fifo"), shipped("mlfq"));
        assert_eq!(objects(&binary(&[fifo])), [fifo]);
        assert_eq!(objects(&binary(&[fifo, mlfq])), [fifo, mlfq]);
        assert_eq!(objects(&binary(&[fifo, mlfq, fifo])), [fifo, mlfq]);
        assert_eq!(objects(&binary(&[])), [&[0; 0]; 0]);
        assert!(is_object(fifo) && !is_object(&binary(&[fifo])));
    }

    #[test]
    fn an_object_that_is_cut_off_is_none() {
        let fifo = shipped("fifo");
        let whole = binary(&[fifo]);
        let start = 101;
        for len in [1, 16, 17, 19, 63, 64, 65, fifo.len() / 2, fifo.len() - 1] {
            assert_eq!(objects(&whole[..start + len]), [&[0; 0]; 0], "{len} bytes");
        }
        assert_eq!(objects(&whole[..start + fifo.len()]), [fifo]);
    }

    #[test]
    fn a_header_with_sizes_beyond_the_file_is_no_object() {
        let fifo = shipped("fifo");
        for (at, len) in [(SECTIONS_AT, 8), (SECTION_COUNT, 2), (SECTION_BYTES, 2)] {
            let mut broken = fifo.to_vec();
            broken[at..at + len].fill(0xff);
            assert_eq!(objects(&binary(&[&broken])), [&[0; 0]; 0], "field at {at}");
        }
    }
}
