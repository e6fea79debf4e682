//! A name of a type says whose it is: the type's own crate gives a word to it, and a search for the
//! name finds one or two.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use syn::visit::{self, Visit};

use super::{is_of_tests, modules, root};

/// Most files that define a type of one name.
const MOST: usize = 2;

/// Names that every crate may give, since nobody reads them without the crate's.
const SHARED: [&str; 1] = ["Error"];

/// Names of types that other files of the crate can see.
#[derive(Default)]
struct Types {
    found: BTreeSet<String>,
}

impl Types {
    fn of(text: &str) -> BTreeSet<String> {
        let mut types = Self::default();
        types.visit_file(&syn::parse_file(text).expect("a source of Rust"));
        types.found
    }
}

fn is_seen(visibility: &syn::Visibility) -> bool {
    match visibility {
        syn::Visibility::Public(_) => true,
        syn::Visibility::Restricted(it) => it.path.is_ident("crate"),
        syn::Visibility::Inherited => false,
    }
}

impl Visit<'_> for Types {
    fn visit_item(&mut self, item: &syn::Item) {
        let (name, visibility) = match item {
            syn::Item::Enum(it) => (&it.ident, &it.vis),
            syn::Item::Struct(it) => (&it.ident, &it.vis),
            syn::Item::Trait(it) => (&it.ident, &it.vis),
            syn::Item::Type(it) => (&it.ident, &it.vis),
            syn::Item::Union(it) => (&it.ident, &it.vis),
            syn::Item::Mod(it) if is_of_tests(&it.attrs) => return,
            _ => return visit::visit_item(self, item),
        };
        if is_seen(visibility) {
            self.found.insert(name.to_string());
        }
    }
}

#[test]
fn a_type_has_a_name_that_no_two_other_files_give() {
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for folder in fs::read_dir(root().join("crates")).expect("it is there") {
        let source = folder.expect("readable").path().join("src");
        for (module, path) in modules(&source) {
            if module.iter().any(|part| part.ends_with("tests")) {
                continue;
            }
            let text = fs::read_to_string(&path).expect("a source is readable");
            let below = path.strip_prefix(root()).expect("it lies there");
            for name in Types::of(&text) {
                let place = below.display().to_string();
                files.entry(name).or_default().push(place);
            }
        }
    }
    assert!(files.len() > 1000, "{} names", files.len());
    let shared = |name: &str| SHARED.contains(&name);
    let wrong = files
        .iter()
        .filter(|(name, of)| of.len() > MOST && !shared(name));
    let wrong: Vec<_> = wrong
        .map(|(name, of)| format!("`{name}`: {of:?}"))
        .collect();
    assert!(
        wrong.is_empty(),
        "let a name say its owner, as `SweepPlan` does:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn only_types_that_others_see_count() {
    let text = "pub struct A; pub(crate) enum B {} struct C; pub(super) struct D; \
                mod inner { pub trait E {} fn f() { struct G; } } \
                #[cfg(test)] mod tests { pub struct H; } pub type I = u8;";
    let names: Vec<String> = Types::of(text).into_iter().collect();
    assert_eq!(names, ["A", "B", "E", "I"]);
}
