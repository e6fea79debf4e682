use super::*;
use crate::Advice as _;

const GOOD: &str = "[hardware]\nname = \"mine\"\nsources = [\"me\"]\norder = [\"a*2\"]\n\
                    [class.a]\ncapacity = 1024\n";

fn refused(text: &str) -> String {
    Hardware::parse(text, "h.toml").unwrap_err().in_full()
}

#[test]
fn a_file_need_not_say_more_than_the_classes_and_their_order() {
    let hardware = Hardware::parse(GOOD, "h.toml").unwrap();
    assert_eq!((hardware.name.as_str(), hardware.cpus.len()), ("mine", 2));
    assert!(!hardware.has_power());
}

#[test]
fn mistakes_are_told_with_their_places() {
    for (from, to, want) in [
        ("a*2", "b*2", "h.toml:4:11: unknown class `b`"),
        ("a*2", "a*0", "h.toml:4:11: found \"a*0\""),
        ("a*2", "a*2000", "h.toml:4:11: found \"a*2000\""),
        (
            "1024",
            "1025",
            "h.toml:6:12: `capacity` is the number 1025; expected 1 to 1024",
        ),
        (
            "1024",
            "512",
            "h.toml:4:9: found no CPU has the capacity 1024",
        ),
        (
            "1024",
            "1024\ncolour = 1",
            "h.toml:7:1: unknown key `colour`",
        ),
        (
            "1024",
            "1024\nopps = [\"2GHz\", \"1GHz\"]",
            "h.toml:7:17: found",
        ),
        (
            "1024",
            "1024\nopps = [\"2\"]",
            "h.toml:7:10: found \"2\"; expected a frequency",
        ),
        (
            "1024",
            "1024\nthreads = 3",
            "h.toml:7:11: `threads` is the number 3",
        ),
        (
            "1024",
            "1024\nopps = [\"1GHz\", \"2GHz\"]\n[turbo]\na = [\"1: 1GHz\", \"2: 2GHz\"]",
            "h.toml:9:18: found \"2: 2GHz\"; expected frequencies of `opps`",
        ),
        (
            "1024",
            "1024\n[turbo]\nb = []",
            "h.toml:8:1: unknown class `b`",
        ),
        ("[class.a]", "[clas.a]", "h.toml:5:2: unknown key `clas`"),
        (
            "1024",
            "1024\n[llc]\ncpus = [3]",
            "h.toml:8:8: found a list; expected 2 CPUs together",
        ),
        (
            "1024",
            "1024\n[llc]\ncpus = [2]\nsize = [\"0MiB\"]",
            "h.toml:9:9: found the string \"0MiB\"; expected a size above zero",
        ),
        (
            "\"me\"",
            "",
            "h.toml:3:11: found a list; expected at least one source",
        ),
    ] {
        let said = refused(&GOOD.replace(from, to));
        assert!(said.starts_with(want), "{from} -> {to}: {said}");
    }
    assert!(refused("[class.a]\ncapacity = 1024\n").contains("lacks `hardware`"));
}
