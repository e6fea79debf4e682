//! Reads expressions.

use super::{DEPTH_MAX, Failure, Parser};
use crate::token::Token;
use crate::{Binary, Expr, IndexedResource, Scope, Target};
use model::file::Problem;

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

impl Parser<'_> {
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

    pub(super) fn factor(&mut self) -> Result<Expr, Failure> {
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
            "got" => Ok(Expr::Got),
            "randkey" => {
                self.expect("(")?;
                let of = self.keyed_lock()?;
                self.expect(")")?;
                Ok(Expr::Key(of))
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
        // Of the words of the language, those that stand for a number.
        let own = ["self", "cpus", "rand", "randkey"];
        let known = variables.chain(scale).chain(own);
        Err(match Problem::unknown("name", name, known) {
            Problem::Unknown { nearest: None, .. } => Problem::NoNumber(name.to_owned()),
            near => near,
        })
    }

    /// An expression that has a value before the workload runs.
    pub fn constant(&mut self) -> Result<i64, Failure> {
        let at = self.offset();
        let expr = self.expr()?;
        value_before_the_run(&expr).map_err(|problem| (problem, at))
    }

    /// `c[i]`, a channel, with a constant index.
    pub fn constant_channel(&mut self) -> Result<IndexedResource, Failure> {
        let at = self.offset();
        let IndexedResource { of, index } = self.channel()?;
        let index = value_before_the_run(&index).map_err(|problem| (problem, at))?;
        Ok(IndexedResource {
            of,
            index: Expr::Number(index),
        })
    }

    /// `A[i]`, a listening socket, with a constant index.
    pub fn constant_listener(&mut self) -> Result<IndexedResource, Failure> {
        let at = self.offset();
        let IndexedResource { of, index } =
            self.place("listening socket", |names| &names.listeners)?;
        let index = value_before_the_run(&index).map_err(|problem| (problem, at))?;
        Ok(IndexedResource {
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
        Expr::Got => Some("got"),
        Expr::Key(_) => Some("randkey"),
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

    fn got(&self) -> i64 {
        unreachable!("a constant receives nothing")
    }

    fn key(&mut self, _: u32) -> i64 {
        unreachable!("a constant does not draw")
    }

    fn random(&mut self, _: u64) -> u64 {
        unreachable!("a constant does not draw")
    }
}
