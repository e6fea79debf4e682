//! Times of this computer, as options give them.

use std::time::Duration;

use model::{Advised, span};

/// Reads a time of this computer: `5m`, or one as in simulated runs.
///
/// # Errors
/// When it is none, or no time at all.
pub fn parse(text: &str) -> Result<Duration, Advised> {
    let time = match text.strip_suffix('m').map(str::parse::<u32>) {
        Some(Ok(minutes)) => Duration::from_secs(60 * u64::from(minutes)),
        _ => Duration::from_nanos(span::parse(text)?.get()),
    };
    if time.is_zero() {
        return Err(Advised::new(
            "in no time nothing begins",
            "give one such as 5m",
        ));
    }
    Ok(time)
}
