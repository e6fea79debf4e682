//! Failures as Python's exceptions, with the words of the command line.

use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyUserWarning};
use pyo3::prelude::*;
use runslice::library::{Answer, Failure, Why};

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

/// The exception of a failure.
pub fn raise(failure: Failure) -> PyErr {
    let Failure { why, words } = failure;
    match why {
        Why::Usage => UsageError::new_err(words),
        Why::Unsupported => UnsupportedError::new_err(words),
        Why::Cancelled => PyKeyboardInterrupt::new_err(words),
        Why::Failed => Error::new_err(words),
    }
}

/// The value of an answer; what the command line says on standard error becomes warnings.
pub fn value<T>(py: Python<'_>, answer: Result<Answer<T>, Failure>) -> PyResult<T> {
    let Answer { value, said } = answer.map_err(raise)?;
    let category = py.get_type::<PyUserWarning>();
    for line in said {
        // A message of ours has no zero byte but by accident.
        let line = std::ffi::CString::new(line.replace('\0', "")).unwrap_or_default();
        PyErr::warn(py, &category, &line, 3)?;
    }
    Ok(value)
}
