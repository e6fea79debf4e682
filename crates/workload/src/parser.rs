//! Reads words one after the other; expressions, distributions and operations build on it.

use super::names::{self, Instances, Names};
use super::token::{Token, tokens};
use super::{Expr, IndexedResource, Target};
use model::file::Problem;

mod cgroup;
mod device;
mod distribution;
mod expression;

pub(super) use distribution::check_weights;

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
    /// Timers with a name, and their slots.
    pub timers: Vec<(String, u32)>,
    /// How many variables there have been.
    pub variables: u32,
}

/// Words that no variable may be called.
pub(super) const KEYWORDS: [&str; 11] = [
    "self", "cpus", "len", "rand", "got", "randkey", "and", "or", "not", "inf", "else",
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
            timers: Vec::new(),
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

    /// `c[i]`, a channel.
    pub fn channel(&mut self) -> Result<IndexedResource, Failure> {
        self.place("channel", |names| &names.channels)
    }

    /// `name[i]`, an instance of something declared.
    pub fn place(
        &mut self,
        what: &'static str,
        declared: impl Fn(&Names) -> &Instances,
    ) -> Result<IndexedResource, Failure> {
        let (name, at) = self.name(&format!("the name of a {what}"))?;
        let instances = declared(self.names);
        let of = names::find(what, &name, instances.iter().map(|(name, _)| name.as_str()))
            .map_err(|problem| (problem, at))?;
        let count = instances[of as usize].1;
        if self.accept("[") {
            let index = self.deeper(Self::expr)?;
            self.expect("]")?;
            return Ok(IndexedResource { of, index });
        }
        match count {
            1 => Ok(IndexedResource {
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
