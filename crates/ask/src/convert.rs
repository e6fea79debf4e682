//! A workload in another language.

use std::path::Path;

use model::Advised;
use traces::foreign::Window;
use workload::rtapp;

use crate::error::{Error, UsageError};
use crate::note::Topic;
use crate::services::Services;
use crate::{input, recording, workload_arg};

/// Languages of workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Workload file of runslice.
    Toml,
    /// Configuration of rt-app.
    RtApp,
}

/// Converts a workload, or makes one of a recording. A note says what is lost.
#[derive(Clone, Debug)]
pub struct Convert {
    /// The workload's name or file, or a recording.
    pub workload: String,
    /// The language that it becomes; `None`: the other one of the two.
    pub to: Option<Language>,
    /// Parameters of the workload.
    pub scale: Vec<(String, i64)>,
    /// Whether the names of programs are left out of a recording's workload.
    pub anonymous: bool,
    /// The part of a recording that is used.
    pub window: Option<Window>,
}

impl Convert {
    /// The text in the other language.
    ///
    /// # Errors
    /// When the file is bad, or something in it has no counterpart.
    pub fn ask(&self, services: &Services<'_>) -> Result<String, Error> {
        Ok(self.converted(services)?)
    }

    fn converted(&self, services: &Services<'_>) -> anyhow::Result<String> {
        let name = &self.workload;
        if recording::is_recording(services, Path::new(name)) {
            return self.of_recording(services);
        }
        if self.anonymous || self.window.is_some() {
            let message = "--anonymous and --window are for recordings";
            return Err(UsageError::new(message).into());
        }
        let from_rtapp = name.to_ascii_lowercase().ends_with(".json");
        let to = match (self.to, from_rtapp) {
            (Some(to), _) => to,
            (None, true) => Language::Toml,
            (None, false) => Language::RtApp,
        };
        match (to, from_rtapp) {
            (Language::Toml, true) => {
                let text = input::text(services, Path::new(name), input::WRITTEN)?;
                let imported = rtapp::import(&text, name)?;
                self.note_lost(services, &imported.lost);
                Ok(imported.toml)
            }
            (Language::Toml, false) => self.built_in(services),
            (Language::RtApp, _) => {
                let workload = workload_arg::find(services, name, &self.scale)?;
                let exported = rtapp::export(&workload).map_err(|refused| {
                    let lines = refused.join("\n  ");
                    anyhow::anyhow!("rt-app cannot express all of this workload:\n  {lines}")
                })?;
                self.note_lost(services, &exported.lost);
                Ok(exported.json)
            }
        }
    }

    /// The text of a built-in workload as it is.
    fn built_in(&self, services: &Services<'_>) -> anyhow::Result<String> {
        if workload_arg::file_of(&self.workload).is_some() {
            anyhow::bail!(Advised::new(
                format!("{} is a workload file already", self.workload),
                "leave out --to for rt-app's language",
            ));
        }
        if !self.scale.is_empty() {
            let message = "--scale does not change the file: write it, and change its `scale`";
            return Err(UsageError::new(message).into());
        }
        Ok(workload_arg::Written::find(services, &self.workload)?.text)
    }

    fn of_recording(&self, services: &Services<'_>) -> anyhow::Result<String> {
        if self.to == Some(Language::RtApp) {
            let message = Advised::new(
                "a recording becomes a workload file",
                "convert that to rt-app's language",
            );
            return Err(UsageError::new(message).into());
        }
        let window = self.window.unwrap_or_default();
        let path = Path::new(&self.workload);
        recording::to_toml(services, path, window, self.anonymous)
    }

    fn note_lost(&self, services: &Services<'_>, lost: &[String]) {
        for lost in lost {
            services.note(Topic::Run, format!("{}: lost: {lost}", self.workload));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_built_in_workload_has_both_languages_without_files() {
        let question = Convert {
            workload: "chat".to_owned(),
            to: Some(Language::Toml),
            scale: Vec::new(),
            anonymous: false,
            window: None,
        };
        let none = Services::default();
        assert!(question.ask(&none).unwrap().contains("[workload]"));
        let other = Convert {
            anonymous: true,
            ..question
        };
        let error = other.ask(&none).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Usage);
        assert!(error.to_string().contains("are for recordings"), "{error}");
    }
}
