//! Sound policies with one change each that somebody could make by mistake.
//!
//! A mutant is a function of its number: which policy, which kind of change, and where in its
//! sources. Many of them change nothing that can be seen; whoever runs one must look whether it
//! does.

use std::fs;
use std::path::{Path, PathBuf};

use model::Rng;

/// A kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// Nobody is told that there is work.
    DroppedKick,
    /// All CPUs but the first pass a queue by.
    UnreadQueue,
    /// The first CPU is taken instead of an idle one.
    WrongCpu,
    /// An order is turned round.
    Order,
    /// A slice never ends.
    Slice,
    /// One insert in 32 is left out.
    LostTask,
}

impl Operator {
    /// All.
    pub const ALL: [Self; 6] = [
        Self::DroppedKick,
        Self::UnreadQueue,
        Self::WrongCpu,
        Self::Order,
        Self::Slice,
        Self::LostTask,
    ];

    /// For a table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DroppedKick => "dropped kick",
            Self::UnreadQueue => "unread queue",
            Self::WrongCpu => "wrong CPU",
            Self::Order => "order",
            Self::Slice => "slice",
            Self::LostTask => "lost task",
        }
    }

    /// What is looked for in a source; what stands there instead, if it is not made of the call.
    fn sites(self, text: &str) -> Vec<(usize, usize, String)> {
        match self {
            Self::DroppedKick => calls(text, &["\tkick(", "\tscx_bpf_kick_cpu("], |_| {
                "\t(void)0".to_owned()
            }),
            Self::UnreadQueue => calls(text, &["scx_bpf_dsq_move_to_local("], |call| {
                format!("(!bpf_get_smp_processor_id() && {call})")
            }),
            Self::WrongCpu => calls(text, &["scx_bpf_pick_idle_cpu("], |_| "0".to_owned()),
            Self::Order => {
                let mut sites = words(text, ") < 0", ") > 0");
                sites.extend(words(text, ") > 0", ") < 0"));
                sites
            }
            Self::Slice => {
                let given = [
                    "scx_bpf_dsq_insert(p,",
                    "scx_bpf_dsq_insert_vtime(p,",
                    "put(p,",
                ];
                calls(text, &given, |call| {
                    call.replacen("slice_ns", "SCX_SLICE_INF", 1)
                })
            }
            Self::LostTask => {
                let given = [
                    "\tscx_bpf_dsq_insert(p,",
                    "\tscx_bpf_dsq_insert_vtime(p,",
                    "\tput(p,",
                ];
                calls(text, &given, |call| {
                    format!("\tif (bpf_get_prandom_u32() & 31) {}", call.trim_start())
                })
            }
        }
    }
}

/// A mutant.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// Its number.
    pub number: u64,
    /// The policy that it was made of.
    pub policy: &'static str,
    /// The kind of change.
    pub operator: Operator,
    /// The file that was changed, and the line, from 1.
    pub at: (String, usize),
    /// That line.
    pub line: String,
}

/// Policies of which mutants are made, and the headers that have their code.
const BASES: &[(&str, &[&str])] = &[
    ("fifo.bpf.c", &[]),
    ("lessons/fair.bpf.c", &["lesson.bpf.h"]),
    ("lessons/stride.bpf.c", &["lesson.bpf.h"]),
    ("cfs.bpf.c", &["percpu.bpf.h", "virtual_time.bpf.h"]),
    ("eevdf.bpf.c", &["percpu.bpf.h", "virtual_time.bpf.h"]),
    ("o1.bpf.c", &["percpu.bpf.h"]),
    ("mlfq.bpf.c", &["percpu.bpf.h"]),
    ("goodness.bpf.c", &["goodness.bpf.h"]),
];

/// Makes mutant `number` of `seed` in `folder`, and compiles it. `None` if there is no such place
/// in the sources, or it does not compile.
///
/// # Panics
/// If the sources cannot be read or the folder cannot be written.
#[must_use]
pub fn make(seed: u64, number: u64, folder: &Path) -> Option<(Mutant, Vec<u8>)> {
    let mut rng = Rng::new(seed, number);
    let (base, headers) = BASES[rng.below(BASES.len() as u64) as usize];
    let operator = Operator::ALL[rng.below(Operator::ALL.len() as u64) as usize];
    let policies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies");
    let mut files: Vec<PathBuf> = vec![policies.join(base)];
    files.extend(headers.iter().map(|it| policies.join("include").join(it)));
    let read = |file: &PathBuf| fs::read_to_string(file).expect("a source of ours");
    let sites: Vec<_> = files
        .iter()
        .flat_map(|file| {
            let sites = operator.sites(&read(file)).into_iter();
            sites.map(move |site| (file.clone(), site))
        })
        .collect();
    if sites.is_empty() {
        return None;
    }
    let (file, (from, to, instead)) = sites[rng.below(sites.len() as u64) as usize].clone();
    let before = read(&file);
    let after = format!("{}{instead}{}", &before[..from], &before[to..]);
    if after == before {
        return None;
    }
    let name = |path: &Path| path.file_name().expect("a file").to_owned();
    let (source, changed) = (folder.join(name(&files[0])), folder.join(name(&file)));
    fs::write(&source, read(&files[0])).expect("the folder is writable");
    fs::write(&changed, after).expect("the folder is writable");
    let include = policies.join("include");
    let object = bpf_build::compile(&source, &[folder, &include]).ok();
    fs::remove_file(&changed).expect("it was written");
    let start = before[..from].rfind('\n').map_or(0, |at| at + 1);
    let line = before[start..].lines().next().unwrap_or_default();
    let mutant = Mutant {
        number,
        policy: base,
        operator,
        at: (
            name(&file).to_string_lossy().into_owned(),
            before[..from].matches('\n').count() + 1,
        ),
        line: line.trim().to_owned(),
    };
    Some((mutant, object?))
}

/// The calls that begin with one of `heads`, each with what stands there instead.
fn calls(
    text: &str,
    heads: &[&str],
    instead: impl Fn(&str) -> String,
) -> Vec<(usize, usize, String)> {
    let mut found = Vec::new();
    for head in heads {
        for (from, _) in text.match_indices(head) {
            let Some(length) = closing(&text[from..]) else {
                continue;
            };
            let call = &text[from..from + length];
            found.push((from, from + length, instead(call)));
        }
    }
    found
}

/// The length of a call, up to the bracket that closes its first one.
fn closing(call: &str) -> Option<usize> {
    let mut depth = 0_u32;
    for (at, letter) in call.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(at + 1),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn words(text: &str, word: &str, instead: &str) -> Vec<(usize, usize, String)> {
    let found = text.match_indices(word);
    found
        .map(|(at, _)| (at, at + word.len(), instead.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_ends_at_its_own_bracket() {
        let text = "\tkick(first(cpu), 0);\n\tother();";
        let sites = Operator::DroppedKick.sites(text);
        assert_eq!(sites, [(0, 20, "\t(void)0".to_owned())]);
    }

    #[test]
    fn each_kind_of_change_has_places_in_the_sources() {
        let policies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies");
        for operator in Operator::ALL {
            let places = BASES.iter().flat_map(|(base, headers)| {
                let headers = headers.iter().map(|it| format!("include/{it}"));
                headers.chain([(*base).to_owned()])
            });
            let texts = places.map(|it| fs::read_to_string(policies.join(it)).unwrap());
            let sites: usize = texts.map(|text| operator.sites(&text).len()).sum();
            assert!(sites > 3, "{operator:?}: {sites}");
        }
    }
}
