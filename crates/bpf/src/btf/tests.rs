//! Types written by hand: the kinds that compilers rarely emit, and the lies that none tells.

use super::{Btf, BtfKind, Steps, TypeId};
use crate::{LoadError, Target};

/// A `.BTF` section under construction.
#[derive(Default)]
struct Section {
    types: Vec<u8>,
    strings: Vec<u8>,
}

const INT: u32 = 1;
const PTR: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const FWD: u32 = 7;
const TYPEDEF: u32 = 8;
const CONST: u32 = 10;
const FUNC: u32 = 12;
const FUNC_PROTO: u32 = 13;
const FLOAT: u32 = 16;
const ENUM64: u32 = 19;

impl Section {
    fn name(&mut self, name: &str) -> u32 {
        if self.strings.is_empty() {
            self.strings.push(0);
        }
        let at = self.strings.len() as u32;
        self.strings.extend(name.bytes());
        self.strings.push(0);
        at
    }

    /// Appends a type: kind, count of entries, size or type, and the words that follow.
    fn add(
        mut self,
        name: &str,
        (kind, vlen): (u32, u32),
        size_or_type: u32,
        rest: &[u32],
    ) -> Self {
        let name = self.name(name);
        for word in [&[name, kind << 24 | vlen, size_or_type], rest].concat() {
            self.types.extend(word.to_le_bytes());
        }
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        for word in [24, 0, types, types, strings] {
            bytes.extend(u32::to_le_bytes(word));
        }
        [&bytes[..], &self.types, &self.strings].concat()
    }

    fn parse(&self) -> Result<Btf, LoadError> {
        Btf::parse(&self.bytes())
    }
}

/// Encoding 0 (unsigned) and so many bits.
fn unsigned(bits: u32) -> [u32; 1] {
    [bits]
}

#[test]
fn rare_kinds_have_their_sizes_and_words() {
    let btf = Section::default()
        .add("double", (FLOAT, 0), 8, &[])
        .add("incomplete", (FWD, 0), 0, &[])
        .add("wide", (ENUM64, 1), 8, &[0, 7, 1])
        .add("", (FUNC_PROTO, 3), 1, &[0, 2, 0, 3, 0, 0])
        .add("f", (FUNC, 1), 4, &[])
        .parse()
        .unwrap();
    assert_eq!(btf.size(TypeId(1)), Some(8));
    assert_eq!(btf.size(TypeId(2)), None);
    assert_eq!(btf.size(TypeId(3)), Some(8));
    assert_eq!(
        btf.enumeration(TypeId(3)).unwrap().values[0].1,
        0x1_0000_0007
    );
    assert_eq!(btf.prototype(TypeId(5)).unwrap(), "float(struct,u64,...)");
    assert_eq!(btf.prototype(TypeId(3)), None);
}

#[test]
fn modifiers_are_stripped_and_a_chain_of_them_must_end() {
    let chain = Section::default()
        .add("u32", (INT, 0), 4, &unsigned(32))
        .add("", (CONST, 0), 1, &[])
        .add("number", (TYPEDEF, 0), 2, &[]);
    let btf = chain.parse().unwrap();
    assert!(matches!(btf.stripped(TypeId(3)), BtfKind::Int(_)));
    let circle = Section::default()
        .add("a", (TYPEDEF, 0), 2, &[])
        .add("b", (TYPEDEF, 0), 1, &[]);
    let error = circle.parse().unwrap_err();
    assert!(error.to_string().contains("without end"), "{error}");
}

#[test]
fn references_must_lead_somewhere() {
    let error = Section::default()
        .add("p", (PTR, 0), 9, &[])
        .parse()
        .unwrap_err();
    assert_eq!(
        error,
        LoadError::BadType {
            id: 1,
            problem: "refers to an absent type"
        }
    );
    let mut nameless = Section::default().add("u8", (INT, 0), 1, &unsigned(8));
    nameless.types[0] = 200;
    let error = nameless.parse().unwrap_err();
    assert_eq!(
        error,
        LoadError::BadType {
            id: 1,
            problem: "has an unreadable name"
        }
    );
}

#[test]
fn an_unknown_kind_or_a_cut_type_is_refused() {
    assert!(
        Section::default()
            .add("x", (20, 0), 0, &[])
            .parse()
            .is_err()
    );
    assert!(
        Section::default()
            .add("s", (STRUCT, 1), 8, &[0, 0])
            .parse()
            .is_err()
    );
}

#[test]
fn a_size_that_overflows_is_no_size() {
    let btf = Section::default()
        .add("u64", (INT, 0), 8, &unsigned(64))
        .add("", (ARRAY, 0), 0, &[1, 1, 1 << 28])
        .add("", (ARRAY, 0), 0, &[2, 1, 2])
        .add("", (ARRAY, 0), 0, &[4, 1, 1])
        .parse()
        .unwrap();
    assert_eq!(btf.size(TypeId(2)), Some(1 << 31));
    assert_eq!(btf.size(TypeId(3)), None);
    assert_eq!(btf.size(TypeId(4)), None, "an array of itself");
}

/// Structures of two anonymous members of the next structure each: 2 to the 30th paths.
fn entangled() -> Section {
    let mut section = Section::default();
    for id in 1..=30 {
        let name = if id == 1 { "top" } else { "" };
        section = section.add(name, (STRUCT, 2), 8, &[0, id + 1, 0, 0, id + 1, 0]);
    }
    section.add("", (STRUCT, 0), 8, &[])
}

#[test]
fn a_search_through_entangled_types_gives_up() {
    let target = Target::new("entangled", (6, 18, 0), &entangled().bytes()).unwrap();
    assert!(target.field("top", "absent").is_err());

    let btf = entangled().parse().unwrap();
    let steps = Steps::new(10_000);
    let pointers = Section::default()
        .add("", (FUNC_PROTO, 2), 1, &[0, 1, 0, 1])
        .add("", (PTR, 0), 1, &[])
        .parse()
        .unwrap();
    let answer =
        crate::core_reloc::are_compatible(&pointers, TypeId(1), &pointers, TypeId(1), &steps);
    assert_eq!(answer, None, "a function of itself has no end");
    assert_eq!(btf.size(TypeId(1)), Some(8));
}
