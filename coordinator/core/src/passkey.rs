//! Passkeys of a person (Web Authentication): a public key each, whose private half never leaves the person's device.
//!
//! The rules of the list are here: how many, their names, each credential once. Signatures are verified in the service,
//! which hands over credentials as text.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text;
use crate::time::Timestamp;
use crate::validation::Rule;

/// Passkeys of one person, at most.
pub const MAX_PASSKEYS: usize = 20;
/// Longest name of a passkey, in characters.
pub const MAX_PASSKEY_NAME: usize = 60;
/// Longest stored credential, in bytes: a P-256 key takes about 700, an RSA key 1,100.
pub const MAX_CREDENTIAL: usize = 4096;

/// Identifier of a passkey in its person's list: the start of the hash of its credential's id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PasskeyId(pub [u8; 16]);

impl fmt::Display for PasskeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PasskeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A passkey.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonPasskey {
    /// Its id.
    pub id: PasskeyId,
    /// The name that the person gave it.
    pub name: String,
    /// Host of the dashboard that it was made for, which is a part of each signature: at another it is of no use.
    pub host: String,
    /// Time at which it was added.
    pub created_at: Timestamp,
    /// Time of its last use; none before the first.
    pub last_used_at: Option<Timestamp>,
    /// Its public key and counter, as JSON: self-describing, since the fields are those of a library.
    pub credential: String,
}

impl fmt::Debug for PersonPasskey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PersonPasskey").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

/// Passkeys of a person, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonPasskeys(Vec<PersonPasskey>);

impl PersonPasskeys {
    /// The passkeys.
    pub fn all(&self) -> &[PersonPasskey] {
        &self.0
    }

    /// Those that work at that host.
    pub fn of_host<'a>(&'a self, host: &'a str) -> impl Iterator<Item = &'a PersonPasskey> {
        self.0.iter().filter(move |passkey| passkey.host == host)
    }

    /// Returns the one with that id.
    pub fn get(&self, id: PasskeyId) -> Option<&PersonPasskey> {
        self.0.iter().find(|passkey| passkey.id == id)
    }

    /// Adds one.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn add(&mut self, passkey: PersonPasskey) -> Result<(), Rule> {
        if self.get(passkey.id).is_some() {
            return Err("is in your list already".to_owned());
        }
        if self.0.len() >= MAX_PASSKEYS {
            return Err(format!("can't be added: you have {MAX_PASSKEYS}, the most. Remove one first"));
        }
        if passkey.credential.len() > MAX_CREDENTIAL {
            return Err(format!("must take at most {MAX_CREDENTIAL} bytes"));
        }
        self.0.push(passkey);
        Ok(())
    }

    /// Gives one another name. Returns false if there is none with that id.
    pub fn rename(&mut self, id: PasskeyId, name: String) -> bool {
        let passkey = self.0.iter_mut().find(|passkey| passkey.id == id);
        passkey.map(|passkey| passkey.name = name).is_some()
    }

    /// Records a use, with the credential as it is after it. Returns false if there is none with that id.
    pub fn record_use(&mut self, id: PasskeyId, credential: String, now: Timestamp) -> bool {
        let Some(passkey) = self.0.iter_mut().find(|passkey| passkey.id == id) else { return false };
        passkey.credential = credential;
        passkey.last_used_at = Some(now);
        true
    }

    /// Removes one. Returns false if there is none with that id.
    pub fn remove(&mut self, id: PasskeyId) -> bool {
        let before = self.0.len();
        self.0.retain(|passkey| passkey.id != id);
        self.0.len() < before
    }
}

/// Validates the name of a passkey.
///
/// # Errors
/// The rule that it breaks.
pub fn passkey_name(name: &str) -> Result<String, Rule> {
    text::line(name, 1..=MAX_PASSKEY_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passkey(number: u8) -> PersonPasskey {
        PersonPasskey {
            id: PasskeyId([number; 16]),
            name: "Phone".to_owned(),
            host: "status.example.com".to_owned(),
            created_at: Timestamp::from_millis(7),
            last_used_at: None,
            credential: "{\"secret-free\":1}".to_owned(),
        }
    }

    #[test]
    fn a_person_has_each_credential_once_and_at_most_twenty() {
        let mut passkeys = PersonPasskeys::default();
        for number in 0..MAX_PASSKEYS as u8 {
            assert_eq!(passkeys.add(passkey(number)), Ok(()), "{number}");
        }
        assert!(passkeys.add(passkey(3)).unwrap_err().contains("already"));
        assert!(passkeys.add(passkey(99)).unwrap_err().contains("20"));
        assert!(passkeys.remove(PasskeyId([3; 16])) && !passkeys.remove(PasskeyId([3; 16])));
        assert_eq!(passkeys.add(passkey(99)), Ok(()));
        assert_eq!((passkeys.all().len(), passkeys.get(PasskeyId([3; 16]))), (MAX_PASSKEYS, None));
        let mut passkeys = PersonPasskeys::default();
        let long = PersonPasskey { credential: "a".repeat(MAX_CREDENTIAL + 1), ..passkey(1) };
        assert!(passkeys.add(long).unwrap_err().contains("4096"));
        let longest = PersonPasskey { credential: "a".repeat(MAX_CREDENTIAL), ..passkey(1) };
        assert_eq!(passkeys.add(longest), Ok(()));
    }

    #[test]
    fn names_uses_and_hosts_belong_to_one() {
        let mut passkeys = PersonPasskeys::default();
        let (first, other) = (PasskeyId([1; 16]), PersonPasskey { host: "old.example.com".to_owned(), ..passkey(2) });
        passkeys.add(passkey(1)).unwrap();
        passkeys.add(other).unwrap();
        assert!(passkeys.rename(first, "Key".to_owned()) && !passkeys.rename(PasskeyId([9; 16]), String::new()));
        let now = Timestamp::from_millis(8);
        assert!(passkeys.record_use(first, "{}".to_owned(), now));
        assert!(!passkeys.record_use(PasskeyId([9; 16]), "{}".to_owned(), now));
        let used = passkeys.get(first).unwrap();
        assert_eq!((used.name.as_str(), used.last_used_at, used.credential.as_str()), ("Key", Some(now), "{}"));
        assert_eq!(passkeys.get(PasskeyId([2; 16])).unwrap().last_used_at, None);
        let names: Vec<_> = passkeys.of_host("status.example.com").map(|it| it.id).collect();
        assert_eq!(names, [first]);
    }

    #[test]
    fn a_name_is_a_line_of_sixty_characters() {
        assert_eq!(passkey_name("  Work laptop ").unwrap(), "Work laptop");
        assert!(passkey_name(&"é".repeat(MAX_PASSKEY_NAME)).is_ok());
        for invalid in ["", "   ", "a\nb", &"a".repeat(MAX_PASSKEY_NAME + 1)] {
            assert!(passkey_name(invalid).is_err(), "{invalid:?}");
        }
    }

    #[test]
    fn debug_output_names_it_without_its_credential() {
        let text = format!("{:?}", passkey(1));
        assert!(text.contains("Phone") && text.contains("0101") && !text.contains("secret-free"), "{text}");
    }
}
