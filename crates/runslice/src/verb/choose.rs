//! `runslice choose`: which scheduler is best for a load.

mod again;

use std::io::Write as _;

use crate::about::About;
use crate::choose::{Choose, Chosen};
use crate::computer::COMPUTER;
use crate::exit::Status;
use crate::output;
use crate::report::Format;

/// Simulates the candidates, and says which one is best.
///
/// # Errors
/// When a candidate, the load or a goal is wrong, or the baseline fails.
pub fn run(request: &Choose) -> anyhow::Result<Status> {
    if let Some(file) = &request.again {
        return again::run(request, file);
    }
    let form = request.check()?;
    let chosen = Chosen::ask(&request.asked()?, &COMPUTER)?;
    let origin = About::origin();
    let mut to = output::open_form(form.export(), request.output.as_deref())?;
    chosen.write(form, &origin, &mut to)?;
    to.flush()?;
    if let Some(page) = chosen.page(&origin).filter(|_| form == Format::Html) {
        output::announce(&page.verdict, request.output.as_deref())?;
    }
    Ok(chosen.status())
}
