//! Whether the kernel describes its functions as a policy calls them.
//!
//! Some builds of 7.1 and 7.2 describe functions with a parameter that no caller can give, which
//! the verifier adds by itself. A call then fits no description: the object is refused, or, where
//! the function is declared weak, behaves as if the kernel lacked it, and a policy that cannot
//! kick a CPU misbehaves without a word.

use std::collections::BTreeMap;
use std::path::Path;

use libbpf_rs::btf::types::{Func, FuncProto};
use libbpf_rs::btf::{Btf, BtfKind, BtfType};
use object::Endianness;
use object::elf::{FileHeader64, STB_WEAK};
use object::read::elf::{FileHeader as _, Sym as _};

use super::{PreflightFinding, Severity};
use crate::libbpf_log;

/// Where a kernel describes its types.
const TYPES: &str = "sys/kernel/btf/vmlinux";

/// A kernel function that does not fit its calls.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FunctionFault {
    /// The function.
    pub name: String,
    /// The object does without it when the kernel has no such function.
    pub is_weak: bool,
    /// How many parameters the object gives.
    pub given: usize,
    /// How many the kernel describes; `None` when it has no such function.
    pub described: Option<usize>,
}

/// The functions that `object` calls and that the kernel of `root` does not describe so. Empty
/// when one of the two has no type information, which others complain of.
#[must_use]
pub fn function_faults(root: &Path, object: &[u8]) -> Vec<FunctionFault> {
    let types = root.join(TYPES);
    let read = || (Btf::from_path(types), Btf::from_raw("policy", object));
    // What libbpf prints of files that it cannot read is of no use here.
    let ((kernel, own), _) = libbpf_log::listen(read);
    match (kernel, own) {
        (Ok(kernel), Ok(Some(own))) => compare(&own, &kernel, &imports(object)),
        _ => Vec::new(),
    }
}

impl FunctionFault {
    /// What it means for whoever wants to attach the object to the kernel `release`.
    #[must_use]
    pub fn finding(&self, release: &str) -> PreflightFinding {
        let Self {
            name,
            is_weak,
            given,
            described,
        } = self;
        let what = match described {
            None => format!("the kernel {release} has no function {name}, which the policy calls"),
            Some(number) if number == given => {
                format!("the kernel {release} has a function {name} of other types")
            }
            Some(number) => {
                let s = if *number == 1 { "" } else { "s" };
                format!(
                    "the kernel {release} describes {name} with {number} parameter{s}, and the \
                     policy gives {given}: some builds of 7.1 and 7.2 describe functions wrongly"
                )
            }
        };
        let way_out = match (described, is_weak) {
            (None, _) => "boot a kernel that has it, or correct the policy",
            (_, true) => {
                "boot another build of the kernel; --untested tries whether the policy can do \
                 without the function"
            }
            (_, false) => "boot another build of the kernel",
        };
        PreflightFinding {
            severity: if *is_weak {
                Severity::Untested
            } else {
                Severity::Blocks
            },
            what,
            way_out: way_out.to_owned(),
        }
    }
}

/// A function as an object or a kernel describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Prototype {
    result: Shape,
    parameters: Vec<Shape>,
}

/// As much of a type as calls depend on: loaders look closer, and complain themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Nothing,
    Number,
    Pointer,
    Other,
}

/// Compares all that `own` declares; several declarations of one function, told apart by an
/// ending behind `___`, are alternatives.
fn compare(own: &Btf<'_>, kernel: &Btf<'_>, imports: &[(String, bool)]) -> Vec<FunctionFault> {
    let mut verdicts = BTreeMap::<String, Option<FunctionFault>>::new();
    for (declared, is_weak) in imports {
        let function = own.type_by_name::<Func<'_>>(declared);
        // A variable of the kernel.
        let Some(given) = function.and_then(|function| prototype(own, &function)) else {
            continue;
        };
        let name = declared.split("___").next().unwrap_or_default().to_owned();
        let function = kernel.type_by_name::<Func<'_>>(&name);
        let described = function.and_then(|function| prototype(kernel, &function));
        let is_weak = *is_weak;
        let fault = match &described {
            Some(described) if *described == given => None,
            // The object tests for it.
            None if is_weak => None,
            _ => Some(FunctionFault {
                name: name.clone(),
                is_weak,
                given: given.parameters.len(),
                described: described.map(|it| it.parameters.len()),
            }),
        };
        let entry = verdicts.entry(name).or_insert_with(|| fault.clone());
        // One that fits is enough; of two that do not, the one that an object insists on counts.
        if fault.as_ref().is_none_or(|fault| !fault.is_weak) && entry.is_some() {
            *entry = fault;
        }
    }
    verdicts.into_values().flatten().collect()
}

/// The functions that an object leaves to the kernel: by name, and whether it could do without.
/// They are found as symbols: libbpf changes the list in the type information when it reads it.
fn imports(bytes: &[u8]) -> Vec<(String, bool)> {
    let read = || -> object::Result<Vec<(String, bool)>> {
        let header = FileHeader64::<Endianness>::parse(bytes)?;
        let endian = header.endian()?;
        let sections = header.sections(endian, bytes)?;
        let symbols = sections.symbols(endian, bytes, object::elf::SHT_SYMTAB)?;
        let mut imports = Vec::new();
        for symbol in symbols.iter().filter(|symbol| symbol.is_undefined(endian)) {
            let name = symbols.symbol_name(endian, symbol)?;
            let name = String::from_utf8_lossy(name).into_owned();
            imports.push((name, symbol.st_bind() == STB_WEAK));
        }
        Ok(imports)
    };
    read().unwrap_or_default()
}

fn prototype(btf: &Btf<'_>, function: &Func<'_>) -> Option<Prototype> {
    let proto: FuncProto<'_> = function.next_type()?.try_into().ok()?;
    Some(Prototype {
        result: shape(proto.next_type()),
        parameters: proto
            .iter()
            .map(|parameter| shape(btf.type_by_id::<BtfType<'_>>(parameter.ty)))
            .collect(),
    })
}

/// What a type is behind its names and qualifiers, of which broken files may have a circle.
fn shape(ty: Option<BtfType<'_>>) -> Shape {
    const NAMES: usize = 32;
    let mut ty = ty;
    for _ in 0..NAMES {
        match ty.map(|ty| ty.kind()) {
            None | Some(BtfKind::Void) => return Shape::Nothing,
            Some(BtfKind::Int | BtfKind::Enum | BtfKind::Enum64) => return Shape::Number,
            Some(BtfKind::Ptr) => return Shape::Pointer,
            Some(
                BtfKind::Typedef
                | BtfKind::Const
                | BtfKind::Volatile
                | BtfKind::Restrict
                | BtfKind::TypeTag,
            ) => ty = ty.and_then(|ty| ty.next_type()),
            Some(_) => return Shape::Other,
        }
    }
    Shape::Other
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    /// Compiles C to an object.
    fn compiled(name: &str, source: &str) -> Vec<u8> {
        let folder = folder(name);
        let path = folder.join("x.bpf.c");
        fs::write(&path, source).unwrap();
        let bytes = bpf_build::compile(&path, &[]).unwrap_or_else(|error| panic!("{error}"));
        fs::remove_dir_all(folder).unwrap();
        bytes
    }

    fn folder(name: &str) -> PathBuf {
        let folder = format!("runslice-functions-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// The faults of an object with these declarations, all of which it calls.
    fn faults(name: &str, declarations: &str, calls: &str) -> Vec<FunctionFault> {
        // What a kernel of a faulty build describes: kick has the verifier's own parameter.
        let kernel = "
            struct aux { int x; };
            void kick(int cpu, unsigned long long flags, struct aux *aux) {}
            _Bool insert(struct aux *p, unsigned long long flags) { return 1; }
            typedef const unsigned int number;
            number count(void) { return 1; }
        ";
        let root = folder(&format!("{name}-root"));
        let types = root.join(TYPES);
        fs::create_dir_all(types.parent().unwrap()).unwrap();
        fs::write(&types, compiled(&format!("{name}-kernel"), kernel)).unwrap();
        let source = format!(
            "#define K extern __attribute__((section(\".ksyms\")))
            #define WEAK __attribute__((weak))
            struct aux; struct aux {{ int x; }};
            {declarations}
            __attribute__((section(\"struct_ops/x\"), used))
            int x(unsigned long long *ctx) {{ {calls} return 0; }}"
        );
        let found = function_faults(&root, &compiled(name, &source));
        fs::remove_dir_all(root).unwrap();
        found
    }

    #[test]
    fn a_parameter_too_many_is_found_and_functions_that_fit_are_not() {
        let found = faults(
            "strict",
            "K void kick(int cpu, unsigned long long flags);
            K int insert(struct aux *p, unsigned long long flags);
            K WEAK unsigned count(void);",
            "kick(1, 2); insert((void *)ctx, 1); count();",
        );
        let want = [FunctionFault {
            name: "kick".to_owned(),
            is_weak: false,
            given: 2,
            described: Some(3),
        }];
        assert_eq!(found, want);
        let finding = found[0].finding("7.2.12");
        assert_eq!(finding.severity, Severity::Blocks);
        let words = "the kernel 7.2.12 describes kick with 3 parameters, and the policy gives 2";
        assert!(finding.what.starts_with(words), "{}", finding.what);
    }

    #[test]
    fn a_weak_function_that_does_not_fit_is_refused_unless_asked_for() {
        let found = faults(
            "weak",
            "K WEAK void kick(int cpu, unsigned long long flags);",
            "if (kick) kick(1, 2);",
        );
        assert_eq!(found.len(), 1, "{found:?}");
        let finding = found[0].finding("7.2.12");
        assert_eq!(finding.severity, Severity::Untested);
        assert!(
            finding.way_out.contains("--untested"),
            "{}",
            finding.way_out
        );
    }

    #[test]
    fn one_alternative_that_fits_is_enough() {
        let found = faults(
            "both",
            "K WEAK void kick___old(int cpu, unsigned long long flags);
            K WEAK void kick___new(int cpu, unsigned long long flags, struct aux *aux);",
            "if (kick___new) kick___new(1, 2, 0); else if (kick___old) kick___old(1, 2);",
        );
        assert_eq!(found, []);
    }

    #[test]
    fn a_function_that_is_missing_is_a_fault_unless_it_is_weak() {
        let found = faults(
            "missing",
            "K void gone(void); K WEAK void maybe(void); K WEAK void insert(struct aux *p);",
            "gone(); if (maybe) maybe(); if (insert) insert((void *)ctx);",
        );
        let said: Vec<_> = found
            .iter()
            .map(|fault| (fault.name.as_str(), fault.is_weak, fault.described))
            .collect();
        assert_eq!(said, [("gone", false, None), ("insert", true, Some(2))]);
        assert!(
            found[0]
                .finding("6.18")
                .what
                .contains("has no function gone")
        );
    }

    #[test]
    fn other_types_are_a_fault_also_with_as_many_parameters() {
        let found = faults(
            "types",
            "K int insert(unsigned long long p, unsigned long long flags);",
            "insert(1, 2);",
        );
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].finding("7.2").what.contains("of other types"));
    }

    #[test]
    fn files_that_are_no_objects_have_no_faults() {
        let root = folder("broken");
        assert_eq!(function_faults(&root, b"no object"), []);
        fs::remove_dir_all(root).unwrap();
    }
}
