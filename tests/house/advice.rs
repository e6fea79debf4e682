//! An error's text is for people: what to do is `advice()`, and no text is searched or cut.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};

/// Errors that another error of the same crate always holds, so that the command line never meets
/// them as a cause of their own.
const HELD: [&str; 7] = [
    "BadInsn",
    "FilterError",
    "FormulaError",
    "Refusal",
    "StartFailed",
    "Violation",
    "WorkError",
];

/// Where a text of another program or library is searched, since nothing else says it: the file,
/// and what is looked for.
const ALLOWED: [(&str, &str); 5] = [
    // The kernel's words for how a policy ended.
    ("explain/src/why/judge.rs", "] failed to run"),
    // What QEMU prints.
    ("vm/src/qemu.rs", "falling back to tcg"),
    // A line of the kernel's log.
    ("live/src/kernel_log.rs", "sched_ext: BPF scheduler \""),
    // Clap says the range of a number in words alone.
    ("runslice/src/refusal.rs", " is not in "),
    // The compiler's own messages.
    ("runslice/src/source.rs", "file not found"),
];

/// Methods that search or cut a text.
const SURGERY: [&str; 10] = [
    "contains",
    "ends_with",
    "find",
    "replace",
    "rsplit_once",
    "split",
    "split_once",
    "starts_with",
    "strip_prefix",
    "strip_suffix",
];

/// Names that texts of errors have.
const NAMES: [&str; 7] = [
    "cause", "err", "error", "failure", "message", "reason", "told",
];

/// What a file says of errors, but for its tests.
#[derive(Default)]
struct Errors {
    declared: BTreeSet<String>,
    advised: BTreeSet<String>,
    searched: Vec<String>,
}

impl Errors {
    fn of(text: &str) -> Self {
        let tree = syn::parse_file(text).expect("a source of Rust");
        let mut errors = Self::default();
        errors.visit_file(&tree);
        errors
    }

    fn declare(&mut self, attributes: &[syn::Attribute], name: &syn::Ident) {
        let is_error = |attribute: &&syn::Attribute| {
            let mut found = false;
            // Only a derive has a list of paths.
            let _ = attribute.parse_nested_meta(|it| {
                let mut names = it.path.segments.iter().map(|part| part.ident.to_string());
                found |= names.next().as_deref() == Some("thiserror");
                Ok(())
            });
            attribute.path().is_ident("derive") && found
        };
        if attributes.iter().any(|it| is_error(&it)) {
            self.declared.insert(name.to_string());
        }
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_test = || {
            attribute
                .parse_args::<syn::Ident>()
                .is_ok_and(|it| it == "test")
        };
        attribute.path().is_ident("cfg") && is_test()
    })
}

/// The variable that a chain of fields and calls begins with.
fn root_of(value: &syn::Expr) -> Option<String> {
    match value {
        syn::Expr::MethodCall(call) => root_of(&call.receiver),
        syn::Expr::Field(field) => root_of(&field.base),
        syn::Expr::Reference(to) => root_of(&to.expr),
        syn::Expr::Unary(of) => root_of(&of.expr),
        syn::Expr::Paren(of) => root_of(&of.expr),
        syn::Expr::Path(path) => Some(path.path.segments.last()?.ident.to_string()),
        _ => None,
    }
}

impl Visit<'_> for Errors {
    fn visit_item_mod(&mut self, item: &syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_enum(&mut self, item: &syn::ItemEnum) {
        self.declare(&item.attrs, &item.ident);
    }

    fn visit_item_struct(&mut self, item: &syn::ItemStruct) {
        self.declare(&item.attrs, &item.ident);
    }

    fn visit_item_impl(&mut self, item: &syn::ItemImpl) {
        let of = item.trait_.as_ref().and_then(|it| it.0.segments.last());
        if of.is_some_and(|it| it.ident == "Advice")
            && let syn::Type::Path(path) = &*item.self_ty
            && let Some(name) = path.path.segments.last()
        {
            self.advised.insert(name.ident.to_string());
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_expr_method_call(&mut self, call: &syn::ExprMethodCall) {
        let method = call.method.to_string();
        if SURGERY.contains(&method.as_str())
            && let Some(syn::Expr::Lit(text)) = call.args.first()
            && let syn::Lit::Str(text) = &text.lit
        {
            let is_error = root_of(&call.receiver).is_some_and(|it| NAMES.contains(&it.as_str()));
            if is_error || text.value() == "; " {
                self.searched.push(text.value());
            }
        }
        visit::visit_expr_method_call(self, call);
    }
}

fn sources() -> Vec<(String, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    let mut folders: Vec<PathBuf> = vec![crates.clone()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of sources") {
            let path = entry.expect("readable").path();
            let name = path.strip_prefix(&crates).expect("it lies there");
            let is_test = |part: &str| part.starts_with("test") || part.ends_with("_tests.rs");
            let mut parts = name.iter().map(|part| part.to_string_lossy().into_owned());
            if parts.any(|part| is_test(&part)) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                let text = fs::read_to_string(&path).expect("readable");
                found.push((name.to_string_lossy().into_owned(), text));
            }
        }
    }
    assert!(found.len() > 500, "{} files", found.len());
    found
}

#[test]
fn every_error_says_what_to_do_and_the_command_line_knows_it() {
    let all: Vec<_> = sources()
        .into_iter()
        .map(|(name, text)| (name, Errors::of(&text), text))
        .collect();
    let known = ["ask/src/error.rs", "runslice/src/exit.rs"].map(|name| {
        let file = all.iter().find(|it| it.0 == name);
        file.expect("it is there").2.as_str()
    });
    let known = known.concat();
    let is_known = |name: &str| {
        let own = format!("{name},\n");
        known.contains(&own)
            || known.contains(&format!("{name}]"))
            || known.contains(&format!("{name}, "))
    };
    let mut declared = 0;
    for (file, errors, _) in &all {
        declared += errors.declared.len();
        for name in &errors.declared {
            assert!(
                errors.advised.contains(name),
                "{file}: {name} has no `impl Advice`"
            );
            assert!(
                HELD.contains(&name.as_str()) || is_known(name),
                "{file}: {name} is missing in ask/src/error.rs and in runslice/src/exit.rs"
            );
        }
    }
    assert!(declared > 40, "{declared} types of errors");
}

#[test]
fn no_text_of_an_error_is_searched_or_cut() {
    let mut wrong = Vec::new();
    for (file, text) in sources() {
        let searched = Errors::of(&text).searched.into_iter();
        let is_wrong = |what: &String| !ALLOWED.contains(&(file.as_str(), what.as_str()));
        wrong.extend(searched.filter(is_wrong).map(|what| (file.clone(), what)));
    }
    assert!(wrong.is_empty(), "texts of errors are searched: {wrong:#?}");
}

#[test]
fn surgery_on_a_text_is_found() {
    for (body, count) in [
        ("error.to_string().contains(\"CPUs\")", 1),
        ("message.find(\"os error\")", 1),
        ("text.split_once(\"; \")", 1),
        ("(&error.0).starts_with(\"x\")", 1),
        ("name.contains(\"x\")", 0),
    ] {
        let found = Errors::of(&format!("fn f() {{ {body}; }}")).searched;
        assert_eq!(found.len(), count, "{body}");
    }
    let error = Errors::of("#[derive(Debug, thiserror::Error)] enum E { A }");
    assert!(error.declared.contains("E") && error.advised.is_empty());
    let tests = Errors::of("#[cfg(test)] mod tests { fn f() { error.contains(\"x\"); } }");
    assert!(tests.searched.is_empty());
}
