//! Programs of classic BPF, as seccomp takes them, whose jumps are computed and checked.
//!
//! The crate `seccompiler` builds such programs too, but knows no action that asks a supervisor;
//! `libseccomp` does, and needs a C library.

use model::Advice;
use libc::{c_long, sock_filter};

/// Why there is no such program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The length of a conditional jump is a byte.
    #[error("a jump over {0} instructions, which can pass over 255 at most")]
    TooFar(usize),
    /// More than `BPF_MAXINSNS`, of Linux 6.18, `include/uapi/linux/bpf_common.h`.
    #[error("{0} instructions, of which a kernel takes 4096 at most")]
    TooLong(usize),
    /// No call has such a number.
    #[error("{0} is no number of a system call")]
    Number(c_long),
}

impl Advice for FilterError {
    fn advice(&self) -> Option<String> {
        None
    }
}

/// How the accumulator is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterTest {
    /// It is this value.
    Equal(u32),
    /// It has one of these bits.
    HasAny(u32),
}

const INSTRUCTIONS_MAX: usize = 4096;

/// A program being built.
#[derive(Debug, Default)]
pub struct FilterCode(Vec<sock_filter>);

impl FilterCode {
    fn step(&mut self, code: u32, k: u32) {
        self.0.push(sock_filter {
            code: code as u16,
            jt: 0,
            jf: 0,
            k,
        });
    }

    /// Loads the word at that offset of `struct seccomp_data`.
    pub fn load(&mut self, offset: u32) {
        self.step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset);
    }

    /// Ends with that action.
    pub fn answer(&mut self, action: u32) {
        self.step(libc::BPF_RET | libc::BPF_K, action);
    }

    /// Runs `body` only if the test holds.
    ///
    /// # Errors
    /// What `body` says, and [`FilterError::TooFar`] if it is too long.
    pub fn when(
        &mut self,
        test: FilterTest,
        body: impl FnOnce(&mut Self) -> Result<(), FilterError>,
    ) -> Result<(), FilterError> {
        let (comparison, k) = match test {
            FilterTest::Equal(value) => (libc::BPF_JEQ, value),
            FilterTest::HasAny(bits) => (libc::BPF_JSET, bits),
        };
        let jump = self.0.len();
        self.step(libc::BPF_JMP | comparison | libc::BPF_K, k);
        body(self)?;
        let skipped = self.0.len() - jump - 1;
        self.0[jump].jf = u8::try_from(skipped).map_err(|_| FilterError::TooFar(skipped))?;
        Ok(())
    }

    /// Ends with that action if the test holds.
    ///
    /// # Errors
    /// None: the jump is over one instruction.
    pub fn answer_when(&mut self, test: FilterTest, action: u32) -> Result<(), FilterError> {
        self.when(test, |code| {
            code.answer(action);
            Ok(())
        })
    }

    /// Ends with that action unless the accumulator has that value.
    pub fn answer_unless(&mut self, value: u32, action: u32) {
        self.step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, value);
        let jump = self.0.len() - 1;
        self.0[jump].jt = 1;
        self.answer(action);
    }

    /// The program.
    ///
    /// # Errors
    /// [`FilterError::TooLong`].
    pub fn finish(self) -> Result<Vec<sock_filter>, FilterError> {
        match self.0.len() {
            0..=INSTRUCTIONS_MAX => Ok(self.0),
            len => Err(FilterError::TooLong(len)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_body(len: usize) -> Result<Vec<sock_filter>, FilterError> {
        let mut code = FilterCode::default();
        code.when(FilterTest::Equal(1), |code| {
            (0..len).for_each(|_| code.load(0));
            Ok(())
        })?;
        code.finish()
    }

    #[test]
    fn a_jump_that_is_too_long_is_an_error_and_never_a_shorter_one() {
        assert_eq!(with_body(255).unwrap()[0].jf, 255);
        assert_eq!(with_body(256).unwrap_err(), FilterError::TooFar(256));
    }

    #[test]
    fn a_program_that_no_kernel_takes_is_an_error() {
        let of = |len: usize| {
            let mut code = FilterCode::default();
            (0..len).for_each(|_| code.answer(0));
            code.finish()
        };
        assert!(of(4096).is_ok());
        assert_eq!(of(4097).unwrap_err(), FilterError::TooLong(4097));
    }
}
