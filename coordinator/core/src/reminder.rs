//! Reminder intervals, before a start or after the last update: `15m`, `1h`, `2d`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::time::{DAY, HOUR, MINUTE};
use crate::validation::Rule;

/// Maximum number of reminders of one item.
pub const MAX_REMINDERS: usize = 5;
/// Longest interval in milliseconds.
const MAX_INTERVAL: i64 = 30 * DAY;

/// Unit of a reminder interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum IntervalUnit {
    Minutes,
    Hours,
    Days,
}

/// Interval from one minute to thirty days, stored as it was entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ReminderInterval {
    count: u16,
    unit: IntervalUnit,
}

impl ReminderInterval {
    /// Length in milliseconds.
    pub const fn as_millis(self) -> i64 {
        let unit = match self.unit {
            IntervalUnit::Minutes => MINUTE,
            IntervalUnit::Hours => HOUR,
            IntervalUnit::Days => DAY,
        };
        self.count as i64 * unit
    }

    /// Parses one entry.
    ///
    /// # Errors
    /// Returns the rule that the text violates.
    pub fn parse(text: &str) -> Result<Self, Rule> {
        let rule = || "must be entries like 15m, 1h or 2d, from 1m to 30d".to_owned();
        let text = text.trim();
        let (digits, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(rule)?;
        let unit = match unit {
            "m" => IntervalUnit::Minutes,
            "h" => IntervalUnit::Hours,
            "d" => IntervalUnit::Days,
            _ => return Err(rule()),
        };
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(rule());
        }
        let remind = Self { count: digits.parse().map_err(|_| rule())?, unit };
        if (MINUTE..=MAX_INTERVAL).contains(&remind.as_millis()) { Ok(remind) } else { Err(rule()) }
    }

    /// Parses a list of entries; of equal intervals the first is used.
    ///
    /// # Errors
    /// Returns the rule that the list violates.
    pub fn parse_all(entries: &[String]) -> Result<Vec<Self>, Rule> {
        let mut all: Vec<Self> = Vec::new();
        for entry in entries {
            let remind = Self::parse(entry)?;
            if !all.iter().any(|known| known.as_millis() == remind.as_millis()) {
                all.push(remind);
            }
        }
        if all.len() > MAX_REMINDERS {
            return Err(format!("must be at most {MAX_REMINDERS} entries"));
        }
        Ok(all)
    }
}

impl fmt::Display for ReminderInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.unit {
            IntervalUnit::Minutes => 'm',
            IntervalUnit::Hours => 'h',
            IntervalUnit::Days => 'd',
        };
        write!(f, "{}{unit}", self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_from_a_minute_to_thirty_days_read_and_show_as_written() {
        for (text, millis) in [
            ("1m", MINUTE),
            ("15m", 15 * MINUTE),
            ("60m", HOUR),
            ("1h", HOUR),
            ("2d", 2 * DAY),
            ("30d", 30 * DAY),
            ("720h", 30 * DAY),
            ("43200m", 30 * DAY),
        ] {
            let remind = ReminderInterval::parse(text).unwrap();
            assert_eq!((remind.as_millis(), remind.to_string().as_str()), (millis, text));
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for text in
            ["", "m", "0m", "31d", "721h", "43201m", "-1h", "+1h", "1", "1s", "1w", "1.5h", "1 h", "1H", "99999h", "é"]
        {
            assert!(ReminderInterval::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_list_holds_five_different_ones() {
        let list = |texts: &[&str]| {
            ReminderInterval::parse_all(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(list(&["1h", "60m", "1m", "2m", "3m", "4m"]).unwrap().len(), 5);
        assert!(list(&["5m", "1m", "2m", "3m", "4m", "6m"]).is_err());
        assert!(list(&["1h", "soon"]).is_err());
        assert_eq!(list(&[]), Ok(Vec::new()));
    }
}
