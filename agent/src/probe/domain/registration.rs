//! Registration of a domain as RDAP and WHOIS report it, and plausibility checks of its dates.

use chrono::DateTime;

use super::{DAY_MS, NO_DATE, date, vocabulary};

/// 1 January 1985: no domain is older, so none expired before. Registries write year 1 or 1970 for an unknown
/// date.
const FIRST_MS: i64 = 473_385_600_000;
/// Milliseconds after its expiry date from which an active registration can't have expired then: grace
/// periods are over.
const LONG_PAST: i64 = 365 * DAY_MS;

/// The fields of a response that a check needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Registration {
    /// Expiry, epoch ms; some national registries don't publish it.
    pub(super) expires_ms: Option<i64>,
    /// True if the expiry's label is ambiguous: the date may be in the past while the registration continues.
    pub(super) is_expiry_ambiguous: bool,
    /// Start of the registration, epoch ms, if published.
    pub(super) registered_ms: Option<i64>,
    /// True if it has expired and waits for redemption or deletion (RFC 8056).
    pub(super) is_lapsed: bool,
    /// True if it is inactive: held, suspended, expired or lapsed.
    pub(super) is_inactive: bool,
}

impl Registration {
    /// Sets the expiry from the clearest of several labelled dates that can be parsed, with ranks from
    /// [`vocabulary::expiry_rank`].
    ///
    /// # Errors
    /// A message about dates of which none can be parsed.
    pub(super) fn with_expiry(mut self, ends: &mut [(u8, &str)], top: &str) -> Result<Self, String> {
        let clearest = clearest_expiry(ends, top)?;
        self.expires_ms = clearest.map(|(_, at)| at);
        self.is_expiry_ambiguous = clearest.is_some_and(|(rank, _)| rank >= vocabulary::VAGUE);
        Ok(self)
    }

    /// Adds a status value.
    pub(super) fn with_status(mut self, status: &str) -> Self {
        self.is_lapsed |= vocabulary::is_lapsed(status);
        self.is_inactive |= vocabulary::is_inactive(status);
        self
    }

    /// Returns the expiry, epoch ms, if its date is plausible at `now_ms`.
    ///
    /// # Errors
    /// A message about a missing or implausible date.
    pub(super) fn plausible_expiry(&self, now_ms: i64) -> Result<i64, String> {
        let expiry = self.expires_ms.ok_or(NO_DATE)?;
        let why = if expiry < FIRST_MS {
            "is not plausible"
        } else if self.registered_ms.is_some_and(|began| expiry <= began) {
            "is before the registration"
        } else if !self.is_inactive && now_ms.saturating_sub(expiry) > LONG_PAST {
            "is years in the past, but the domain is active"
        } else if self.is_expiry_ambiguous && !self.is_inactive && expiry <= now_ms {
            "is in the past, but the domain is active"
        } else {
            return Ok(expiry);
        };
        let day =
            DateTime::from_timestamp_millis(expiry).map_or_else(String::new, |at| at.format("%Y-%m-%d ").to_string());
        Err(format!("its expiry date {day}{why}"))
    }
}

/// Returns the clearest of several expiry dates that can be parsed, with its rank; `None` if there is none at
/// all.
///
/// # Errors
/// A message about dates of which none can be parsed.
fn clearest_expiry(ends: &mut [(u8, &str)], top: &str) -> Result<Option<(u8, i64)>, String> {
    ends.sort_by_key(|(rank, _)| *rank);
    if let Some(end) = ends.iter().find_map(|(rank, text)| Some((*rank, date::read(text, top)?))) {
        return Ok(Some(end));
    }
    match ends.first() {
        Some((_, text)) => {
            let text: String = text.chars().take(60).collect();
            Err(format!("its expiry date \"{}\" can't be read", text.trim()))
        }
        None => Ok(None),
    }
}
