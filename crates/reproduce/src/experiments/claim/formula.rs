//! Numbers made of a run's numbers: `counter.web.served.total / machine.elapsed_ns * 1e9`.
//!
//! ```text
//! sum     = product { ( "+" | "-" ) product } .
//! product = factor { ( "*" | "/" ) factor } .
//! factor  = number | name | "-" factor | "(" sum ")" | function "(" sum { "," sum } ")" .
//! ```
//!
//! Functions: `min`, `max`, and `or(a, b)`, which is b where a has no value.

use std::fmt;

use model::Advice;

/// A formula over named numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    root: Node,
}

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Number(f64),
    Name(String),
    Negative(Box<Node>),
    Two(Operator, Box<Node>, Box<Node>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Min,
    Max,
    Or,
}

/// Why a text is no formula.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at character {}", at + 1)]
pub struct FormulaError {
    /// Byte of the text.
    pub at: usize,
    /// What is wrong.
    pub what: String,
}

impl Advice for FormulaError {
    fn advice(&self) -> Option<String> {
        None
    }
}

/// Why a formula has no value for a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoValue {
    /// The run has no such number.
    Missing(String),
    /// Something is divided by zero.
    Division,
}

impl fmt::Display for NoValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(name) => write!(f, "the run has no number `{name}`"),
            Self::Division => f.write_str("something is divided by zero"),
        }
    }
}

/// Deeper formulas are refused: nobody writes them, and the parser calls itself.
const DEPTH_MAX: usize = 64;

impl Formula {
    /// Reads a formula.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn parse(text: &str) -> Result<Self, FormulaError> {
        let mut reader = FormulaReader {
            text,
            at: 0,
            depth: 0,
        };
        let root = reader.sum()?;
        reader.blanks();
        if reader.at == text.len() {
            Ok(Self { root })
        } else {
            Err(reader.error("expected an operator or the end"))
        }
    }

    /// Its value for a run whose numbers `find` knows by name.
    ///
    /// # Errors
    /// When the run lacks a number, or there is a division by zero.
    pub fn value(&self, find: &impl Fn(&str) -> Option<f64>) -> Result<f64, NoValue> {
        self.root.value(find)
    }
}

impl Node {
    fn value(&self, find: &impl Fn(&str) -> Option<f64>) -> Result<f64, NoValue> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Name(name) => find(name).ok_or_else(|| NoValue::Missing(name.clone())),
            Self::Negative(of) => Ok(-of.value(find)?),
            Self::Two(Operator::Or, first, second) => {
                first.value(find).or_else(|_| second.value(find))
            }
            Self::Two(operator, first, second) => {
                let (a, b) = (first.value(find)?, second.value(find)?);
                match operator {
                    Operator::Add => Ok(a + b),
                    Operator::Subtract => Ok(a - b),
                    Operator::Multiply => Ok(a * b),
                    Operator::Divide if b == 0.0 => Err(NoValue::Division),
                    Operator::Divide => Ok(a / b),
                    Operator::Min => Ok(a.min(b)),
                    Operator::Max => Ok(a.max(b)),
                    Operator::Or => Ok(a),
                }
            }
        }
    }
}

struct FormulaReader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> FormulaReader<'a> {
    fn error(&self, what: &str) -> FormulaError {
        FormulaError {
            at: self.at,
            what: what.to_owned(),
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Goes past `letter` if it comes next.
    fn eat(&mut self, letter: char) -> bool {
        self.blanks();
        let is_next = self.rest().starts_with(letter);
        self.at += if is_next { letter.len_utf8() } else { 0 };
        is_next
    }

    fn sum(&mut self) -> Result<Node, FormulaError> {
        self.chain(
            Self::product,
            [('+', Operator::Add), ('-', Operator::Subtract)],
        )
    }

    fn product(&mut self) -> Result<Node, FormulaError> {
        self.chain(
            Self::factor,
            [('*', Operator::Multiply), ('/', Operator::Divide)],
        )
    }

    fn chain(
        &mut self,
        part: fn(&mut Self) -> Result<Node, FormulaError>,
        signs: [(char, Operator); 2],
    ) -> Result<Node, FormulaError> {
        let mut whole = part(self)?;
        while let Some((_, operator)) = signs.iter().find(|(sign, _)| self.eat(*sign)) {
            let next = part(self)?;
            whole = Node::Two(*operator, Box::new(whole), Box::new(next));
        }
        Ok(whole)
    }

    fn factor(&mut self) -> Result<Node, FormulaError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.error("the formula is too deep"));
        }
        let node = self.one();
        self.depth -= 1;
        node
    }

    fn one(&mut self) -> Result<Node, FormulaError> {
        if self.eat('-') {
            return Ok(Node::Negative(Box::new(self.factor()?)));
        }
        if self.eat('(') {
            let inner = self.sum()?;
            return if self.eat(')') {
                Ok(inner)
            } else {
                Err(self.error("expected `)`"))
            };
        }
        let start = self.at;
        let rest = self.rest();
        match rest.chars().next() {
            Some(c) if c.is_ascii_digit() => self.number(),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
                let len = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
                self.at += len;
                let name = &self.text[start..self.at];
                if self.eat('(') {
                    self.call(name, start)
                } else {
                    Ok(Node::Name(name.to_owned()))
                }
            }
            _ => Err(self.error("expected a number, a name or `(`")),
        }
    }

    fn number(&mut self) -> Result<Node, FormulaError> {
        let rest = self.rest();
        let mut len = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        if let Some(exponent) = rest[len..].strip_prefix(['e', 'E']) {
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            let count = digits
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(digits.len());
            if count > 0 {
                len += 1 + (exponent.len() - digits.len()) + count;
            }
        }
        let number = rest[..len].parse();
        let number = number.map_err(|_| self.error("this is no number"))?;
        self.at += len;
        Ok(Node::Number(number))
    }

    fn call(&mut self, name: &str, start: usize) -> Result<Node, FormulaError> {
        let operator = match name {
            "min" => Operator::Min,
            "max" => Operator::Max,
            "or" => Operator::Or,
            _ => {
                return Err(FormulaError {
                    at: start,
                    what: format!("no function is called `{name}`: there are min, max, or"),
                });
            }
        };
        let mut whole = self.sum()?;
        let mut more = 0;
        while self.eat(',') {
            let next = self.sum()?;
            whole = Node::Two(operator, Box::new(whole), Box::new(next));
            more += 1;
        }
        match (self.eat(')'), more) {
            (false, _) => Err(self.error("expected `,` or `)`")),
            (true, 0) => Err(self.error("a function takes two values or more")),
            (true, _) => Ok(whole),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<f64, NoValue> {
        let find = |name: &str| match name {
            "a" => Some(6.0),
            "group.b_ns" => Some(3.0),
            "zero" => Some(0.0),
            _ => None,
        };
        Formula::parse(text).unwrap().value(&find)
    }

    #[test]
    fn products_bind_before_sums_and_equals_from_the_left() {
        assert_eq!(value("1 + 2 * a"), Ok(13.0));
        assert_eq!(value("(1+2)*a / group.b_ns"), Ok(6.0));
        assert_eq!(value("10 - 4 - 3"), Ok(3.0));
        assert_eq!(value("12 / 2 / 3"), Ok(2.0));
        // Only what stands inside of each other is deep.
        let long = vec!["(1)"; 2 * DEPTH_MAX].join(" + ");
        assert_eq!(value(&long), Ok(2.0 * DEPTH_MAX as f64));
        let deep = |depth: usize| format!("{}1{}", "(".repeat(depth - 1), ")".repeat(depth - 1));
        assert_eq!(value(&deep(DEPTH_MAX)), Ok(1.0));
        let error = Formula::parse(&deep(DEPTH_MAX + 1))
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("the formula is too deep"), "{error}");
        assert_eq!(value("-a + 1.5e3 - 2E-1"), Ok(1493.8));
        assert_eq!(value("max(a, 2, 9) - min(a, group.b_ns)"), Ok(6.0));
    }

    #[test]
    fn what_a_run_lacks_has_no_value_unless_the_formula_says_one() {
        assert_eq!(value("a + c"), Err(NoValue::Missing("c".to_owned())));
        assert_eq!(value("a / zero"), Err(NoValue::Division));
        assert_eq!(value("a + or(c, 1)"), Ok(7.0));
        assert_eq!(value("or(a, 1)"), Ok(6.0));
    }

    #[test]
    fn what_is_no_formula_is_said_with_its_place() {
        for (text, want) in [
            ("", "expected a number, a name or `(` at character 1"),
            ("1 +", "expected a number, a name or `(` at character 4"),
            ("1 + %", "expected a number, a name or `(` at character 5"),
            ("(a", "expected `)` at character 3"),
            ("a b", "expected an operator or the end at character 3"),
            ("1.2.3", "this is no number at character 1"),
            (
                "sin(a, b)",
                "no function is called `sin`: there are min, max, or at character 1",
            ),
            (
                "max(a)",
                "a function takes two values or more at character 7",
            ),
            ("max(a; b)", "expected `,` or `)` at character 6"),
        ] {
            assert_eq!(
                Formula::parse(text).unwrap_err().to_string(),
                want,
                "{text}"
            );
        }
        let deep = "(".repeat(1000);
        assert!(Formula::parse(&deep).unwrap_err().what.contains("too deep"));
    }
}
