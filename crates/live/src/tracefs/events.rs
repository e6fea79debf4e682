//! Which events are recorded.

use std::fs;
use std::path::{Path, PathBuf};

use model::Advised;

use crate::Error;

/// Without them there is no load; with all of them it is known who waits for whom.
const SCHEDULER: [&str; 9] = [
    "sched/sched_switch",
    "sched/sched_waking",
    "sched/sched_wakeup",
    "sched/sched_wakeup_new",
    "sched/sched_migrate_task",
    "sched/sched_process_fork",
    "sched/sched_process_exec",
    "sched/sched_process_exit",
    "task/task_rename",
];
/// They tell a sleep by clock from work that comes from outside, and who stops by an alarm clock.
const INTERRUPTS: [&str; 7] = [
    "irq/irq_handler_entry",
    "irq/irq_handler_exit",
    "irq/softirq_entry",
    "irq/softirq_exit",
    "timer/hrtimer_expire_entry",
    "timer/hrtimer_expire_exit",
    "signal/signal_generate",
];
/// Of softirqs only those of timers, `TIMER_SOFTIRQ` and `HRTIMER_SOFTIRQ` (6.18,
/// include/linux/interrupt.h): the flags of each record tell the others.
const TIMERS: &str = "vec == 1 || vec == 8";
/// Of signals only `SIGALRM`.
const ALARMS: &str = "sig == 14";
/// Waiting and waking through the memory of programs; kernels from 6.7 on have the later ones.
const FUTEX: [&str; 5] = [
    "futex",
    "futex_waitv",
    "futex_wait",
    "futex_wake",
    "futex_requeue",
];
/// Most events that a user may name.
const NAMED: usize = 64;

/// What is to be recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedEvents {
    /// Interrupts and timers, too.
    pub interrupts: bool,
    /// System calls of locks, too.
    pub futex: bool,
    /// Others: `system:event`, or `system` for all of its events.
    pub named: Vec<String>,
}

/// An event of this kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub system: String,
    pub name: String,
    /// Which of its records are kept; empty: all.
    pub filter: &'static str,
}

/// What is recorded, and what the kernel does not have of that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChosenEvents {
    pub events: Vec<Event>,
    pub missing: Vec<String>,
}

impl Event {
    fn of(text: &str) -> Self {
        let (system, name) = text.split_once('/').expect("the tables above have one");
        Self {
            system: system.to_owned(),
            name: name.to_owned(),
            filter: match name {
                "softirq_entry" | "softirq_exit" => TIMERS,
                "signal_generate" => ALARMS,
                _ => "",
            },
        }
    }

    /// Its folder below that of a trace buffer.
    pub fn folder(&self, buffer: &Path) -> PathBuf {
        buffer.join("events").join(&self.system).join(&self.name)
    }
}

impl WantedEvents {
    /// The events of the kernel whose trace files are below `tracefs`.
    ///
    /// # Errors
    /// When the user has named an event that is not there.
    pub fn choose(&self, tracefs: &Path) -> Result<ChosenEvents, Error> {
        let mut texts: Vec<String> = SCHEDULER.map(str::to_owned).to_vec();
        if self.interrupts {
            texts.extend(INTERRUPTS.map(str::to_owned));
        }
        if self.futex {
            let calls = FUTEX.iter();
            let both = |call| ["enter", "exit"].map(|way| format!("syscalls/sys_{way}_{call}"));
            texts.extend(calls.flat_map(both));
        }
        let mut chosen = ChosenEvents::default();
        for text in texts {
            let event = Event::of(&text);
            // Calls that are newer than the kernel are not missing: nobody makes them.
            if event.folder(tracefs).join("format").is_file() {
                chosen.events.push(event);
            } else if !is_later_call(&event.name) {
                let missing = format!("{}:{}", event.system, event.name);
                chosen.missing.push(missing);
            }
        }
        if self.named.len() > NAMED {
            return Err(Error::TraceEvent {
                event: self.named[NAMED].clone(),
                why: Advised::new(
                    format!("at most {NAMED} events can be named"),
                    "name a whole system instead",
                ),
            });
        }
        for named in &self.named {
            for event in named_events(named, tracefs)? {
                let same = |it: &&mut Event| (&it.system, &it.name) == (&event.system, &event.name);
                match chosen.events.iter_mut().find(same) {
                    // Whoever names it wants all of it.
                    Some(known) => known.filter = "",
                    None => chosen.events.push(event),
                }
            }
        }
        Ok(chosen)
    }
}

fn is_later_call(name: &str) -> bool {
    let call = name
        .strip_prefix("sys_enter_")
        .or(name.strip_prefix("sys_exit_"));
    call.is_some_and(|call| FUTEX[1..].contains(&call))
}

fn named_events(named: &str, tracefs: &Path) -> Result<Vec<Event>, Error> {
    let refused = |why: Advised| Error::TraceEvent {
        event: named.to_owned(),
        why,
    };
    let (system, name) = match named.split_once(':') {
        Some((system, name)) => (system, Some(name)),
        None => (named, None),
    };
    let is_name = |text: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        !text.is_empty() && text.len() <= 128 && text.chars().all(plain)
    };
    if !is_name(system) || !name.is_none_or(is_name) {
        return Err(refused(
            "an event is written system:event, such as irq:irq_handler_entry".into(),
        ));
    }
    let folder = tracefs.join("events").join(system);
    let event = |name: String| Event {
        system: system.to_owned(),
        name,
        filter: "",
    };
    if let Some(name) = name {
        let event = event(name.to_owned());
        return if event.folder(tracefs).join("format").is_file() {
            Ok(vec![event])
        } else {
            Err(refused(Advised::new(
                "this kernel has no such event",
                "its file available_events has all",
            )))
        };
    }
    let entries = fs::read_dir(&folder);
    let entries =
        entries.map_err(|_| refused("this kernel has no such system of events".into()))?;
    let mut events: Vec<Event> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| is_name(name))
        .map(event)
        .filter(|event| event.folder(tracefs).join("format").is_file())
        .collect();
    events.sort_by(|one, other| one.name.cmp(&other.name));
    if events.is_empty() {
        return Err(refused("this kernel has no such system of events".into()));
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracefs(events: &[&str]) -> folder::OwnFolder {
        let folder = folder::OwnFolder::new().unwrap();
        for event in events {
            let place = folder.join("events").join(event);
            fs::create_dir_all(&place).unwrap();
            fs::write(place.join("format"), "name: x\n").unwrap();
        }
        folder
    }

    fn names(chosen: &ChosenEvents) -> Vec<String> {
        let name = |event: &Event| format!("{}:{}", event.system, event.name);
        chosen.events.iter().map(name).collect()
    }

    #[test]
    fn what_an_old_kernel_lacks_is_named_and_the_rest_recorded() {
        let folder = tracefs(&[
            "sched/sched_switch",
            "irq/softirq_entry",
            "signal/signal_generate",
            "syscalls/sys_enter_futex",
        ]);
        let wanted = WantedEvents {
            interrupts: true,
            futex: true,
            named: Vec::new(),
        };
        let chosen = wanted.choose(folder.path()).unwrap();
        let want = [
            "sched:sched_switch",
            "irq:softirq_entry",
            "signal:signal_generate",
            "syscalls:sys_enter_futex",
        ];
        assert_eq!(names(&chosen), want);
        assert_eq!(chosen.events[1].filter, TIMERS);
        assert_eq!(chosen.events[2].filter, ALARMS);
        assert!(chosen.missing.contains(&"sched:sched_waking".to_owned()));
        assert!(
            chosen
                .missing
                .contains(&"syscalls:sys_exit_futex".to_owned())
        );
        // It came with 6.7: nobody misses it.
        assert!(!chosen.missing.iter().any(|it| it.contains("futex_wait")));
        let none = WantedEvents::default().choose(folder.path()).unwrap();
        assert_eq!(names(&none), ["sched:sched_switch"]);
    }

    #[test]
    fn events_that_are_named_are_recorded_whole_or_refused_by_name() {
        let folder = tracefs(&[
            "sched/sched_switch",
            "irq/softirq_entry",
            "irq/softirq_raise",
        ]);
        let named = |text: &str, interrupts| WantedEvents {
            interrupts,
            futex: false,
            named: vec![text.to_owned()],
        };
        let chosen = named("irq", true).choose(folder.path()).unwrap();
        let want = [
            "sched:sched_switch",
            "irq:softirq_entry",
            "irq:softirq_raise",
        ];
        assert_eq!(names(&chosen), want);
        assert_eq!(chosen.events[1].filter, "", "all of it");
        for (bad, want) in [
            ("irq:nosuch", "no such event"),
            ("nosuch", "no such system"),
            ("../../etc:passwd", "written system:event"),
            ("irq:..", "written system:event"),
            ("", "written system:event"),
        ] {
            let error = named(bad, false).choose(folder.path()).unwrap_err();
            assert!(error.to_string().contains(want), "{bad}: {error}");
        }
        let many = WantedEvents {
            named: vec!["irq".to_owned(); 65],
            ..WantedEvents::default()
        };
        let error = many.choose(folder.path()).unwrap_err().to_string();
        assert!(error.contains("at most 64"), "{error}");
    }
}
