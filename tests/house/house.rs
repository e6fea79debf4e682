//! The map of the house, held against the house: which crate imports which, and none one above it;
//! which room of a crate imports which; which files import each other in a circle; and that no verb
//! of the command line imports another.

mod advice;
mod dist;
mod layers;
mod names;
mod tidy;
mod writes;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};

/// A module by its names from the crate's root; empty for the root itself.
type Name = Vec<String>;

/// The largest circle of files that each crate may have. Every number may only become smaller.
const CIRCLES: [(&str, usize); 19] = [
    ("allocator", 1),
    ("ask", 1),
    ("bpf", 3),
    ("explain", 1),
    ("folder", 1),
    ("live", 1),
    ("load", 2),
    ("loader", 3),
    ("mcp", 1),
    ("model", 1),
    ("reproduce", 4),
    ("runslice", 1),
    ("show", 2),
    ("sim", 20),
    ("stats", 2),
    ("testing", 1),
    ("traces", 2),
    ("vm", 2),
    ("workload", 2),
];

/// Rooms, each with those that it imports.
type Rooms = &'static [(&'static str, &'static [&'static str])];

/// The rooms of a crate, which are its modules at the root, and the rooms that each imports. A new
/// arrow must be listed here, and one that is gone taken out.
const ROOMS: [(&str, Rooms); 3] = [
    (
        "explain",
        &[("timeline", &[]), ("trace", &["why"]), ("why", &[])],
    ),
    (
        "reproduce",
        &[
            ("experiments", &[]),
            ("machines", &["experiments"]),
            ("mutants", &["experiments", "machines"]),
            ("rerun", &["experiments", "machines", "mutants", "results"]),
            ("results", &["experiments"]),
        ],
    ),
    (
        "stats",
        &[
            ("background", &[]),
            ("blocks", &[]),
            ("cells", &["blocks", "metrics"]),
            ("columns", &["report"]),
            (
                "compare",
                &["blocks", "columns", "histogram", "report", "tails"],
            ),
            ("conservation", &["ledger"]),
            ("done", &[]),
            ("flight", &["background"]),
            ("histogram", &[]),
            ("ledger", &[]),
            (
                "metrics",
                &["histogram", "ledger", "report", "siblings", "tails"],
            ),
            ("random_runs", &["conservation", "metrics", "report"]),
            ("report", &["histogram"]),
            ("schedstat", &["report"]),
            ("siblings", &[]),
            ("tails", &["histogram"]),
        ],
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The modules of a crate and their files.
fn modules(source: &Path) -> BTreeMap<Name, PathBuf> {
    let mut found = BTreeMap::new();
    let mut folders = vec![source.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of sources") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                let below = path.strip_prefix(source).expect("it lies there");
                let mut name: Name = below
                    .with_extension("")
                    .iter()
                    .map(|part| part.to_string_lossy().into_owned())
                    .collect();
                if matches!(
                    name.last().map(String::as_str),
                    Some("mod" | "lib" | "main")
                ) {
                    name.pop();
                }
                // A package with both has its modules in the library.
                let is_program = path.ends_with("src/main.rs");
                if !(is_program && path.with_file_name("lib.rs").exists()) {
                    found.insert(name, path);
                }
            }
        }
    }
    found
}

/// The paths that a file names, but for its tests: those of `pub use`, and all others.
#[derive(Default)]
struct Paths {
    exported: Vec<Name>,
    used: Vec<Name>,
}

impl Paths {
    fn of(file: &Path) -> Self {
        let text = fs::read_to_string(file).expect("a source is readable");
        let tree = syn::parse_file(&text).unwrap_or_else(|it| panic!("{}: {it}", file.display()));
        Self::of_tree(&tree)
    }

    fn of_tree(tree: &syn::File) -> Self {
        let mut paths = Self::default();
        paths.visit_file(tree);
        paths
    }

    fn add(tree: &syn::UseTree, before: &[String], to: &mut Vec<Name>) {
        let longer = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => Self::add(&path.tree, &longer(&path.ident), to),
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    Self::add(tree, before, to);
                }
            }
            syn::UseTree::Name(name) => to.push(longer(&name.ident)),
            syn::UseTree::Rename(name) => to.push(longer(&name.ident)),
            syn::UseTree::Glob(_) => to.push(before.to_vec()),
        }
    }
}

/// Whether an item is there for tests alone.
fn is_of_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_test = || {
            attribute
                .parse_args::<syn::Ident>()
                .is_ok_and(|it| it == "test")
        };
        attribute.path().is_ident("cfg") && is_test()
    })
}

impl Visit<'_> for Paths {
    fn visit_item(&mut self, item: &syn::Item) {
        let attributes = match item {
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            _ => &Vec::new(),
        };
        if !is_of_tests(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &syn::ItemUse) {
        let to = match item.vis {
            syn::Visibility::Inherited => &mut self.used,
            _ => &mut self.exported,
        };
        Self::add(&item.tree, &[], to);
    }

    fn visit_path(&mut self, path: &syn::Path) {
        let names = path.segments.iter().map(|part| part.ident.to_string());
        self.used.push(names.collect());
        visit::visit_path(self, path);
    }
}

/// Which file of a crate imports which.
struct Graph {
    names: Vec<Name>,
    arrows: Vec<BTreeSet<usize>>,
}

impl Graph {
    fn of(source: &Path) -> Self {
        let modules = modules(source);
        let paths: BTreeMap<&Name, Paths> = modules
            .iter()
            .map(|(name, file)| (name, Paths::of(file)))
            .collect();
        let place = |name: &Name| modules.keys().position(|it| it == name);
        let arrows = paths.iter().map(|(from, said)| {
            let targets = said.used.iter().filter_map(|path| {
                let (module, rest) = split(&modules, from, path)?;
                let defined = rest
                    .first()
                    .and_then(|item| origin(&modules, &paths, &module, item));
                place(&defined.unwrap_or(module))
            });
            let own = place(from);
            // A root declares and exports. A module is made of the modules below it: that it names
            // them is no import.
            let at_root = place(&Name::new());
            let below = |to: &usize| {
                modules
                    .keys()
                    .nth(*to)
                    .is_some_and(|it| it.starts_with(from))
            };
            targets
                .filter(|to| Some(*to) != own && Some(*to) != at_root && !below(to))
                .collect()
        });
        Self {
            arrows: arrows.collect(),
            names: modules.keys().cloned().collect(),
        }
    }

    /// The files that each file can come back to, largest circle first.
    fn circles(&self) -> Vec<Vec<&Name>> {
        let reached: Vec<BTreeSet<usize>> =
            (0..self.names.len()).map(|at| self.reach(at)).collect();
        let mut circles = Vec::new();
        let mut seen = BTreeSet::new();
        for at in 0..self.names.len() {
            let circle: Vec<usize> = reached[at]
                .iter()
                .copied()
                .filter(|to| reached[*to].contains(&at))
                .collect();
            if circle.len() > 1 && seen.insert(circle[0]) {
                circles.push(circle.into_iter().map(|it| &self.names[it]).collect());
            }
        }
        circles.sort_by_key(|circle: &Vec<&Name>| std::cmp::Reverse(circle.len()));
        circles
    }

    fn reach(&self, from: usize) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        let mut open: Vec<usize> = self.arrows[from].iter().copied().collect();
        while let Some(at) = open.pop() {
            if reached.insert(at) {
                open.extend(&self.arrows[at]);
            }
        }
        reached
    }
}

/// The module that a path names, as seen from module `from`, and what of the path is left.
fn split(modules: &BTreeMap<Name, PathBuf>, from: &Name, path: &Name) -> Option<(Name, Name)> {
    let mut rest = path.as_slice();
    let mut module = match rest.first().map(String::as_str)? {
        "crate" => Name::new(),
        "self" | "super" => from.clone(),
        first => {
            let child = [from.as_slice(), &[first.to_owned()]].concat();
            modules.contains_key(&child).then(|| from.clone())?
        }
    };
    if matches!(rest[0].as_str(), "crate" | "self") {
        rest = &rest[1..];
    }
    while rest.first().is_some_and(|it| it == "super") {
        module.pop();
        rest = &rest[1..];
    }
    while let Some((first, others)) = rest.split_first() {
        let child = [module.as_slice(), std::slice::from_ref(first)].concat();
        if !modules.contains_key(&child) {
            break;
        }
        module = child;
        rest = others;
    }
    Some((module, rest.to_vec()))
}

/// Where an item that `module` exports is defined, if that is another module of the crate.
fn origin(
    modules: &BTreeMap<Name, PathBuf>,
    paths: &BTreeMap<&Name, Paths>,
    module: &Name,
    item: &str,
) -> Option<Name> {
    let exported = &paths.get(module)?.exported;
    let path = exported
        .iter()
        .find(|path| path.last().is_some_and(|it| it == item))?;
    let (target, _) = split(modules, module, path)?;
    (target != *module).then_some(target)
}

fn shown(name: &Name) -> String {
    if name.is_empty() {
        "(root)".to_owned()
    } else {
        name.join("::")
    }
}

#[test]
fn circles_of_files_stay_small() {
    let mut wrong = Vec::new();
    for (name, most) in CIRCLES {
        let graph = Graph::of(&root().join("crates").join(name).join("src"));
        let circles = graph.circles();
        let largest = circles.first().map_or(1, Vec::len);
        if largest != most {
            let files: Vec<_> = circles
                .first()
                .into_iter()
                .flatten()
                .copied()
                .map(shown)
                .collect();
            wrong.push(format!(
                "{name}: {largest} files in a circle, not {most}: {files:?}"
            ));
        }
    }
    // A smaller circle is held, too: write its number above.
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The rooms of a crate and what each imports of the others.
fn rooms(name: &str) -> BTreeMap<String, BTreeSet<String>> {
    let graph = Graph::of(&root().join("crates").join(name).join("src"));
    let mut rooms = BTreeMap::new();
    for (from, arrows) in graph.names.iter().zip(&graph.arrows) {
        let Some(room) = from.first() else { continue };
        let others = arrows.iter().filter_map(|to| graph.names[*to].first());
        let others = others.filter(|it| *it != room).cloned();
        let imported: &mut BTreeSet<String> = rooms.entry(room.clone()).or_default();
        imported.extend(others);
    }
    rooms
}

#[test]
fn a_room_imports_the_rooms_that_are_listed() {
    for (name, listed) in ROOMS {
        let listed: BTreeMap<String, BTreeSet<String>> = listed
            .iter()
            .map(|(room, others)| {
                let others = others.iter().map(|it| (*it).to_owned());
                ((*room).to_owned(), others.collect())
            })
            .collect();
        assert_eq!(rooms(name), listed, "the rooms of crates/{name}");
    }
}

/// The verb that a module is or belongs to, such as `verb::sim` or `on_kernel::verb::run`.
fn verb_of(name: &Name) -> Option<&[String]> {
    let at = name.iter().position(|it| it == "verb")?;
    name.get(..at + 2)
}

#[test]
fn no_verb_imports_another() {
    let graph = Graph::of(&root().join("crates/runslice/src"));
    let mut verbs = BTreeSet::new();
    for (from, arrows) in graph.names.iter().zip(&graph.arrows) {
        verbs.extend(verb_of(from).map(<[String]>::to_vec));
        for to in arrows.iter().map(|to| &graph.names[*to]) {
            let may = from.is_empty() || from[0] == "cli" || from.ends_with(&["verb".to_owned()]);
            let is_its = verb_of(to).is_none() || verb_of(from) == verb_of(to);
            let pair = format!("{} imports {}", shown(from), shown(to));
            assert!(is_its || may, "{pair}");
        }
    }
    assert!(
        verbs.len() >= 36,
        "verbs are found in both folders: {verbs:?}"
    );
}

/// What takes a kernel is one module, and a program without it has another in its place. `lib.rs`
/// declares one of them, and allows what then has no user. No other file of any crate asks which of
/// the two it is, but for `exit.rs`, which lists all types of errors, `door.rs`, which exports, and
/// the lists of tests; and the program that reruns experiments, whose machines are of both kinds.
#[test]
fn one_file_asks_for_the_feature_live() {
    let mark = ["feature = ", "\"live\""].concat();
    let mut found = BTreeMap::new();
    for folder in fs::read_dir(root().join("crates")).expect("it is there") {
        let folder = folder.expect("readable").path();
        for path in modules(&folder).into_values() {
            let text = fs::read_to_string(&path).expect("a source is readable");
            let count = text.matches(&mark).count();
            if count > 0 {
                let below = path.strip_prefix(root()).expect("it lies there");
                found.insert(below.to_string_lossy().into_owned(), count);
            }
        }
    }
    let want = [
        ("crates/reproduce/src/lib.rs".to_owned(), 1),
        ("crates/reproduce/src/machines.rs".to_owned(), 2),
        ("crates/reproduce/tests/all.rs".to_owned(), 1),
        ("crates/runslice/src/door.rs".to_owned(), 2),
        ("crates/runslice/src/exit.rs".to_owned(), 1),
        ("crates/runslice/src/lib.rs".to_owned(), 4),
        ("crates/runslice/tests/all.rs".to_owned(), 4),
    ];
    assert_eq!(found, BTreeMap::from(want));
}

/// The crates of ours that a manifest names in `[dependencies]`, for any platform.
fn imports(manifest: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(manifest).expect("a crate has a manifest");
    let table: toml::Table = text.parse().expect("cargo reads it too");
    let platforms = table.get("target").and_then(toml::Value::as_table);
    let platforms = platforms.into_iter().flat_map(toml::Table::values);
    let all = platforms.filter_map(|it| it.get("dependencies"));
    let named = all
        .chain(table.get("dependencies"))
        .filter_map(toml::Value::as_table);
    let ours = |name: &&String| root().join("crates").join(name).is_dir();
    named
        .flat_map(toml::Table::keys)
        .filter(ours)
        .cloned()
        .collect()
}

/// The rows of the map in ARCHITECTURE.md, from the lowest layer to the doors: a crate, and its
/// cell of imports.
fn layers() -> Vec<(String, String)> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("it is there");
    let row = |line: &str| -> Option<(String, String)> {
        let cells: Vec<&str> = line.strip_prefix("| `crates/")?.split('|').collect();
        Some((
            cells[0].trim_end_matches("` ").to_owned(),
            cells.get(2)?.trim().to_owned(),
        ))
    };
    text.lines().filter_map(row).collect()
}

#[test]
fn no_crate_imports_one_of_a_layer_above_it() {
    let mut below = BTreeSet::new();
    let mut back = Vec::new();
    for (name, _) in layers() {
        let imports = imports(&root().join("crates").join(&name).join("Cargo.toml"));
        back.extend(
            imports
                .difference(&below)
                .map(|to| format!("{name} -> {to}")),
        );
        below.insert(name);
    }
    assert!(back.is_empty(), "arrows back: {back:?}");
}

#[test]
fn the_map_of_the_architecture_is_that_of_the_manifests() {
    let rows: BTreeMap<String, String> = layers().into_iter().collect();
    let crates = fs::read_dir(root().join("crates")).expect("it is there");
    for entry in crates {
        let folder = entry.expect("readable").path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let Some(said) = rows.get(&*name) else {
            panic!("ARCHITECTURE.md has no row for crates/{name}");
        };
        let imports = imports(&folder.join("Cargo.toml"));
        let said: BTreeSet<String> = match said.as_str() {
            "none" => BTreeSet::new(),
            list => list
                .split(',')
                .map(|it| it.trim().trim_matches('`').to_owned())
                .collect(),
        };
        assert_eq!(
            said, imports,
            "crates/{name}: ARCHITECTURE.md and its manifest"
        );
    }
    assert_eq!(
        rows.len(),
        fs::read_dir(root().join("crates"))
            .expect("it is there")
            .count()
    );
}

/// What `cargo install` of a published crate puts on somebody's path: named there, or by its file.
fn programs(manifest: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(manifest).expect("a manifest");
    let table: toml::Table = text.parse().expect("TOML");
    let package = &table["package"];
    if package.get("publish") == Some(&toml::Value::Boolean(false)) {
        return BTreeSet::new();
    }
    let bins = table.get("bin").and_then(toml::Value::as_array);
    let named = bins.into_iter().flatten().map(|it| &it["name"]);
    let own = manifest.with_file_name("src/main.rs").is_file();
    let own = own.then(|| &package["name"]);
    let mut found: BTreeSet<String> = (named.chain(own))
        .filter_map(|it| it.as_str().map(str::to_owned))
        .collect();
    for entry in fs::read_dir(manifest.with_file_name("src/bin"))
        .into_iter()
        .flatten()
    {
        let stem = entry.expect("readable").path().with_extension("");
        let name = stem.file_name().unwrap_or_default();
        found.insert(name.to_string_lossy().into_owned());
    }
    found
}

#[test]
fn published_crates_install_the_three_programs_and_none_of_a_test() {
    let crates = fs::read_dir(root().join("crates")).expect("it is there");
    let mut folders: Vec<PathBuf> = crates.map(|it| it.expect("readable").path()).collect();
    folders.extend(["policies", "tests", "tests/house", "tests/loader"].map(|it| root().join(it)));
    let all = folders
        .iter()
        .flat_map(|it| programs(&it.join("Cargo.toml")));
    let all: Vec<String> = all.collect();
    assert_eq!(all.len(), 3, "{all:?}");
    for name in ["runslice", "runslice-reproduce", "runslice-mcp"] {
        assert!(all.iter().any(|it| it == name), "{all:?}");
    }
    let subject = root().join("tests/loader/Cargo.toml");
    let text = fs::read_to_string(&subject).expect("it is there");
    assert!(
        text.contains("name = \"runslice-loader-subject\""),
        "{text}"
    );
}

#[test]
fn a_circle_is_found_also_behind_an_export() {
    let folder = std::env::temp_dir().join(format!("runslice-house-{}", std::process::id()));
    fs::create_dir_all(folder.join("b")).expect("the test's own folder");
    let write = |file: &str, text: &str| fs::write(folder.join(file), text).expect("its own");
    write("lib.rs", "mod a;\nmod b;\nmod c;\npub use a::A;\n");
    write("a.rs", "use crate::b::inner::B;\npub struct A(B);\n");
    write("b.rs", "pub mod inner;\n");
    write(
        "b/inner.rs",
        "pub struct B;\nfn f() { crate::A; }\n#[cfg(test)]\nmod tests { use crate::c::C; }\n",
    );
    write("c.rs", "use super::b::inner::B;\npub struct C(B);\n");
    let graph = Graph::of(&folder);
    let circles = graph.circles();
    let found: Vec<String> = circles[0].iter().map(|it| shown(it)).collect();
    assert_eq!(
        (found, circles.len()),
        (vec!["a".to_owned(), "b::inner".to_owned()], 1)
    );
    fs::remove_dir_all(&folder).expect("it is the test's own");
}
