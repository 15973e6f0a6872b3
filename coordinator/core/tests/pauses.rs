//! Pauses: recorded for every type of monitor, and excluded from its statistics.

#![allow(clippy::unwrap_used, dead_code, reason = "the stage is shared; a decode error may panic")]

#[path = "story/stage.rs"]
mod stage;

use parallax_core::check::CheckKind;
use parallax_core::time::{MINUTE, Timestamp};
use parallax_core::uptime::TimeSpan;
use parallax_core::vantage::{NetworkNo, Region, Vantage, VantageNo};
use stage::MachineStage;

const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);

#[test]
fn every_kind_of_monitor_knows_when_it_was_paused() {
    let at = |minute: i64| START + minute * MINUTE;
    let vantage = |no| Vantage {
        no: VantageNo(no),
        region: Region::Europe,
        network: NetworkNo(no),
        connected: true,
        quarantined: false,
        unfit: false,
    };
    for kind in [CheckKind::Http, CheckKind::Certificate, CheckKind::Heartbeat, CheckKind::Component] {
        let (mut stage, _) =
            MachineStage::new(stage::effective_settings(kind, 60_000), vec![vantage(1), vantage(2)], START);
        let pauses = |stage: &MachineStage| stage.machine.view(&stage.mesh(), at(90)).pauses;
        assert_eq!(pauses(&stage), [], "{kind}");
        stage.edit(at(5), |settings| settings.paused = true);
        // Another edit while paused does not start another pause.
        stage.edit(at(7), |settings| settings.revision += 1);
        let open = TimeSpan { from: at(5), to: Timestamp::from_millis(i64::MAX) };
        assert_eq!(pauses(&stage), [open], "{kind}");
        stage.edit(at(30), |settings| settings.paused = false);
        assert_eq!(pauses(&stage), [TimeSpan { from: at(5), to: at(30) }], "{kind}");
    }
}
