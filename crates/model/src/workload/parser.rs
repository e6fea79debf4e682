//! Reads expressions and distributions.

use super::error::Problem;
use super::names::{self, Instances, Names};
use super::token::{Token, tokens};
use super::{Amount, Binary, DRAW_MAX, Dist, Expr, Place, Scope, Target};
use crate::Nanos;

/// Brackets in brackets, and operators in a row, end here: evaluation recurses so deep.
const DEPTH_MAX: usize = 100;

/// A problem, and its offset in the text that is read.
pub(super) type Failure = (Problem, usize);

/// A reader of one text.
pub(super) struct Parser<'n> {
    words: Vec<(Token, usize)>,
    at: usize,
    depth: usize,
    pub names: &'n mut Names,
    /// Variables in sight, innermost last, with their slots.
    pub scope: Vec<(String, u32)>,
    /// How many variables there have been.
    pub variables: u32,
}

/// Operators by how weakly they bind; `not` stands between the second and the third row.
const LEVELS: [&[(&str, Binary)]; 5] = [
    &[("or", Binary::Or)],
    &[("and", Binary::And)],
    &[
        ("==", Binary::Equal),
        ("!=", Binary::NotEqual),
        ("<=", Binary::LessEqual),
        (">=", Binary::GreaterEqual),
        ("<", Binary::Less),
        (">", Binary::Greater),
    ],
    &[("+", Binary::Add), ("-", Binary::Sub)],
    &[("*", Binary::Mul), ("/", Binary::Div), ("%", Binary::Rem)],
];

/// Words that no variable may be called.
pub(super) const KEYWORDS: [&str; 9] = [
    "self", "cpus", "len", "rand", "and", "or", "not", "inf", "else",
];

impl<'n> Parser<'n> {
    /// A reader of `text`.
    pub fn new(text: &str, names: &'n mut Names) -> Result<Self, Failure> {
        let words = tokens(text)?;
        Ok(Self {
            words,
            at: 0,
            depth: 0,
            names,
            scope: Vec::new(),
            variables: 0,
        })
    }

    /// Goes on with another text; variables stay in sight.
    pub fn next_text(&mut self, text: &str) -> Result<(), Failure> {
        self.words = tokens(text)?;
        self.at = 0;
        Ok(())
    }

    /// The word that is next.
    pub fn peek(&self) -> &Token {
        &self.words[self.at].0
    }

    /// Where the next word begins.
    pub fn offset(&self) -> usize {
        self.words[self.at].1
    }

    /// Takes the next word.
    pub fn take(&mut self) -> Token {
        let token = self.peek().clone();
        // The end is never passed, so there always is a next word.
        self.at = (self.at + 1).min(self.words.len() - 1);
        token
    }

    /// Takes the next word if it is this sign or keyword.
    pub fn accept(&mut self, word: &str) -> bool {
        let is = match self.peek() {
            Token::Sign(sign) => *sign == word,
            Token::Name(name) => name == word,
            _ => false,
        };
        if is {
            self.take();
        }
        is
    }

    /// Takes this sign.
    pub fn expect(&mut self, sign: &str) -> Result<(), Failure> {
        if self.accept(sign) {
            Ok(())
        } else {
            self.fail(format!("`{sign}`"))
        }
    }

    /// Takes the end.
    pub fn expect_end(&mut self) -> Result<(), Failure> {
        if *self.peek() == Token::End {
            Ok(())
        } else {
            self.fail("the end")
        }
    }

    /// The next word is not what was expected.
    pub fn fail<T>(&self, expected: impl Into<String>) -> Result<T, Failure> {
        Err((
            Problem::unexpected(self.peek().to_string(), expected),
            self.offset(),
        ))
    }

    /// Takes a name, with its offset.
    pub fn name(&mut self, expected: &str) -> Result<(String, usize), Failure> {
        let at = self.offset();
        match self.peek() {
            Token::Name(_) => {}
            _ => return self.fail(expected),
        }
        let Token::Name(name) = self.take() else {
            unreachable!("the word was a name")
        };
        Ok((name, at))
    }

    /// Reads with `read` one level deeper.
    pub fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if self.depth == DEPTH_MAX {
            return Err((Problem::TooDeep(DEPTH_MAX), self.offset()));
        }
        self.depth += 1;
        let result = read(self)?;
        self.depth -= 1;
        Ok(result)
    }

    /// An expression.
    pub fn expr(&mut self) -> Result<Expr, Failure> {
        self.level(0)
    }

    fn level(&mut self, level: usize) -> Result<Expr, Failure> {
        if level == 2 && self.accept("not") {
            return Ok(Expr::Not(Box::new(self.deeper(|p| p.level(2))?)));
        }
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.level(level + 1)?;
        for _ in 0..DEPTH_MAX {
            let found = operators.iter().find(|(sign, _)| self.accept(sign));
            let Some(&(_, operator)) = found else {
                return Ok(left);
            };
            let right = self.level(level + 1)?;
            left = Expr::Binary(operator, Box::new(left), Box::new(right));
        }
        Err((Problem::TooDeep(DEPTH_MAX), self.offset()))
    }

    fn unary(&mut self) -> Result<Expr, Failure> {
        if self.accept("-") {
            return Ok(Expr::Negate(Box::new(self.deeper(Self::unary)?)));
        }
        self.factor()
    }

    fn factor(&mut self) -> Result<Expr, Failure> {
        if self.accept("(") {
            let inner = self.deeper(Self::expr)?;
            self.expect(")")?;
            return Ok(inner);
        }
        if let Token::Integer(value) = *self.peek() {
            self.take();
            return Ok(Expr::Number(value));
        }
        let (name, at) = self.name("an integer or a name")?;
        match name.as_str() {
            "self" => Ok(Expr::Me),
            "cpus" => Ok(Expr::Cpus),
            "len" => {
                self.expect("(")?;
                let place = self.deeper(Self::channel)?;
                self.expect(")")?;
                Ok(Expr::Queued(place.of, Box::new(place.index)))
            }
            "rand" => {
                self.expect("(")?;
                let bound = self.deeper(Self::expr)?;
                self.expect(")")?;
                Ok(Expr::Random(Box::new(bound)))
            }
            _ => self.value_of(&name).map_err(|problem| (problem, at)),
        }
    }

    /// A variable or a parameter.
    fn value_of(&self, name: &str) -> Result<Expr, Problem> {
        if let Some((_, slot)) = self.scope.iter().rev().find(|(known, _)| known == name) {
            return Ok(Expr::Variable(*slot));
        }
        if let Some((_, value)) = self.names.scale.iter().find(|(known, _)| known == name) {
            return Ok(Expr::Number(*value));
        }
        let variables = self.scope.iter().map(|(name, _)| name.as_str());
        let scale = self.names.scale.iter().map(|(name, _)| name.as_str());
        Err(Problem::unknown(
            "name",
            name,
            variables.chain(scale).chain(KEYWORDS),
        ))
    }

    /// An expression that has a value before the workload runs.
    pub fn constant(&mut self) -> Result<i64, Failure> {
        let at = self.offset();
        let expr = self.expr()?;
        value_before_the_run(&expr).map_err(|problem| (problem, at))
    }

    /// `c[i]`, a channel, with a constant index.
    pub fn constant_channel(&mut self) -> Result<Place, Failure> {
        let at = self.offset();
        let Place { of, index } = self.channel()?;
        let index = value_before_the_run(&index).map_err(|problem| (problem, at))?;
        Ok(Place {
            of,
            index: Expr::Number(index),
        })
    }

    /// `T` or `T[i]`, a task, with a constant index.
    pub fn constant_target(&mut self) -> Result<Target, Failure> {
        let at = self.offset();
        let Target::Member { group, index } = self.target()? else {
            return Err((Problem::NotConstant("self"), at));
        };
        let index = value_before_the_run(&index).map_err(|problem| (problem, at))?;
        Ok(Target::Member {
            group,
            index: Expr::Number(index),
        })
    }

    /// A span of time.
    pub fn span(&mut self) -> Result<Nanos, Failure> {
        let Token::Span(span) = *self.peek() else {
            return self.fail("a span of time with its unit, as `1.5ms`");
        };
        self.take();
        Ok(span)
    }

    /// A distribution and what its draws are multiplied by.
    pub fn amount(&mut self) -> Result<Amount, Failure> {
        let dist = self.dist()?;
        let times = if self.accept("*") {
            self.factor()?
        } else {
            Expr::Number(1)
        };
        Ok(Amount { dist, times })
    }

    /// A distribution of spans.
    pub fn dist(&mut self) -> Result<Dist, Failure> {
        if matches!(self.peek(), Token::Span(_)) {
            return Ok(Dist::Const(self.span()?));
        }
        let (name, at) = self.name("a span of time, as `1.5ms`, or a distribution")?;
        let known = ["const", "uniform", "exp", "lognormal", "pareto", "hist"];
        if !known.contains(&name.as_str()) {
            return Err((Problem::unknown("distribution", &name, known), at));
        }
        self.expect("(")?;
        let dist = match name.as_str() {
            "const" => Dist::Const(self.span()?),
            "uniform" => self.uniform()?,
            "exp" => Dist::Exp(self.span()?),
            "lognormal" => {
                let median = self.span()?;
                Dist::Lognormal {
                    median,
                    sigma: self.positive("sigma")?,
                }
            }
            "pareto" => {
                let scale = self.span()?;
                Dist::Pareto {
                    scale,
                    shape: self.positive("the shape")?,
                }
            }
            _ => Dist::Hist(self.bins()?),
        };
        self.expect(")")?;
        Ok(dist)
    }

    fn uniform(&mut self) -> Result<Dist, Failure> {
        let low = self.span()?;
        self.expect(",")?;
        let at = self.offset();
        let high = self.span()?;
        if low > high {
            let expected = format!("a span of at least {} ns", low.get());
            return Err((
                Problem::unexpected(format!("{} ns", high.get()), expected),
                at,
            ));
        }
        Ok(Dist::Uniform(low, high))
    }

    /// A comma and a number above zero.
    fn positive(&mut self, what: &str) -> Result<f64, Failure> {
        self.expect(",")?;
        let at = self.offset();
        let value = match self.take() {
            Token::Decimal(value) => value,
            Token::Integer(value) if value <= 1_000 => f64::from(i16::try_from(value).unwrap_or(0)),
            found => return Err((Problem::unexpected(found.to_string(), "a number"), at)),
        };
        if value > 0.0 && value <= 1_000.0 {
            return Ok(value);
        }
        let expected = "more than 0 and at most 1000".to_owned();
        Err((
            Problem::Range {
                what: what.to_owned(),
                found: value.to_string(),
                expected,
            },
            at,
        ))
    }

    fn bins(&mut self) -> Result<Vec<(Nanos, u64)>, Failure> {
        let at = self.offset();
        let mut bins = Vec::new();
        loop {
            let span = self.span()?;
            self.expect(":")?;
            bins.push((span, self.weight()?));
            if !self.accept(",") {
                break;
            }
        }
        check_weights(bins.iter().map(|(_, weight)| *weight)).map_err(|problem| (problem, at))?;
        Ok(bins)
    }

    /// A weight: a constant that is not negative.
    pub fn weight(&mut self) -> Result<u64, Failure> {
        let at = self.offset();
        let value = self.constant()?;
        u64::try_from(value).map_err(|_| (range("the weight", value, "0 or more"), at))
    }

    /// `c[i]`, a channel.
    pub fn channel(&mut self) -> Result<Place, Failure> {
        self.place("channel", |names| &names.channels)
    }

    /// `name[i]`, an instance of something declared.
    pub fn place(
        &mut self,
        what: &'static str,
        declared: impl Fn(&Names) -> &Instances,
    ) -> Result<Place, Failure> {
        let (name, at) = self.name(&format!("the name of a {what}"))?;
        let instances = declared(self.names);
        let of = names::find(what, &name, instances.iter().map(|(name, _)| name.as_str()))
            .map_err(|problem| (problem, at))?;
        let count = instances[of as usize].1;
        if self.accept("[") {
            let index = self.deeper(Self::expr)?;
            self.expect("]")?;
            return Ok(Place { of, index });
        }
        match count {
            1 => Ok(Place {
                of,
                index: Expr::Number(0),
            }),
            _ => Err((Problem::WhichInstance { name, count }, at)),
        }
    }

    /// `self`, `T` or `T[i]`, a task.
    pub fn target(&mut self) -> Result<Target, Failure> {
        if self.accept("self") {
            return Ok(Target::Me);
        }
        let group = self.group()?;
        let mut index = Expr::Number(0);
        if self.accept("[") {
            index = self.deeper(Self::expr)?;
            self.expect("]")?;
        }
        Ok(Target::Member { group, index })
    }

    /// The name of a group of tasks.
    pub fn group(&mut self) -> Result<u32, Failure> {
        let (name, at) = self.name("the name of a task")?;
        names::find("task", &name, self.names.groups.iter().map(String::as_str))
            .map_err(|problem| (problem, at))
    }
}

/// `what` is `value`, which `expected` excludes.
pub(super) fn range(what: &str, value: i64, expected: &str) -> Problem {
    Problem::Range {
        what: what.to_owned(),
        found: value.to_string(),
        expected: expected.to_owned(),
    }
}

/// Weights must have a sum to draw from.
pub(super) fn check_weights(mut weights: impl Iterator<Item = u64>) -> Result<(), Problem> {
    let sum = weights.try_fold(0_u64, u64::checked_add);
    if sum.is_some_and(|sum| sum > 0) {
        return Ok(());
    }
    Err(Problem::unexpected(
        "weights whose sum is 0 or exceeds 64 bits",
        "weights to draw by",
    ))
}

/// The value of an expression that needs no run.
fn value_before_the_run(expr: &Expr) -> Result<i64, Problem> {
    match unknown_before_the_run(expr) {
        Some(name) => Err(Problem::NotConstant(name)),
        None => Ok(expr.eval(&mut Nowhere)?),
    }
}

/// What in `expr` has no value before the workload runs.
fn unknown_before_the_run(expr: &Expr) -> Option<&'static str> {
    match expr {
        Expr::Number(_) => None,
        Expr::Variable(_) => Some("a variable"),
        Expr::Me => Some("self"),
        Expr::Cpus => Some("cpus"),
        Expr::Queued(..) => Some("len"),
        Expr::Random(_) => Some("rand"),
        Expr::Negate(x) | Expr::Not(x) => unknown_before_the_run(x),
        Expr::Binary(_, x, y) => unknown_before_the_run(x).or_else(|| unknown_before_the_run(y)),
    }
}

/// The scope of a constant, which asks for nothing.
struct Nowhere;

impl Scope for Nowhere {
    fn variable(&self, _: u32) -> i64 {
        unreachable!("a constant has no variable")
    }

    fn me(&self) -> i64 {
        unreachable!("a constant does not know its task")
    }

    fn cpus(&self) -> i64 {
        unreachable!("a constant does not know the machine")
    }

    fn queued(&self, _: u32, _: i64) -> Option<i64> {
        unreachable!("a constant has no channels")
    }

    fn random(&mut self, _: u64) -> u64 {
        unreachable!("a constant does not draw")
    }
}

// The sum of two spans that the parser lets through must stay a span.
const _: () = assert!(DRAW_MAX.get() < u64::MAX / 4);
