//! Published schedulers' own programs against the stub: `LOADER='PROGRAM ARGS' BTF=FILE` names one
//! and the kernel's types.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod support;

use model::Nanos;
use support::{BOOT, Driven, settings};

#[test]
#[ignore = "needs a scheduler's program, named by LOADER, and a kernel's types, named by BTF"]
fn a_published_loader_attaches_goes_on_and_ends() {
    let words = std::env::var("LOADER").expect("LOADER='PROGRAM ARGS'");
    let words: Vec<&str> = words.split_ascii_whitespace().collect();
    let mut settings = settings(8);
    settings.shown.btf = std::fs::read(std::env::var_os("BTF").expect("BTF")).expect("types");
    let mut driven = Driven::start(words[0], &words[1..], settings);
    let end = driven.try_run(BOOT + Nanos::from_secs(10));
    let attached = driven.kernel.attached.is_some();
    let links = driven
        .kernel
        .log
        .iter()
        .filter(|it| it.contains(" link "))
        .count();
    println!(
        "{} turns, {links} links, attached {attached}, {end:?}",
        driven.turns
    );
    println!(
        "{:?}\n{:?}",
        driven.user.summary(),
        model::user_space::UserSpace::waits(&driven.user)
    );
    if !attached {
        println!(
            "{}\n{}\n{}",
            driven.kernel.log.join("\n"),
            driven.out(),
            driven.err()
        );
    }
    assert!(attached);
    driven.interrupt();
    let end = driven.try_run(BOOT + Nanos::from_secs(20));
    println!("{end:?}\n{}\n{}", driven.out(), driven.err());
    let end = end.expect("it goes on").expect("it ends");
    assert_eq!((end.status, driven.kernel.attached), (0, None));
}
