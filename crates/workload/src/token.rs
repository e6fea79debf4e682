//! The words of operations and expressions.

use std::fmt;

use super::{CpuSet, DRAW_MAX};
use model::Nanos;
use model::file::Problem;

/// A word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A name or a keyword.
    Name(String),
    /// An integer; a size has been turned into bytes.
    Integer(i64),
    /// A number with a decimal point.
    Decimal(f64),
    /// A number with a unit of time.
    Span(Nanos),
    /// CPUs in braces.
    Cpus(CpuSet),
    /// A sign or an operator.
    Sign(&'static str),
    /// The text's end.
    End,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "`{name}`"),
            Self::Integer(value) => write!(f, "`{value}`"),
            Self::Decimal(value) => write!(f, "`{value:?}`"),
            Self::Span(span) => write!(f, "`{}ns`", span.get()),
            Self::Cpus(cpus) => write!(f, "`{{{cpus}}}`"),
            Self::Sign(sign) => write!(f, "`{sign}`"),
            Self::End => f.write_str("the end"),
        }
    }
}

/// Longer signs stand before those that they begin with.
const SIGNS: [&str; 20] = [
    "==", "!=", "<=", ">=", "<", ">", "=", "+", "-", "*", "/", "%", "(", ")", "[", "]", ",", ";",
    ":", ".",
];

const TIMES: [(&str, u64); 4] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
];
const SIZES: [(&str, u64); 4] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// Splits `text` into words, each with its offset in bytes; the last is [`Token::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, usize)>, (Problem, usize)> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let at = text.len() - rest.len();
        let (token, length) = token(rest).map_err(|problem| (problem, at))?;
        words.push((token, at));
        rest = rest[length..].trim_start();
    }
    words.push((Token::End, text.len()));
    Ok(words)
}

/// The first word of `text`, and how many bytes it takes.
fn token(text: &str) -> Result<(Token, usize), Problem> {
    let first = text
        .chars()
        .next()
        .expect("the caller has seen that there is text");
    if first.is_ascii_digit() {
        let length = length(text, |c| c.is_ascii_alphanumeric() || c == '.');
        return Ok((number(&text[..length])?, length));
    }
    if first.is_ascii_alphabetic() || first == '_' {
        let length = length(text, |c| c.is_ascii_alphanumeric() || c == '_');
        return Ok((Token::Name(text[..length].to_owned()), length));
    }
    if first == '{' {
        let expected = || Problem::unexpected(format!("`{text}`"), "CPUs as `{0-3,5}`");
        let length = text.find('}').ok_or_else(expected)? + 1;
        let cpus = CpuSet::parse(text[1..length - 1].trim()).ok_or_else(expected)?;
        return Ok((Token::Cpus(cpus), length));
    }
    let sign = SIGNS.into_iter().find(|sign| text.starts_with(sign));
    let sign = sign.ok_or_else(|| Problem::unexpected(format!("`{first}`"), "a word or a sign"))?;
    Ok((Token::Sign(sign), sign.len()))
}

fn length(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}

/// A number with or without a unit: `12`, `0.3`, `1.5ms`, `64KiB`.
fn number(text: &str) -> Result<Token, Problem> {
    let (digits, unit) = text.split_at(length(text, |c| c.is_ascii_digit() || c == '.'));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let bad = |expected: &str| Problem::unexpected(format!("`{text}`"), expected);
    let has_point = digits.len() != whole.len();
    if fraction.contains('.') || (has_point && fraction.is_empty()) {
        return Err(bad("a number"));
    }
    if let Some((_, scale)) = TIMES.into_iter().find(|(name, _)| *name == unit) {
        let ns = scaled(whole, fraction, scale).ok_or_else(|| bad("whole nanoseconds"))?;
        let span = Nanos::new(ns);
        let fits = span <= DRAW_MAX;
        return fits
            .then_some(Token::Span(span))
            .ok_or_else(|| bad("a span of at most 100 days"));
    }
    if unit.is_empty() && has_point {
        return Ok(Token::Decimal(digits.parse().map_err(|_| bad("a number"))?));
    }
    let sizes = || SIZES.into_iter().chain([("", 1)]);
    if let Some((_, scale)) = sizes().find(|(name, _)| *name == unit) {
        let value = scaled(whole, fraction, scale).and_then(|value| i64::try_from(value).ok());
        return value
            .map(Token::Integer)
            .ok_or_else(|| bad("an integer of at most 63 bits"));
    }
    let units = TIMES.into_iter().chain(SIZES).map(|(name, _)| name);
    Err(Problem::unknown("unit", unit, units))
}

/// `whole.fraction` times `scale`, if that is an integer and fits.
fn scaled(whole: &str, fraction: &str, scale: u64) -> Option<u64> {
    let fraction = fraction.trim_end_matches('0');
    let parts = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let value = digits.checked_mul(u128::from(scale))?;
    (value % u128::from(parts) == 0).then(|| u64::try_from(value / u128::from(parts)).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Advice as _;

    fn one(text: &str) -> Result<Token, String> {
        let words = tokens(text).map_err(|(problem, _)| problem.in_full())?;
        assert_eq!(words.len(), 2, "{text:?} is one word and the end");
        Ok(words[0].0.clone())
    }

    #[test]
    fn a_span_is_a_whole_number_of_nanoseconds() {
        assert_eq!(one("1.5ms"), Ok(Token::Span(Nanos::new(1_500_000))));
        assert_eq!(one("0.3us"), Ok(Token::Span(Nanos::new(300))));
        assert_eq!(one("2.50s"), Ok(Token::Span(Nanos::new(2_500_000_000))));
        assert!(one("0.5ns").unwrap_err().contains("whole nanoseconds"));
        assert!(one("9000000s").unwrap_err().contains("100 days"));
    }

    #[test]
    fn a_size_is_a_number_of_bytes() {
        assert_eq!(one("64KiB"), Ok(Token::Integer(65_536)));
        assert_eq!(one("7"), Ok(Token::Integer(7)));
        assert!(one("99999999999999999999").unwrap_err().contains("63 bits"));
    }

    #[test]
    fn an_unknown_unit_is_named_with_its_nearest() {
        assert_eq!(
            one("5msec").unwrap_err(),
            "unknown unit `msec`; did you mean `ms`?"
        );
        assert_eq!(
            one("5KB").unwrap_err(),
            "unknown unit `KB`; did you mean `B`?"
        );
        assert!(one("1.2.3").is_err() && one("1.").is_err());
    }

    #[test]
    fn words_know_where_they_begin() {
        let words = tokens(" a<=b[{0-3}]").unwrap();
        let at: Vec<usize> = words.iter().map(|(_, at)| *at).collect();
        assert_eq!(at, [1, 2, 4, 5, 6, 11, 12]);
        assert_eq!(words[4].0, Token::Cpus(CpuSet::parse("0-3").unwrap()));
    }

    #[test]
    fn what_begins_no_word_is_refused_where_it_stands() {
        assert_eq!(tokens("run(1ms) ä").unwrap_err().1, 9);
        assert_eq!(tokens("a {0-").unwrap_err().1, 2);
    }
}
