//! Integer expressions: counts, indices and conditions.

use model::file::EvalError;

/// Values of names and functions in expressions while a workload runs.
pub trait Scope {
    /// The value of variable `slot`.
    fn variable(&self, slot: u32) -> i64;
    /// The acting task's index within its group.
    fn me(&self) -> i64;
    /// Number of CPUs of the machine.
    fn cpus(&self) -> i64;
    /// Messages that wait in instance `index` of channel declaration `of`; `None` if there is no
    /// such instance.
    fn queued(&self, of: u32, index: i64) -> Option<i64>;
    /// What came with the message, connection or request that the task received last.
    fn got(&self) -> i64;
    /// A key of keyed lock declaration `of`, as its keys are distributed.
    fn key(&mut self, of: u32) -> i64;
    /// A number in `0..bound`, every one equally likely.
    fn random(&mut self, bound: u64) -> u64;
}

/// Operators of two operands, from the weakest binding to the strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is named for its sign")]
pub enum Binary {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Add,
    Sub,
    Mul,
    Div,
    Rem,
}

/// An expression over 64-bit signed integers. A condition holds when it is not zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// A number.
    Number(i64),
    /// A variable.
    Variable(u32),
    /// `self`: the task's index within its group.
    Me,
    /// `cpus`: CPUs of the machine.
    Cpus,
    /// `len(c[i])`: messages that wait in a channel.
    Queued(u32, Box<Expr>),
    /// `got`: what came with the last message.
    Got,
    /// `randkey(L)`: a drawn key of a keyed lock.
    Key(u32),
    /// `rand(n)`: a number in `0..n`.
    Random(Box<Expr>),
    /// `-x`.
    Negate(Box<Expr>),
    /// `not x`.
    Not(Box<Expr>),
    /// `x op y`.
    Binary(Binary, Box<Expr>, Box<Expr>),
}

impl Expr {
    /// The expression's value.
    ///
    /// # Errors
    /// If it has none: see [`EvalError`].
    pub fn eval(&self, scope: &mut impl Scope) -> Result<i64, EvalError> {
        match self {
            Self::Number(value) => Ok(*value),
            Self::Variable(slot) => Ok(scope.variable(*slot)),
            Self::Me => Ok(scope.me()),
            Self::Cpus => Ok(scope.cpus()),
            Self::Queued(of, index) => {
                let index = index.eval(scope)?;
                scope.queued(*of, index).ok_or(EvalError::NoInstance(index))
            }
            Self::Got => Ok(scope.got()),
            Self::Key(of) => Ok(scope.key(*of)),
            Self::Random(bound) => {
                let bound = bound.eval(scope)?;
                let range = u64::try_from(bound).ok().filter(|&bound| bound > 0);
                let draw = scope.random(range.ok_or(EvalError::EmptyRange(bound))?);
                i64::try_from(draw).map_err(|_| EvalError::Overflow)
            }
            Self::Negate(x) => x.eval(scope)?.checked_neg().ok_or(EvalError::Overflow),
            Self::Not(x) => Ok(i64::from(x.eval(scope)? == 0)),
            Self::Binary(op, x, y) => op.apply(x, y, scope),
        }
    }
}

impl Expr {
    /// Whether `test` holds for the expression or a part of it.
    pub fn mentions(&self, test: &dyn Fn(&Self) -> bool) -> bool {
        let inside = || match self {
            Self::Queued(_, x) | Self::Random(x) | Self::Negate(x) | Self::Not(x) => {
                x.mentions(test)
            }
            Self::Binary(_, x, y) => x.mentions(test) || y.mentions(test),
            Self::Number(_)
            | Self::Variable(_)
            | Self::Me
            | Self::Cpus
            | Self::Got
            | Self::Key(_) => false,
        };
        test(self) || inside()
    }
}

impl Binary {
    fn apply(self, x: &Expr, y: &Expr, scope: &mut impl Scope) -> Result<i64, EvalError> {
        let x = x.eval(scope)?;
        match self {
            // The right side of these two is looked at only when it matters.
            Self::Or if x != 0 => return Ok(1),
            Self::And if x == 0 => return Ok(0),
            _ => {}
        }
        let y = y.eval(scope)?;
        let zero = matches!(self, Self::Div | Self::Rem) && y == 0;
        let value = match self {
            _ if zero => return Err(EvalError::DivisionByZero),
            Self::Or | Self::And => Some(i64::from(y != 0)),
            Self::Equal => Some(i64::from(x == y)),
            Self::NotEqual => Some(i64::from(x != y)),
            Self::Less => Some(i64::from(x < y)),
            Self::LessEqual => Some(i64::from(x <= y)),
            Self::Greater => Some(i64::from(x > y)),
            Self::GreaterEqual => Some(i64::from(x >= y)),
            Self::Add => x.checked_add(y),
            Self::Sub => x.checked_sub(y),
            Self::Mul => x.checked_mul(y),
            Self::Div => x.checked_div(y),
            Self::Rem => x.checked_rem(y),
        };
        value.ok_or(EvalError::Overflow)
    }
}
