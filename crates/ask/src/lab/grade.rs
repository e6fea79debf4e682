//! Policies that somebody has written, against properties.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use anyhow::Context as _;
use explain::why::{Finding, Right};
use model::{PolicySpec, SimTime};
use serde::{Deserialize, Serialize};

use super::LabLoad;
use super::feedback::{LabParting, parting};
use super::run::Course;
use crate::error::{Error, in_full};
use crate::key::{Front, Key};
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
#[derive(Debug)]
pub struct Grade {
    loads: Vec<LabLoad>,
    wanted: Vec<WantedValue>,
    right: Option<Right>,
    /// The policies that others are to be like, by their words.
    models: BTreeMap<String, ModelPolicy>,
}

/// A policy that others are to be like.
#[derive(Debug)]
struct ModelPolicy {
    spec: PolicySpec,
    /// Its runs, one a load.
    courses: Vec<Course>,
}

/// A policy that is graded, and its runs so far, one a load.
struct Graded<'a> {
    spec: &'a PolicySpec,
    courses: Vec<OnceCell<Course>>,
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
    /// Finds the policies that others are to be like, and makes their runs. `right` is that by
    /// which shares are judged; `None`: the one that each policy declares.
    ///
    /// # Errors
    /// When one of them is not there or cannot run.
    pub fn new(
        services: &Services<'_>,
        loads: Vec<LabLoad>,
        wanted: Vec<WantedValue>,
        right: Option<Right>,
    ) -> Result<Self, Error> {
        let mut models = BTreeMap::new();
        for value in &wanted {
            if let WantedValue::Like(name) = value {
                models.insert(name.clone(), ModelPolicy::find(services, name, &loads)?);
            }
        }
        Ok(Self {
            loads,
            wanted,
            right,
            models,
        })
    }

    /// The key of what grading a file of these bytes comes to, by a program of this version.
    /// `more` is what else is kept with it depends on.
    #[must_use]
    pub fn key(&self, version: &str, file: &[u8], more: &str) -> Key {
        let mut bytes = Vec::new();
        let mut add = |part: &[u8]| {
            // Where one ends and the next begins makes a difference, too.
            bytes.extend_from_slice(&part.len().to_le_bytes());
            bytes.extend_from_slice(part);
        };
        add(file);
        add(more.as_bytes());
        add(format!("{:?} {:?}", self.wanted, self.right).as_bytes());
        for load in &self.loads {
            add(format!("{load:?}").as_bytes());
            // Words that name an object say nothing of its bytes.
            for model in self.models.values() {
                let spec = load.spec(model.spec.clone());
                let front = Front::of(version, (&spec, &[]), "");
                add(front.key(load.seed).to_string().as_bytes());
            }
        }
        Key::of(version, bytes)
    }

    /// Grades one policy. What is wrong with it is a result, not an error.
    ///
    /// # Errors
    /// When the work is given up.
    pub fn ask(&self, services: &Services<'_>, given: &HandedIn) -> Result<GradedPolicy, Error> {
        let own = given.policy.as_ref().map(|spec| Graded {
            spec,
            courses: self.loads.iter().map(|_| OnceCell::new()).collect(),
        });
        let held = |wanted: Option<&WantedValue>| {
            let verdict = match &own {
                Ok(own) => self.judge(services, own, wanted),
                Err(why) => Err((*why).clone()),
            };
            GradedProperty {
                holds: verdict.is_ok(),
                property: wanted.map_or_else(|| "no fault".to_owned(), WantedValue::text),
                why: verdict.err(),
            }
        };
        let mut properties = vec![held(None)];
        properties.extend(self.wanted.iter().map(|it| held(Some(it))));
        // A run that was given up says nothing of the policy.
        services.check().map_err(anyhow::Error::from)?;
        Ok(GradedPolicy {
            object: given.name.clone(),
            passed: properties.iter().all(|it| it.holds),
            properties,
        })
    }

    /// Where `own` leaves the first policy that it is to be like and is not, and how that one is
    /// called.
    ///
    /// # Errors
    /// When the work is given up.
    pub fn parting(
        &self,
        services: &Services<'_>,
        graded: &GradedPolicy,
        own: &PolicySpec,
    ) -> Result<Option<(&str, LabParting)>, Error> {
        let wanted = self.wanted.iter().zip(graded.properties.iter().skip(1));
        for (value, _) in wanted.filter(|(_, property)| !property.holds) {
            let WantedValue::Like(name) = value else {
                continue;
            };
            let model = &self.models[name];
            for (load, course) in self.loads.iter().zip(&model.courses) {
                let found = parting(services, load, own, (&model.spec, course));
                services.check().map_err(anyhow::Error::from)?;
                // A policy that cannot run has said so among its properties.
                if let Ok(Some(parting)) = found {
                    return Ok(Some((name.as_str(), parting)));
                }
            }
        }
        Ok(None)
    }

    /// Whether the policy has a property under every load, or why not.
    fn judge(
        &self,
        services: &Services<'_>,
        own: &Graded<'_>,
        wanted: Option<&WantedValue>,
    ) -> Result<(), String> {
        let words = |error: anyhow::Error| in_full(&error);
        for (at, load) in self.loads.iter().enumerate() {
            let mut properties = match wanted {
                Some(WantedValue::Like(name)) => {
                    let own = own.course(services, load, at).map_err(words)?;
                    like((name, load.seed), own, &self.models[name].courses[at])?;
                    continue;
                }
                Some(WantedValue::Names) => {
                    let other = load.renamed(false).spec(own.spec.clone());
                    let own = own.course(services, load, at).map_err(words)?;
                    let other = Course::of(services, &other).map_err(words)?;
                    like(("other names of the tasks", load.seed), own, &other)?;
                    continue;
                }
                Some(WantedValue::Property(property)) => vec![*property],
                None => Vec::new(),
            };
            properties.extend(self.right.map(Property::Right));
            let spec = load.spec(own.spec.clone());
            let found = violation::accused(services, &spec, &properties).map_err(words)?;
            if let Some(finding) = found {
                return Err(why(&finding, load));
            }
        }
        Ok(())
    }
}

impl ModelPolicy {
    fn find(services: &Services<'_>, name: &str, loads: &[LabLoad]) -> anyhow::Result<Self> {
        let spec = policy::find(services, name)?;
        let courses = loads.iter().map(|load| {
            let course = Course::of(services, &load.spec(spec.clone()));
            course.with_context(|| format!("`like {name}`"))
        });
        Ok(Self {
            courses: courses.collect::<anyhow::Result<_>>()?,
            spec,
        })
    }
}

impl Graded<'_> {
    /// The run under the load of this number.
    fn course(
        &self,
        services: &Services<'_>,
        load: &LabLoad,
        at: usize,
    ) -> anyhow::Result<&Course> {
        let own = &self.courses[at];
        if own.get().is_none() {
            let course = Course::of(services, &load.spec(self.spec.clone()))?;
            // It was empty, and nobody else can fill it.
            let _ = own.set(course);
        }
        Ok(own.get().expect("it was set"))
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
    use std::fs;

    use super::*;
    use crate::services::tests::FILES;

    #[test]
    fn a_wanted_policy_is_read_once_for_all_and_before_anybody_is_graded() {
        let path = std::env::temp_dir().join(format!("runslice-wanted-{}.o", std::process::id()));
        fs::write(&path, policies::find("rr").unwrap().object).unwrap();
        let made = || {
            let wanted = vec![WantedValue::Like(path.display().to_string())];
            let loads = vec![LabLoad::find(&FILES, None, 1).unwrap()];
            Grade::new(&FILES, loads, wanted, None)
        };
        let grade = made().unwrap();
        fs::remove_file(&path).unwrap();
        assert!(made().is_err());
        for (name, holds) in [("rr", true), ("fcfs", false)] {
            let given = HandedIn {
                name: name.to_owned(),
                policy: Ok(policy::find(&FILES, name).unwrap()),
            };
            let graded = grade.ask(&FILES, &given).unwrap();
            assert_eq!(graded.properties[1].holds, holds, "{graded:?}");
            let own = given.policy.as_ref().unwrap();
            let parting = grade.parting(&FILES, &graded, own).unwrap();
            assert_eq!(parting.is_none(), holds, "{parting:?}");
        }
    }

    #[test]
    fn a_grade_has_a_key_of_all_that_it_depends_on() {
        let path = std::env::temp_dir().join(format!("runslice-key-{}.o", std::process::id()));
        let of = |object: &str, seed, file: &[u8], more: &str| {
            fs::write(&path, policies::find(object).unwrap().object).unwrap();
            let wanted = vec![WantedValue::Like(path.display().to_string())];
            let loads = vec![LabLoad::find(&FILES, None, seed).unwrap()];
            let grade = Grade::new(&FILES, loads, wanted, None).unwrap();
            grade.key("v", file, more)
        };
        let key = of("rr", 1, b"own", "title");
        assert_eq!(of("rr", 1, b"own", "title"), key);
        for other in [
            of("fcfs", 1, b"own", "title"),
            of("rr", 2, b"own", "title"),
            of("rr", 1, b"owns", "title"),
            of("rr", 1, b"own", "another title"),
            of("rr", 1, b"ownt", "itle"),
        ] {
            assert_ne!(other, key);
        }
        let _ = fs::remove_file(&path);
    }

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
