//! Policies that somebody has written, against properties.

use explain::why::{Finding, Right};
use model::{PolicySpec, SimTime};
use serde::{Deserialize, Serialize};

use super::LabLoad;
use super::run::Course;
use crate::error::{Error, in_full};
use crate::policy;
use crate::services::Services;
use crate::violation::{self, Property, Signature};

/// What an object must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantedValue {
    /// A property of its runs.
    Property(Property),
    /// Every task ends when it does under this policy.
    Like(String),
    /// Every task ends when it does where the tasks have other names.
    Names,
}

impl WantedValue {
    /// Reads it.
    ///
    /// # Errors
    /// When there is no such property or policy.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == "names" {
            return Ok(Self::Names);
        }
        match text.strip_prefix("like ").map(str::trim) {
            Some(policy) if policy::may_be(policy) => Ok(Self::Like(policy.to_owned())),
            Some(policy) => Err(format!(
                "no built-in policy is called `{policy}`; or give the path of an object"
            )),
            None => Property::parse(text)
                .map(Self::Property)
                .map_err(|error| format!("{error}, `names`, or `like POLICY`")),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Property(property) => property.text(),
            Self::Like(name) => format!("like {name}"),
            Self::Names => "names".to_owned(),
        }
    }
}

/// Holds policies against properties.
#[derive(Clone, Debug)]
pub struct Grade {
    /// The loads.
    pub loads: Vec<LabLoad>,
    /// What a policy must have besides that nobody starves and nothing errs.
    pub wanted: Vec<WantedValue>,
    /// The right by which shares are judged; `None`: the one that the policy declares.
    pub right: Option<Right>,
}

/// What somebody has handed in.
#[derive(Clone, Debug)]
pub struct HandedIn {
    /// Its name.
    pub name: String,
    /// The policy, or what is wrong with it.
    pub policy: Result<PolicySpec, String>,
}

/// What grading came to.
#[derive(Clone, Debug, Serialize)]
pub struct Grades {
    /// Policies.
    pub objects: usize,
    /// Those that have all properties.
    pub passed: usize,
    /// Each of them.
    pub results: Vec<GradedPolicy>,
}

/// A policy that was graded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GradedPolicy {
    /// Its name.
    pub object: String,
    /// Whether it has all properties.
    pub passed: bool,
    /// Each property.
    pub properties: Vec<GradedProperty>,
}

/// A property that a policy has or lacks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GradedProperty {
    /// Whether it has it.
    pub holds: bool,
    /// The property.
    pub property: String,
    /// Why it does not hold.
    pub why: Option<String>,
}

impl Grades {
    /// Of these policies.
    #[must_use]
    pub fn of(results: Vec<GradedPolicy>) -> Self {
        Self {
            objects: results.len(),
            passed: results.iter().filter(|it| it.passed).count(),
            results,
        }
    }
}

impl Grade {
    /// Grades one policy. What is wrong with it is a result, not an error.
    ///
    /// # Errors
    /// When the work is given up.
    pub fn ask(&self, services: &Services<'_>, given: HandedIn) -> Result<GradedPolicy, Error> {
        let mut properties = vec![self.held(services, &given, None)];
        let wanted = self.wanted.iter();
        properties.extend(wanted.map(|it| self.held(services, &given, Some(it))));
        // A run that was given up says nothing of the policy.
        services.check().map_err(anyhow::Error::from)?;
        Ok(GradedPolicy {
            object: given.name,
            passed: properties.iter().all(|it| it.holds),
            properties,
        })
    }

    fn held(
        &self,
        services: &Services<'_>,
        given: &HandedIn,
        wanted: Option<&WantedValue>,
    ) -> GradedProperty {
        let verdict = match &given.policy {
            Ok(policy) => self.judge(services, policy, wanted),
            Err(why) => Err(why.clone()),
        };
        GradedProperty {
            holds: verdict.is_ok(),
            property: wanted.map_or_else(|| "no fault".to_owned(), WantedValue::text),
            why: verdict.err(),
        }
    }

    /// Whether the policy has a property under every load, or why not.
    fn judge(
        &self,
        services: &Services<'_>,
        policy: &PolicySpec,
        wanted: Option<&WantedValue>,
    ) -> Result<(), String> {
        let words = |error: anyhow::Error| in_full(&error);
        for load in &self.loads {
            let own = load.spec(policy.clone());
            let mut properties = match wanted {
                Some(WantedValue::Like(name)) => {
                    let own = Course::of(services, &own).map_err(words)?;
                    let wanted = policy::find(services, name).map_err(words)?;
                    let wanted = Course::of(services, &load.spec(wanted)).map_err(words)?;
                    like((name, load.seed), &own, &wanted)?;
                    continue;
                }
                Some(WantedValue::Names) => {
                    let own = Course::of(services, &own).map_err(words)?;
                    let other = load.renamed(false).spec(policy.clone());
                    let other = Course::of(services, &other).map_err(words)?;
                    like(("other names of the tasks", load.seed), &own, &other)?;
                    continue;
                }
                Some(WantedValue::Property(property)) => vec![*property],
                None => Vec::new(),
            };
            properties.extend(self.right.map(Property::Right));
            let found = violation::accused(services, &own, &properties).map_err(words)?;
            if let Some(finding) = found {
                return Err(why(&finding, load));
            }
        }
        Ok(())
    }
}

fn why(finding: &Finding, load: &LabLoad) -> String {
    let victim = finding.victim.as_ref();
    let victim = victim.map(|it| format!(", {} waits for {}", it.name, it.waited));
    format!(
        "{}{} (seed {})",
        Signature::of(finding).text(),
        victim.unwrap_or_default(),
        load.seed
    )
}

/// Whether every task ends when it does in `wanted`, which is under `what`, or why not.
fn like((what, seed): (&str, u64), own: &Course, wanted: &Course) -> Result<(), String> {
    let pairs = own.tasks.iter().zip(&wanted.tasks);
    let other = pairs.into_iter().find(|(own, it)| own.ended != it.ended);
    let at = |time: Option<SimTime>| time.map_or("never".to_owned(), |it| format!("at {it} s"));
    match other {
        None if own.tasks.len() == wanted.tasks.len() => Ok(()),
        None => Err(format!("other tasks than under {what} (seed {seed})")),
        Some((own, it)) => Err(format!(
            "{} ends {}, under {what} {} (seed {seed})",
            own.name,
            at(own.ended),
            at(it.ended),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wanted_property_is_one_of_a_run_or_another_policy() {
        assert_eq!(
            WantedValue::parse("like sjf"),
            Ok(WantedValue::Like("sjf".to_owned()))
        );
        assert_eq!(
            WantedValue::parse("weights"),
            Ok(WantedValue::Property(Property::Weights))
        );
        assert!(
            WantedValue::parse("like nothing")
                .unwrap_err()
                .contains("nothing")
        );
        assert!(
            WantedValue::parse("quick")
                .unwrap_err()
                .contains("like POLICY")
        );
    }
}
