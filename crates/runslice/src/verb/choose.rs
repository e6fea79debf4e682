//! `runslice choose`: which scheduler is best for a load.

mod json;
mod rank;
mod request;
mod runs;
mod words;

use std::io::Write as _;

use anyhow::bail;
use stats::compare::Settings;

use crate::comparison::{self, Compared, Form};
use crate::exit::Status;
use crate::output;

pub use request::Choose;

use rank::Ranking;
use runs::Field;

/// Simulates the candidates, and says which one is best.
///
/// # Errors
/// When a candidate, the load or a goal is wrong, or the baseline fails.
pub fn run(request: &Choose) -> anyhow::Result<Status> {
    let form = request.check()?;
    let settings = Settings::default();
    let field = Field::run(request, request.candidates()?, &settings)?;
    if let Some(failure) = &field.failures[0] {
        bail!(
            "the baseline {} fails under this load ({failure}); choose another with --baseline",
            field.name(0)
        );
    }
    let margin = request.not_modelled;
    let ranking = Ranking::of(&field, margin, &settings)?;
    let mut to = output::open_form(form.export(), request.output.as_deref())?;
    match (form, form.export(), &ranking.family) {
        (Form::Html, _, Some(family)) => {
            let mut page = comparison::page(&Compared {
                family,
                rows: &ranking.rows,
                settings: &settings,
            });
            page.title = format!("Which scheduler is best for {}?", field.load);
            page.verdict = words::answer(&field, &ranking);
            page.write(&mut to)?;
            to.flush()?;
            output::announce(&page.verdict, request.output.as_deref())?;
        }
        (Form::Json, ..) => json::write(&field, &ranking, &mut to)?,
        (_, Some(export), _) => comparison::table_of(&ranking.rows).write(export, &mut to)?,
        _ => words::write(&field, &ranking, &mut to)?,
    }
    to.flush()?;
    Ok(match ranking.is_decided() {
        true => Status::Done,
        false => Status::Inconclusive,
    })
}
