//! How goals and limits are written.

use std::str::FromStr;

use model::{Advised, Nanos, span};
use stats::compare::Better;

use super::{Goal, Spans, Stat, Whose};

/// What a goal can be about.
const QUANTITIES: [&str; 12] = [
    "wait",
    "delay",
    "slice",
    "sleep",
    "span",
    "late",
    "work",
    "throughput",
    "cpu",
    "time",
    "energy",
    "work per joule",
];

/// How goals are written, for messages.
const FORMS: &str = "write `p99 wait of GROUP` (p50, p90, p99, p99.9, max or mean of wait, delay, \
                     slice, sleep or `span NAME`), `late DEADLINE of GROUP`, `work COUNTER of \
                     GROUP`, `throughput`, `cpu of GROUP`, `time of GROUP` or, with --hardware, \
                     `energy` or `work per joule`";

impl FromStr for Goal {
    type Err = Advised;

    /// Reads a goal. Which names there are is not known yet: see [`Goal::check`].
    fn from_str(text: &str) -> Result<Self, Advised> {
        let (front, whose) = match text.split_once(" of ") {
            Some((front, name)) => (front, name.trim()),
            None => (text, ""),
        };
        let whose = match whose {
            "" | "all" => Whose::All,
            name => Whose::Groups(name.to_owned()),
        };
        let mut words = front.split_whitespace().peekable();
        let way = match words.peek() {
            Some(&"lower") => Some(Better::Lower),
            Some(&"higher") => Some(Better::Higher),
            _ => None,
        };
        if way.is_some() {
            words.next();
        }
        let rest: Vec<&str> = words.collect();
        let name = |names: &[&str]| match names {
            [] => Ok(None),
            [name] => Ok(Some((*name).to_owned())),
            _ => Err(unknown(text, names[1])),
        };
        if let Some(stat) = rest.first().and_then(|word| stat_of(word)) {
            return time(text, (stat, way), &rest[1..], whose);
        }
        let goal = match rest.as_slice() {
            ["late", names @ ..] => Self::Late {
                deadline: name(names)?,
                whose,
            },
            ["throughput"] if whose == Whose::All => Self::Work {
                counter: None,
                whose,
            },
            ["work", "per", "joule"] => Self::Efficiency { whose },
            ["work", names @ ..] => Self::Work {
                counter: name(names)?,
                whose,
            },
            ["cpu"] => Self::Cpu { whose },
            ["time"] => Self::End { whose },
            ["energy"] => Self::Energy { whose },
            [
                quantity @ ("wait" | "delay" | "slice" | "sleep" | "span"),
                ..,
            ] => {
                return Err(Advised::new(
                    format!("`{text}` does not say which {quantity}"),
                    format!("write `p99 {text}`, or with p50, p90, p99.9, max or mean"),
                ));
            }
            rest => return Err(unknown(text, rest.first().copied().unwrap_or_default())),
        };
        match way {
            None => Ok(goal),
            Some(_) => Err(Advised::new(
                format!("`{text}`: it is known which way is good"),
                "leave out `lower` or `higher`",
            )),
        }
    }
}

/// A goal about spans of time, after its statistic.
fn time(
    text: &str,
    (stat, way): (Stat, Option<Better>),
    rest: &[&str],
    whose: Whose,
) -> Result<Goal, Advised> {
    let spans = match rest {
        ["wait"] => Spans::Wait,
        ["delay"] => Spans::Delay,
        ["slice"] => Spans::Slice,
        ["sleep"] => Spans::Sleep,
        ["span", name] => Spans::Named((*name).to_owned()),
        ["span"] => {
            return Err(Advised::new(
                format!("`{text}` does not name the span"),
                FORMS,
            ));
        }
        rest => return Err(unknown(text, rest.first().copied().unwrap_or_default())),
    };
    let better = way.unwrap_or(spans.better());
    Ok(Goal::Time {
        stat,
        spans,
        whose,
        better,
    })
}

/// The statistic of this name, to a tenth of a hundredth.
fn stat_of(word: &str) -> Option<Stat> {
    match word {
        "mean" => return Some(Stat::Mean),
        "max" => return Some(Stat::Max),
        "median" => return Some(Stat::Permille(500)),
        _ => {}
    }
    let (whole, tenth) = word
        .strip_prefix('p')?
        .split_once('.')
        .unwrap_or((&word[1..], "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    if !digits(whole) || whole.len() > 2 || !digits(tenth) || tenth.len() > 1 {
        return None;
    }
    let permille = whole.parse::<u16>().ok()? * 10 + tenth.parse::<u16>().ok()?;
    (permille > 0).then_some(Stat::Permille(permille))
}

fn unknown(text: &str, word: &str) -> Advised {
    let nearest = model::file::nearest(word, QUANTITIES);
    let meant = nearest.map_or_else(String::new, |it| format!("did you mean `{it}`? "));
    Advised::new(format!("`{text}` is no goal"), meant + FORMS)
}

/// Reads a limit of waits: `wait < TIME` or `wait=TIME`; `None` if it is about something else.
#[must_use]
pub fn wait_limit(text: &str) -> Option<Result<Nanos, String>> {
    let words: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let rest = words.strip_prefix("wait")?;
    let time = rest.strip_prefix(['<', '='])?;
    Some(span::parse(time))
}

/// Whether `name` is `pattern`, in which `*` stands for any text.
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(name) = name.strip_prefix(first) else {
        return false;
    };
    (0..=name.len())
        .filter(|at| name.is_char_boundary(*at))
        .any(|at| matches(rest, &name[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        assert!(matches("all.*_ns_p99", "all.wakeup_ns_p99"));
        assert!(matches("*", "x") && matches("*", "") && matches("a*", "a"));
        assert!(!matches("all.*_ns_p99", "all.wakeup_ns_p50"));
        assert!(!matches("all", "all.x"));
        assert!(matches("*é*", "né"));
    }

    #[test]
    fn a_limit_of_waits_has_either_sign() {
        let limit = Some(Ok(Nanos::from_millis(100)));
        assert_eq!(wait_limit("wait < 100ms"), limit);
        assert_eq!(wait_limit("wait=100ms"), limit);
        assert_eq!(wait_limit("weights"), None);
        assert_eq!(wait_limit("wait"), None);
        assert!(wait_limit("wait<1").is_some_and(|it| it.is_err()));
    }
}
