//! Failures as Python's exceptions, with the words of the command line.

use ask::ErrorKind;
use model::Advised;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;

pyo3::create_exception!(
    runslice,
    Error,
    PyException,
    "A bad file, or the computer refused something. The command line ends with status 1."
);
pyo3::create_exception!(
    runslice,
    UsageError,
    Error,
    "Something is asked for that does not exist. The command line ends with status 2."
);
pyo3::create_exception!(
    runslice,
    UnsupportedError,
    Error,
    "This computer lacks something. The command line ends with status 4."
);

/// The exception of an error.
pub fn raise(error: anyhow::Error) -> PyErr {
    let words = runslice::in_words(&error);
    match ErrorKind::of(&error) {
        ErrorKind::Usage => UsageError::new_err(words),
        ErrorKind::Unsupported => UnsupportedError::new_err(words),
        ErrorKind::Cancelled => PyKeyboardInterrupt::new_err(words),
        ErrorKind::Input => Error::new_err(words),
    }
}

/// The exception of a question that asks for something that does not exist.
pub fn usage(what: impl Into<Advised>) -> PyErr {
    raise(ask::error::UsageError::new(what).into())
}
