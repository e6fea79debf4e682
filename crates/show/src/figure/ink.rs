//! Which colour has what: a scheduler has one colour in all figures and on all pages, and nothing
//! else has that colour.

use model::Fnv1a;

/// Light and dark screen.
type Shade = (&'static str, &'static str);

/// Colours of the schedulers that everybody has, by name. The first are of Okabe and Ito (2008),
/// "Color Universal Design", whose colours people with any usual colour vision tell apart; those
/// that are too dark on black have brighter relatives.
const NAMED: [(&str, Shade); 19] = [
    ("mlfq", ("#0072b2", "#56b4e9")),
    ("fifo", ("#d55e00", "#ff8c42")),
    ("o1", ("#009e73", "#33c9a0")),
    ("goodness", ("#cc79a7", "#e3a3c6")),
    ("elsc", ("#8a6d00", "#d9b83b")),
    ("staircase", ("#7b3294", "#c58be0")),
    ("staircase5", ("#a6243c", "#f07b8d")),
    ("eevdf", ("#000000", "#f2f2f2")),
    ("cfs", ("#5a6b7a", "#a9b9c7")),
    ("default", ("#7a5230", "#c9a07a")),
    // The lessons, which seldom stand beside those above.
    ("fcfs", ("#b3541e", "#f2a06e")),
    ("sjf", ("#1f6fb4", "#7fb8ee")),
    ("srtf", ("#2e8b3d", "#7fd08c")),
    ("rr", ("#6a3fa0", "#b99be6")),
    ("feedback", ("#00838f", "#5fd0dc")),
    ("lottery", ("#a8327d", "#ec8fca")),
    ("stride", ("#8a7a00", "#d8c84a")),
    ("fair", ("#4a5a8a", "#a4b2e0")),
    ("partition", ("#5f6b2d", "#b9c67a")),
];

/// Colours of all other schedulers: those of users, and built-in ones with knobs.
const FREE: [Shade; 6] = [
    ("#e69f00", "#f0c14b"),
    ("#1b8a8a", "#4fd6d6"),
    ("#3b3bd6", "#a0a0ff"),
    ("#4d7d1a", "#9ccc5a"),
    ("#d6338a", "#ff7fc0"),
    ("#c21807", "#ff9a8c"),
];

/// Colours of task groups, kinds of calls and whatever else is no scheduler. Source: Tol (2021),
/// "Colour schemes", the scheme `light`, which reads on white and on black.
const KINDS: [&str; 8] = [
    "#77aadd", "#ee8866", "#44bb99", "#aaaa00", "#ffaabb", "#99ddff", "#bbcc33", "#eedd88",
];

const GREY: Shade = ("#9a9a9a", "#7d7d7d");

/// Things other than schedulers that have a colour of their own; the rest is grey.
pub const COLOURS: usize = KINDS.len();

const SCHEDULERS: usize = NAMED.len() + FREE.len();
const ALL: usize = SCHEDULERS + COLOURS + 1;

/// A colour, as its number in the style sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ink(usize);

impl Ink {
    /// What has no colour of its own.
    pub const GREY: Self = Self(ALL - 1);

    /// The colour of the thing number `index` of a figure that shows no schedulers.
    #[must_use]
    pub const fn kind(index: usize) -> Self {
        if index < COLOURS {
            Self(SCHEDULERS + index)
        } else {
            Self::GREY
        }
    }

    /// The colours of the schedulers of one page. A built-in one always has the same; that of
    /// another follows from its name, unless one before it on the page has it. More than there are
    /// colours are grey.
    #[must_use]
    pub fn of_schedulers<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<Self> {
        let names: Vec<&str> = names.into_iter().collect();
        let named = |name: &str| NAMED.iter().position(|(known, _)| *known == name);
        let mut taken = [false; SCHEDULERS];
        for at in names.iter().filter_map(|name| named(name)) {
            taken[at] = true;
        }
        let mut known: Vec<(&str, Self)> = Vec::new();
        let mut inks = Vec::new();
        for name in names {
            let again = known.iter().find(|(other, _)| *other == name);
            let ink = match (again, named(name)) {
                (Some((_, ink)), _) => *ink,
                (None, Some(at)) => Self(at),
                (None, None) => Self::free(name, &mut taken),
            };
            known.push((name, ink));
            inks.push(ink);
        }
        inks
    }

    /// A colour that no other has yet: of the free ones first, from where the name says.
    fn free(name: &str, taken: &mut [bool; SCHEDULERS]) -> Self {
        let wanted = (Fnv1a::of(name.bytes()) % FREE.len() as u64) as usize;
        let free = (0..FREE.len()).map(|step| NAMED.len() + (wanted + step) % FREE.len());
        let Some(at) = free.chain(0..NAMED.len()).find(|at| !taken[*at]) else {
            return Self::GREY;
        };
        taken[at] = true;
        Self(at)
    }

    /// Its number, for the classes `l` of lines and `f` of areas.
    pub(super) const fn number(self) -> usize {
        self.0
    }

    /// Its colour on a light screen.
    #[must_use]
    pub fn light(self) -> &'static str {
        self.shade().0
    }

    fn shade(self) -> Shade {
        if let Some((_, shade)) = NAMED.get(self.0) {
            return *shade;
        }
        if let Some(shade) = FREE.get(self.0 - NAMED.len()) {
            return *shade;
        }
        let kind = KINDS.get(self.0 - SCHEDULERS);
        kind.map_or(GREY, |shade| (*shade, *shade))
    }

    /// All colours with those of a dark screen.
    pub(super) fn dark() -> impl Iterator<Item = (usize, &'static str)> {
        (0..ALL).map(|at| (at, Self(at).shade().1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduler_has_its_colour_whoever_else_is_on_the_page() {
        let one = Ink::of_schedulers(["mlfq"]);
        let two = Ink::of_schedulers(["fifo", "mine", "mlfq"]);
        assert_eq!(one[0], two[2]);
        assert_eq!(Ink::of_schedulers(["mine"])[0], two[1]);
        let twice = Ink::of_schedulers(["mine", "mlfq", "mine"]);
        assert_eq!(twice[0], twice[2]);
    }

    #[test]
    fn a_policy_of_the_users_has_a_colour_of_no_built_in_one() {
        let mut shades: Vec<Shade> = NAMED.iter().map(|it| it.1).chain(FREE).collect();
        let all = shades.len();
        shades.sort_unstable();
        shades.dedup();
        assert_eq!(shades.len(), all);
        for name in ["mine", "mine.bpf.c", "mlfq:queues=3"] {
            assert!(
                Ink::of_schedulers([name])[0].number() >= NAMED.len(),
                "{name}"
            );
        }
    }

    #[test]
    fn no_two_schedulers_of_a_page_share_a_colour_while_there_are_some() {
        let names: Vec<String> = (0..SCHEDULERS).map(|at| format!("mine:a={at}")).collect();
        let inks = Ink::of_schedulers(names.iter().map(String::as_str));
        let mut numbers: Vec<usize> = inks.iter().map(|ink| ink.number()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers, (0..SCHEDULERS).collect::<Vec<_>>());
        let more = Ink::of_schedulers(names.iter().map(String::as_str).chain(["one more"]));
        assert_eq!(more.last(), Some(&Ink::GREY));
    }

    #[test]
    fn task_groups_have_no_colour_of_a_scheduler() {
        for kind in 0..COLOURS + 2 {
            assert!(Ink::kind(kind).number() >= SCHEDULERS);
        }
        assert_eq!(Ink::kind(COLOURS), Ink::GREY);
        assert_eq!(Ink::GREY.light(), "#9a9a9a");
    }
}
