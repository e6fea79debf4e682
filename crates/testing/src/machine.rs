//! The machine of a test, in words apart by commas.

use ask::error::UsageError;
use ask::machine::{CPUS_MAX, MachineChange, SMT_MAX, parse_governor, parse_hz, parse_smt_share};
use ask::{kernel, topology};
use model::Advised;

/// Reads it.
///
/// # Errors
/// When a word is no topology and no option of a machine.
pub fn parse(text: &str) -> Result<MachineChange, UsageError> {
    let mut machine = MachineChange::default();
    for word in words(text) {
        match word.split_once('=') {
            None => {
                let named = topology::parse(word).map_err(UsageError::new)?;
                let MachineChange {
                    cpus,
                    smt,
                    llc,
                    node,
                    ..
                } = named;
                (machine.cpus, machine.smt, machine.llc, machine.node) = (cpus, smt, llc, node);
            }
            Some((name, value)) => set(&mut machine, name.trim(), value.trim())?,
        }
    }
    Ok(machine)
}

/// The options of a command line for the same machine.
pub fn options(text: &str) -> Vec<(String, String)> {
    let mut options: Vec<(String, String)> = Vec::new();
    // The last one of a name counts, and a command line takes one alone.
    let mut put = |name: &str, value: String| {
        let option = format!("--{name}");
        options.retain(|it| it.0 != option);
        options.push((option, value));
    };
    for word in words(text) {
        match (word.split_once('='), topology::parse(word)) {
            (Some((name, value)), _) => put(name.trim(), value.trim().to_owned()),
            (None, Ok(named)) => {
                let sizes = [named.cpus, named.smt, named.llc, named.node];
                let names = ["cpus", "smt", "llc", "node"];
                for (name, size) in names.into_iter().zip(sizes) {
                    if let Some(size) = size {
                        put(name, size.to_string());
                    }
                }
            }
            (None, Err(_)) => {}
        }
    }
    options
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|it| !it.is_empty())
}

fn set(machine: &mut MachineChange, name: &str, value: &str) -> Result<(), UsageError> {
    let wrong = |advice: &str| {
        let what = format!("invalid value `{value}` for `{name}` of a machine");
        UsageError::new(Advised::new(what, advice))
    };
    let number = |least: u16, most: u16| {
        let number = value.parse().ok().filter(|it| (least..=most).contains(it));
        number
            .map(Some)
            .ok_or_else(|| wrong(&format!("give a number from {least} to {most}")))
    };
    match name {
        "cpus" => machine.cpus = number(1, CPUS_MAX)?,
        "smt" => machine.smt = number(1, SMT_MAX)?,
        "llc" => machine.llc = number(0, CPUS_MAX)?,
        "node" => machine.node = number(0, CPUS_MAX)?,
        "hz" => machine.hz = Some(parse_hz(value).map_err(|it| wrong(&it))?),
        "kernel" => machine.kernel = Some(kernel::parse(value).map_err(|it| wrong(&it))?),
        "profile" => machine.profile = Some(value.to_owned()),
        "hardware" => machine.hardware = Some(value.to_owned()),
        "smt-share" => {
            machine.smt_share = Some(parse_smt_share(value).map_err(|it| wrong(&it))?);
        }
        "governor" => {
            machine.governor = Some(parse_governor(value).map_err(|it| wrong(&it))?);
        }
        _ => {
            return Err(UsageError::new(Advised::new(
                format!("a machine has no `{name}`"),
                "there are: cpus, smt, llc, node, hz, kernel, profile, hardware, smt-share, \
                 governor",
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_a_topology_and_options_in_any_order() {
        let machine = parse("2numa-16cpu-4llc-nosmt, hz=1000,kernel=7.2").unwrap();
        assert_eq!(
            (machine.cpus, machine.llc, machine.node),
            (Some(16), Some(4), Some(8))
        );
        assert_eq!(machine.hz, Some(1000));
        assert_eq!(parse("").unwrap(), MachineChange::default());
        let options = options("hz=250,tiny-2llc,cpus=8,hz=1000");
        let options: Vec<String> = options
            .iter()
            .map(|it| format!("{} {}", it.0, it.1))
            .collect();
        assert_eq!(
            options,
            ["--smt 1", "--llc 2", "--node 0", "--cpus 8", "--hz 1000"]
        );
    }

    #[test]
    fn a_word_that_is_none_is_refused() {
        for bad in [
            "cpus=0",
            "cpus=x",
            "hz=7",
            "kernel=x",
            "colour=red",
            "8cpu",
            "=",
            "cpus=",
        ] {
            parse(bad).expect_err(bad);
        }
    }
}
