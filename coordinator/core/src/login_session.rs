//! Sessions of persons who are signed in: how long they last, and when their use is recorded.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::compat;
use crate::id::{AccountId, PersonId};
use crate::time::{DAY, HOUR, MINUTE, Timestamp};

/// Sessions of one person, at most: a further one ends the oldest.
pub const MAX_SESSIONS: usize = 50;
/// Longest stored `User-Agent`, in characters.
pub const MAX_USER_AGENT: usize = 200;
/// Unused time after which a session ends, in milliseconds.
const IDLE: i64 = 12 * HOUR;
/// The same with "Keep me signed in".
const KEPT_IDLE: i64 = 14 * DAY;
/// Time after which every session ends, used or not, in milliseconds.
const MAX_AGE: i64 = 90 * DAY;
/// Milliseconds between two records of a session's use.
const RECORD_INTERVAL: i64 = MINUTE;
/// Time for which a confirmed password opens secrets and settings of security, in milliseconds.
const CONFIRMED_FOR: i64 = 10 * MINUTE;

/// Identifier of a session: the hash of the 256 random bits in the browser's cookie, which are stored nowhere.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LoginSessionId(pub [u8; 32]);

impl LoginSessionId {
    /// The first eight bytes in hexadecimal, which name the session in a list of its person's.
    pub fn short(self) -> String {
        self.0.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for LoginSessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())
    }
}

/// A signed-in browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginSession {
    /// Its id.
    pub id: LoginSessionId,
    /// The person.
    pub person: PersonId,
    /// The account that they see.
    pub account: AccountId,
    /// Time of the sign-in.
    pub created_at: Timestamp,
    /// Time of the last use, to the minute.
    pub last_used_at: Timestamp,
    /// True with "Keep me signed in".
    pub is_kept: bool,
    /// The network that the browser signed in from, such as `192.0.2.0/24`; none if unknown.
    pub network: Option<String>,
    /// The browser's `User-Agent`, cut to [`MAX_USER_AGENT`] characters.
    pub user_agent: String,
    /// Time of the last proof of identity: the sign-in, or a later confirmation.
    pub confirmed_at: Timestamp,
    /// True if it began by company sign-in: it is of its account alone. Older records end here.
    #[serde(deserialize_with = "compat::or_default")]
    pub is_company: bool,
    /// Hash of who they are at the company's provider, if it began by company sign-in: it is valid while the membership has
    /// the same, and without one nowhere. Older records end here.
    #[serde(deserialize_with = "compat::or_default")]
    pub company_subject: Option<[u8; 32]>,
}

impl LoginSession {
    /// Returns true while the session is valid.
    pub const fn is_valid(&self, now: Timestamp) -> bool {
        let idle = if self.is_kept { KEPT_IDLE } else { IDLE };
        now.since(self.last_used_at) < idle && now.since(self.created_at) < MAX_AGE
    }

    /// Seconds for which a browser keeps the cookie; none for until it is closed.
    pub const fn cookie_seconds(&self) -> Option<i64> {
        if self.is_kept { Some(MAX_AGE / 1000) } else { None }
    }

    /// Returns true if a use at that time is to be recorded.
    pub const fn is_use_recorded(&self, now: Timestamp) -> bool {
        now.since(self.last_used_at) >= RECORD_INTERVAL
    }

    /// Returns true if the person proved their identity within the last ten minutes.
    pub const fn is_confirmed(&self, now: Timestamp) -> bool {
        let age = now.since(self.confirmed_at);
        age >= 0 && age < CONFIRMED_FOR
    }
}

/// Cuts a `User-Agent` to the length that is stored.
pub fn cut_user_agent(text: &str) -> String {
    text.chars().filter(|sign| !sign.is_control()).take(MAX_USER_AGENT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(is_kept: bool, created: i64, used: i64) -> LoginSession {
        LoginSession {
            id: LoginSessionId([0xab; 32]),
            person: PersonId::from_u128(1),
            account: AccountId::from_u128(2),
            created_at: Timestamp::from_millis(created),
            last_used_at: Timestamp::from_millis(used),
            is_kept,
            network: None,
            user_agent: String::new(),
            confirmed_at: Timestamp::from_millis(created),
            is_company: false,
            company_subject: None,
        }
    }

    #[test]
    fn a_session_ends_when_it_is_idle_or_old() {
        for (is_kept, used, now, is_valid) in [
            (false, 0, 12 * HOUR - 1, true),
            (false, 0, 12 * HOUR, false),
            (false, 20 * HOUR, 31 * HOUR, true),
            (true, 0, 14 * DAY - 1, true),
            (true, 0, 14 * DAY, false),
            (true, 80 * DAY, 90 * DAY - 1, true),
            (true, 80 * DAY, 90 * DAY, false),
            (false, 90 * DAY - 1, 90 * DAY, false),
            // The clock was set back.
            (false, 0, -DAY, true),
        ] {
            let session = session(is_kept, 0, used);
            assert_eq!(session.is_valid(Timestamp::from_millis(now)), is_valid, "{is_kept} {used} {now}");
        }
    }

    #[test]
    fn a_record_from_before_company_sign_in_is_read() {
        let session = session(true, 0, 0);
        let bytes = postcard::to_allocvec(&session).unwrap();
        assert_eq!(postcard::from_bytes::<LoginSession>(&bytes[..bytes.len() - 2]).unwrap(), session);
    }

    #[test]
    fn a_record_from_before_subjects_stays_one_by_company_sign_in() {
        let session = LoginSession { is_company: true, ..session(true, 0, 0) };
        let bytes = postcard::to_allocvec(&session).unwrap();
        assert_eq!(&bytes[bytes.len() - 2..], [1, 0], "the mark and no subject");
        assert_eq!(postcard::from_bytes::<LoginSession>(&bytes[..bytes.len() - 1]).unwrap(), session);
    }

    #[test]
    fn a_use_is_recorded_once_a_minute() {
        let session = session(false, 0, 1000);
        assert!(!session.is_use_recorded(Timestamp::from_millis(1000 + MINUTE - 1)));
        assert!(session.is_use_recorded(Timestamp::from_millis(1000 + MINUTE)));
    }

    #[test]
    fn a_confirmation_lasts_ten_minutes() {
        let session = session(true, 0, 0);
        let at = Timestamp::from_millis;
        assert!(session.is_confirmed(at(0)) && session.is_confirmed(at(10 * MINUTE - 1)));
        assert!(!session.is_confirmed(at(10 * MINUTE)) && !session.is_confirmed(at(-1)));
    }

    #[test]
    fn a_user_agent_is_cut_and_has_no_control_characters() {
        assert_eq!(cut_user_agent("a\r\nb\u{1b}"), "ab");
        assert_eq!(cut_user_agent(&"é".repeat(300)), "é".repeat(MAX_USER_AGENT));
        assert_eq!(LoginSessionId([0xab; 32]).short(), "abababababababab");
    }
}
