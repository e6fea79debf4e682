//! Whether an order leaves a task behind that nobody comes for any more.
//!
//! An order is too short to judge a wait. So one that looks odd at its end is followed: the same
//! order is run four times as long, and again, as long as the same wait goes on.

use explain::why::{Fault, Finding, Observer, OpenWait, Tier};
use model::{Nanos, Stall};

use super::{OrderFault, STARVED, Tries, Undisturbed};

/// From one look at a wait to the next the order is so many times as long.
const LONGER: u64 = 4;

impl Tries<'_> {
    /// What is wrong with the order with these stalls, if anything is.
    pub(super) fn fault_of(
        &self,
        stalls: &[Stall],
        usual: &Undisturbed,
    ) -> anyhow::Result<Option<OrderFault>> {
        let mut duration = self.length;
        let (seen, exit) = self.run(stalls, duration)?;
        let fault = |finding, duration| OrderFault {
            stalls: stalls.to_vec(),
            finding,
            duration,
        };
        let ejected = |seen: &Observer, duration| {
            let finding = seen.finding().filter(Finding::is_fault);
            finding.map(|finding| fault(finding, duration))
        };
        if exit.kind.is_error() {
            return Ok(ejected(&seen, duration));
        }
        // A stall delays who waits behind it.
        let stopped: u64 = stalls.iter().map(|stall| stall.span.get()).sum();
        let odd = usual.longest + Nanos::new(stopped);
        let is_odd = |it: &OpenWait| it.is_beside_idle || seen.end().since(it.since) > odd;
        let mut waits = seen.open_waits();
        waits.retain(is_odd);
        let last = duration + STARVED;
        while !waits.is_empty() && duration < last {
            duration = Nanos::new(duration.get().max(1).saturating_mul(LONGER)).min(last);
            let (seen, exit) = self.run(stalls, duration)?;
            if exit.kind.is_error() {
                return Ok(ejected(&seen, duration));
            }
            let open = seen.open_waits();
            let goes_on = |it: &OpenWait| {
                let same = |now: &OpenWait| (now.task, now.since) == (it.task, it.since);
                open.iter().any(same)
            };
            waits.retain(goes_on);
            if duration == last {
                let found = waits.iter().filter_map(|it| seen.open_finding(it.task));
                let mut found = found.filter(|finding| is_starved(finding, usual));
                return Ok(found.next().map(|finding| fault(finding, duration)));
            }
        }
        Ok(None)
    }
}

/// Whether the policy has left the task, which the order without a stall does to nobody.
fn is_starved(finding: &Finding, usual: &Undisturbed) -> bool {
    let is_left = matches!(finding.tier(), Some(Tier::Contract | Tier::NoRival));
    let is_usual = usual.classes.contains(&finding.fault);
    is_left && !is_usual && finding.fault != Fault::Outranked
}
