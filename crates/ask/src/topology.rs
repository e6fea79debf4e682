//! Machines by a word: `32cpu-4llc-smt`.

use model::Advised;

use crate::machine::{CPUS_MAX, MachineChange};

/// The first names that ktstr gave to some of them (ktstr 0.1.0, `src/vm.rs`), and those of today.
const OLDER: [(&str, &str); 19] = [
    ("tiny-1llc", "4cpu-1llc-nosmt"),
    ("tiny-2llc", "4cpu-2llc-nosmt"),
    ("odd-3llc", "9cpu-3llc-nosmt"),
    ("odd-5llc", "15cpu-5llc-nosmt"),
    ("odd-7llc", "14cpu-7llc-nosmt"),
    ("smt-2llc", "8cpu-2llc-smt"),
    ("smt-3llc", "12cpu-3llc-smt"),
    ("medium-4llc", "32cpu-4llc-smt"),
    ("medium-8llc", "64cpu-8llc-smt"),
    ("large-4llc", "128cpu-4llc-smt"),
    ("large-8llc", "128cpu-8llc-smt"),
    ("near-max-llc", "240cpu-15llc-smt"),
    ("max-cpu", "252cpu-14llc-smt"),
    ("medium-4llc-nosmt", "32cpu-4llc-nosmt"),
    ("medium-8llc-nosmt", "64cpu-8llc-nosmt"),
    ("large-4llc-nosmt", "128cpu-4llc-nosmt"),
    ("large-8llc-nosmt", "128cpu-8llc-nosmt"),
    ("near-max-llc-nosmt", "240cpu-15llc-nosmt"),
    ("max-cpu-nosmt", "252cpu-14llc-nosmt"),
];

/// The machine that a word describes: `[Nnuma-]Ncpu-Nllc-smt` or `...-nosmt`, as ktstr 0.50 names
/// its presets, with any numbers; or one of the first names of these.
///
/// # Errors
/// When it has another form, there are too many CPUs, or caches and nodes are not of one size.
pub fn parse(word: &str) -> Result<MachineChange, Advised> {
    let older = OLDER.iter().find(|(name, _)| *name == word);
    let full = older.map_or(word, |(_, full)| full);
    let Some((nodes, cpus, caches, smt)) = numbers(full) else {
        return Err(Advised::new(
            format!("`{word}` is no machine"),
            "write one such as 8cpu-2llc-smt, 2numa-16cpu-4llc-nosmt or tiny-2llc",
        ));
    };
    let wrong = |what: String, advice: &str| Err(Advised::new(format!("`{word}`: {what}"), advice));
    if cpus == 0 || cpus > CPUS_MAX {
        return wrong(format!("{cpus} CPUs"), "give 1 to 1024");
    }
    let divides = |parts: u16, whole: u16| parts > 0 && whole.is_multiple_of(parts);
    if !divides(caches, cpus) || !divides(nodes, caches) || !divides(smt, cpus / caches) {
        let what = format!("{cpus} CPUs are not {caches} caches of one size");
        return wrong(
            what,
            "the simulated machine has caches and nodes of one size",
        );
    }
    Ok(MachineChange {
        cpus: Some(cpus),
        smt: Some(smt),
        llc: Some(cpus / caches),
        node: Some(if nodes == 1 { 0 } else { cpus / nodes }),
        ..MachineChange::default()
    })
}

/// Nodes, CPUs, caches, and threads of a core.
fn numbers(word: &str) -> Option<(u16, u16, u16, u16)> {
    let parts: Vec<&str> = word.split('-').collect();
    let (nodes, rest) = match parts.as_slice() {
        [nodes, rest @ ..] if nodes.ends_with("numa") => (number(nodes, "numa")?, rest),
        rest => (1, rest),
    };
    let [cpus, caches, smt] = rest else {
        return None;
    };
    let smt = match *smt {
        "smt" => 2,
        "nosmt" => 1,
        _ => return None,
    };
    Some((nodes, number(cpus, "cpu")?, number(caches, "llc")?, smt))
}

fn number(part: &str, unit: &str) -> Option<u16> {
    part.strip_suffix(unit)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use model::{Advice as _, MachineSpec};

    use super::*;
    use crate::Services;

    /// The presets of ktstr 0.50.0 (`src/gauntlet.rs`) whose caches are of one size.
    const KTSTR: [&str; 25] = [
        "4cpu-1llc-nosmt",
        "4cpu-2llc-nosmt",
        "9cpu-3llc-nosmt",
        "15cpu-5llc-nosmt",
        "14cpu-7llc-nosmt",
        "8cpu-2llc-smt",
        "12cpu-3llc-smt",
        "32cpu-4llc-smt",
        "64cpu-8llc-smt",
        "128cpu-4llc-smt",
        "128cpu-8llc-smt",
        "240cpu-15llc-smt",
        "252cpu-14llc-smt",
        "32cpu-4llc-nosmt",
        "64cpu-8llc-nosmt",
        "128cpu-4llc-nosmt",
        "128cpu-8llc-nosmt",
        "240cpu-15llc-nosmt",
        "252cpu-14llc-nosmt",
        "2numa-32cpu-2llc-smt",
        "2numa-16cpu-4llc-nosmt",
        "2numa-128cpu-8llc-smt",
        "2numa-128cpu-8llc-nosmt",
        "4numa-32cpu-8llc-nosmt",
        "4numa-192cpu-12llc-smt",
    ];

    #[test]
    fn every_preset_is_a_machine_that_can_be_simulated() {
        let older = OLDER.iter().map(|it| it.0);
        for word in KTSTR.into_iter().chain(older) {
            let change = parse(word).unwrap_or_else(|error| panic!("{}", error.in_full()));
            let asked = MachineSpec::default();
            let machine = change.change(&Services::default(), &asked).unwrap();
            sim::check_machine(&machine).unwrap_or_else(|error| panic!("{word}: {error}"));
        }
        let two = parse("2numa-128cpu-8llc-smt").unwrap();
        let [cpus, smt, llc, node] = [two.cpus, two.smt, two.llc, two.node].map(Option::unwrap);
        assert_eq!([cpus, smt, llc, node], [128, 2, 16, 64]);
        assert_eq!(
            parse("tiny-2llc").unwrap(),
            parse("4cpu-2llc-nosmt").unwrap()
        );
    }

    #[test]
    fn what_is_no_machine_is_refused() {
        for word in [
            "",
            "8cpu",
            "8cpu-2llc",
            "8cpu-2llc-ht",
            "8-2-smt",
            "0cpu-1llc-nosmt",
            "8cpu-0llc-smt",
            "9cpu-2llc-nosmt",
            "6cpu-2llc-smt",
            "2000cpu-2llc-smt",
            "3numa-8cpu-2llc-smt",
            "99999cpu-1llc-smt",
            "-1cpu-1llc-smt",
            "192cpu-11llc-smt",
        ] {
            let error = parse(word).expect_err(word);
            assert!(
                error.what.contains(word) && error.advice.is_some(),
                "{error:?}"
            );
        }
    }
}
