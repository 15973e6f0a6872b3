//! `parallax page alerts`: shows and changes the alert settings of a page.

use clap::Args;

use super::command_request::CommandTarget;
use crate::admin::AdminCommand;

#[derive(Debug, Args)]
pub(super) struct PageAlertsArgs {
    /// Id or slug of the page
    page: String,
    /// Repeat alerts during an outage every so many minutes, 5 to 1440, or `off`
    #[arg(long, value_name = "MINUTES", value_parser = repeat)]
    repeat: Option<RepeatInterval>,
    /// Open an incident automatically when a monitor goes down
    #[arg(long, value_name = "on|off", value_parser = switch)]
    automatic_incidents: Option<bool>,
    #[command(flatten)]
    target: CommandTarget,
}

/// Minutes, or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RepeatInterval(Option<i64>);

impl PageAlertsArgs {
    /// Returns the command and its target.
    pub(super) fn into_request(self) -> (AdminCommand, CommandTarget) {
        let Self { page, repeat, automatic_incidents, target } = self;
        let repeat = repeat.map(|RepeatInterval(minutes)| minutes);
        (
            AdminCommand::PageAlerts {
                page,
                repeat_minutes: repeat.flatten(),
                repeat_off: repeat == Some(None),
                automatic_incidents,
            },
            target,
        )
    }
}

/// The service checks the bounds.
fn repeat(text: &str) -> Result<RepeatInterval, String> {
    if text == "off" {
        return Ok(RepeatInterval(None));
    }
    let minutes = text.parse().map_err(|_| "must be a number of minutes, or off".to_owned())?;
    Ok(RepeatInterval(Some(minutes)))
}

fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("must be on or off".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_minutes_or_off() {
        for (text, read) in [("off", Some(None)), ("30", Some(Some(30))), ("", None), ("5m", None)] {
            assert_eq!(repeat(text).ok(), read.map(RepeatInterval), "{text}");
        }
        assert_eq!((switch("on"), switch("off")), (Ok(true), Ok(false)));
        assert!(switch("1").is_err());
    }
}
