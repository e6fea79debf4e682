//! The published numbers of an experiment: `expected.csv`.
//!
//! ```text
//! place,runs,at,arm,metric,value,note
//! Table I,quiet,hogs=8,mlfq,mean,3.4,
//! ```

use crate::experiments::error::{Error, Result};
use crate::experiments::experiment::{Experiment, Point};

/// One published number, or the lack of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// Table, figure or page of the document.
    pub place: String,
    /// The runs that it is held against; empty for none, when it is only printed.
    pub runs: String,
    /// The point of these runs.
    pub at: Vec<(String, i64)>,
    /// The arm; empty for all.
    pub arm: String,
    /// The metric, in whose unit the value is.
    pub metric: String,
    /// Published value.
    pub value: Published,
    /// What else there is to say.
    pub note: String,
    /// Where it stands: `experiments/x/expected.csv:7`.
    pub line: String,
}

/// What a document says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Published {
    /// A number.
    Number(f64),
    /// A curve or a bar in a picture.
    Picture,
    /// A gap in the text that is available.
    Missing,
}

impl Published {
    /// The number, if it is one.
    pub const fn number(self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Picture | Self::Missing => None,
        }
    }
}

/// The first line of the file.
pub const HEADER: &str = "place,runs,at,arm,metric,value,note";

/// Reads the file. Empty lines and those that begin with `#` say nothing.
///
/// # Errors
/// What is wrong, after file and line.
pub fn read(name: &str, text: &str) -> Result<Vec<Expected>> {
    let lines = text.lines().enumerate();
    let mut lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    match lines.next() {
        Some((_, HEADER)) => {}
        Some((at, _)) => {
            return Err(wrong(
                format!("{name}:{}", at + 1),
                format!("expected `{HEADER}`"),
            ));
        }
        None => return Err(wrong(name, format!("expected `{HEADER}`"))),
    }
    let row = |(at, line)| row(line, format!("{name}:{}", at + 1));
    lines.map(row).collect()
}

fn wrong(line: impl Into<String>, what: impl Into<String>) -> Error {
    Error::Row {
        line: line.into(),
        what: what.into(),
    }
}

fn row(line: &str, place: String) -> Result<Expected> {
    let fields = fields(line).ok_or_else(|| wrong(&place, "a quotation mark is missing"))?;
    let count = fields.len();
    let Ok([source, runs, at, arm, metric, value, note]) = <[String; 7]>::try_from(fields) else {
        return Err(wrong(
            &place,
            format!("{count} fields instead of 7: {HEADER}"),
        ));
    };
    let value = match value.as_str() {
        "picture" => Published::Picture,
        "missing" => Published::Missing,
        number => match number.parse() {
            Ok(number) => Published::Number(number),
            Err(_) => {
                let what = format!("`{number}` is neither a number nor `picture` or `missing`");
                return Err(wrong(&place, what));
            }
        },
    };
    let setting = |text: &str| {
        let parts = text.split_once('=');
        let number = parts.and_then(|(name, value)| Some((name.to_owned(), value.parse().ok()?)));
        number.ok_or_else(|| wrong(&place, format!("`{text}` is no setting such as `hogs=8`")))
    };
    Ok(Expected {
        place: source,
        runs,
        at: at
            .split_whitespace()
            .map(setting)
            .collect::<Result<_, _>>()?,
        arm,
        metric,
        value,
        note,
        line: place,
    })
}

/// The fields of a line; those with a comma in them stand in quotation marks, which are doubled
/// inside. `None` if one does not end.
fn fields(line: &str) -> Option<Vec<String>> {
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let mut field = String::new();
        rest = match rest.strip_prefix('"') {
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                field.push_str(rest[..end].trim());
                &rest[end..]
            }
            Some(mut quoted) => loop {
                let end = quoted.find('"')?;
                field.push_str(&quoted[..end]);
                quoted = &quoted[end + 1..];
                match quoted.strip_prefix('"') {
                    Some(more) => {
                        field.push('"');
                        quoted = more;
                    }
                    None => break quoted,
                }
            },
        };
        fields.push(field);
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => return rest.is_empty().then_some(fields),
        }
    }
}

/// Published numbers must belong to something.
///
/// # Errors
/// The first that does not, with its line.
pub fn check(experiment: &Experiment) -> Result<()> {
    for row in experiment
        .expected
        .iter()
        .filter(|row| !row.runs.is_empty())
    {
        let place = &row.line;
        let set = experiment.set(&row.runs);
        let set = set.ok_or_else(|| wrong(place, format!("there are no runs `{}`", row.runs)))?;
        if experiment.metric(&row.metric).is_none() {
            return Err(wrong(place, format!("there is no metric `{}`", row.metric)));
        }
        if !row.arm.is_empty() && experiment.arm(&row.arm).is_none() {
            return Err(wrong(place, format!("there is no arm `{}`", row.arm)));
        }
        let points = &experiment.sets[set].points;
        let is = |point: &Point| row.at.iter().all(|(name, it)| point.get(name) == Some(*it));
        if !points.iter().any(is) {
            let what = format!("no run of `{}` is at that point", row.runs);
            return Err(wrong(place, what));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(rows: &str) -> Result<Vec<Expected>> {
        read("e.csv", &format!("# from a paper\n{HEADER}\n\n{rows}"))
    }

    #[test]
    fn a_row_says_what_was_published_of_which_runs() {
        let rows = told("\"Table I, p. 7\",quiet,hogs=8 jobs=2,mlfq,mean,3.4,\"a \"\"b\"\"\"\n");
        let want = Expected {
            place: "Table I, p. 7".to_owned(),
            runs: "quiet".to_owned(),
            at: vec![("hogs".to_owned(), 8), ("jobs".to_owned(), 2)],
            arm: "mlfq".to_owned(),
            metric: "mean".to_owned(),
            value: Published::Number(3.4),
            note: "a \"b\"".to_owned(),
            line: "e.csv:4".to_owned(),
        };
        assert_eq!(rows.unwrap(), [want]);
        let rows = told("Figure 2,,,,,picture,\nTable I,q,,a,m,missing,\n").unwrap();
        let values: Vec<_> = rows.iter().map(|row| row.value).collect();
        assert_eq!(values, [Published::Picture, Published::Missing]);
        assert_eq!(values[0].number(), None);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (rows, want) in [
            ("a,b,c\n", "e.csv:4: 3 fields instead of 7"),
            ("a,b,,c,d,x,\n", "e.csv:4: `x` is neither a number nor"),
            ("\na,b,hogs,c,d,1,\n", "e.csv:5: `hogs` is no setting"),
            ("\"a,b,,c,d,1,\n", "e.csv:4: a quotation mark is missing"),
        ] {
            let error = told(rows).unwrap_err().to_string();
            assert!(error.starts_with(want), "{error}");
        }
        assert!(
            read("e.csv", "x")
                .unwrap_err()
                .to_string()
                .starts_with("e.csv:1: expected")
        );
        assert!(read("e.csv", "").is_err());
    }
}
