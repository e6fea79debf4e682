//! Why a task waited or a policy was ejected.

use ask::explain::Explanation;
use pyo3::prelude::*;
use show::Origin;
use show::explanation::{json, text};

/// An explanation.
#[pyclass(frozen, module = "runslice._runslice")]
pub struct Explained {
    pub words: Vec<String>,
    /// The command line has no such question: it does not explain a rerun.
    pub is_only_here: bool,
    pub explanation: Explanation,
}

#[pymethods]
impl Explained {
    fn command(&self, is_json: bool) -> Vec<String> {
        let json = is_json.then(|| "--json".to_owned());
        self.words.iter().cloned().chain(json).collect()
    }

    fn write(&self, is_json: bool) -> String {
        let origin = Origin::new(self.command(is_json));
        let explanation = Explanation {
            again: (!self.is_only_here).then(|| origin.again()),
            ..self.explanation.clone()
        };
        if is_json {
            format!("{}\n", json::of(&explanation))
        } else {
            text::of(&explanation, runslice::width())
        }
    }

    #[getter]
    const fn is_found(&self) -> bool {
        self.explanation.finding.is_some()
    }
}
