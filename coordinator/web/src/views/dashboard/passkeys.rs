//! Passkeys on the screens of their person: the list, and the forms that add and rename one.

use parallax_core::passkey::{MAX_PASSKEYS, PersonPasskey};
use parallax_core::time::Timestamp;
use parallax_template::template_file;

use super::frame::Frame;
use super::{render, words};
use crate::views::assets;
use crate::views::format::FormattedTime;

/// Passkeys of a person.
#[derive(Debug, Clone)]
pub(crate) struct PasskeyList {
    /// Oldest first.
    pub(super) rows: Vec<PasskeyRow>,
    /// True if passkeys work at the dashboard's address.
    is_offered: bool,
    /// True if an account of theirs needs a second factor, and a passkey is the only one.
    is_only_factor: bool,
}

/// A passkey in the list.
#[derive(Debug, Clone)]
pub(super) struct PasskeyRow {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) host: String,
    /// False for one that was made for another address of the dashboard.
    pub(super) works: bool,
    pub(super) created: FormattedTime,
    pub(super) last_used: Option<FormattedTime>,
}

impl PasskeyList {
    /// Lists passkeys. `host` is the one that they work at; none where no passkeys work.
    pub(crate) fn new(passkeys: &[PersonPasskey], host: Option<&str>, is_only_factor: bool, now: Timestamp) -> Self {
        let row = |it: &PersonPasskey| PasskeyRow {
            id: it.id.to_string(),
            name: it.name.clone(),
            host: it.host.clone(),
            works: host == Some(it.host.as_str()),
            created: words::time(it.created_at, now),
            last_used: it.last_used_at.map(|at| words::time(at, now)),
        };
        let rows: Vec<PasskeyRow> = passkeys.iter().map(row).collect();
        Self { rows, is_offered: host.is_some(), is_only_factor }
    }

    /// True if one can be added.
    pub(super) const fn may_add(&self) -> bool {
        self.is_offered && self.rows.len() < MAX_PASSKEYS
    }

    /// Use of passkeys here, or the reason why there are none.
    pub(super) fn hint(&self) -> String {
        let hint = if !self.is_offered {
            "Passkeys need an https address with a host name, or http://localhost. This dashboard's address has neither."
        } else if self.is_only_factor {
            "This passkey is your only second factor. Add another, or an authenticator app: without it you can't sign in."
        } else if self.rows.len() >= MAX_PASSKEYS {
            return format!("You have {MAX_PASSKEYS}, the most. Remove one to add another.");
        } else {
            "Sign in with your fingerprint, face or PIN, without password and code."
        };
        hint.to_owned()
    }
}

/// Form for a new passkey.
#[template_file("dashboard/passkey_new.html")]
#[derive(Debug, Clone)]
pub(crate) struct PasskeyForm {
    /// Name that was entered, or the browser's.
    pub typed_name: String,
    /// Fault of the name; empty if there is none.
    pub name_fault: String,
    /// Reason why none was added; empty if there is none.
    pub fault: String,
    /// Token of the session's forms.
    pub form_token: String,
}

impl PasskeyForm {
    /// Renders the page as HTML.
    pub(crate) fn html(&self) -> String {
        // Rendering to memory does not fail.
        render(self).unwrap_or_default()
    }
}

/// Form for the name of a passkey.
#[template_file("dashboard/passkey.html")]
#[derive(Debug, Clone)]
pub(crate) struct PasskeyScreen {
    /// Frame.
    pub frame: Frame,
    /// Id of the passkey.
    pub id: String,
    /// Its name, or the one that was entered.
    pub typed_name: String,
    /// Fault of the name; empty if there is none.
    pub fault: String,
}

#[cfg(test)]
mod tests {
    use parallax_core::passkey::PasskeyId;

    use super::*;

    fn list(count: u8, host: Option<&str>, is_only_factor: bool) -> PasskeyList {
        let passkey = |number| PersonPasskey {
            id: PasskeyId([number; 16]),
            name: "Phone".to_owned(),
            host: "status.example.com".to_owned(),
            created_at: Timestamp::from_millis(0),
            last_used_at: None,
            credential: String::new(),
        };
        let passkeys: Vec<_> = (0..count).map(passkey).collect();
        PasskeyList::new(&passkeys, host, is_only_factor, Timestamp::from_millis(0))
    }

    #[test]
    fn the_list_says_what_is_possible() {
        let here = Some("status.example.com");
        for (list, may_add, hint) in [
            (list(0, None, false), false, "need an https address"),
            (list(0, here, false), true, "fingerprint"),
            (list(1, here, false), true, "fingerprint"),
            (list(1, here, true), true, "only second factor"),
            (list(MAX_PASSKEYS as u8, here, false), false, "20, the most"),
        ] {
            assert_eq!(list.may_add(), may_add, "{hint}");
            assert!(list.hint().contains(hint), "{}", list.hint());
        }
        assert!(!list(1, Some("new.example.com"), false).rows[0].works);
    }

    #[test]
    fn text_from_outside_is_escaped() {
        let evil = "\"><script>alert(1)</script>".to_owned();
        let (typed_name, name_fault, fault, form_token) = (evil.clone(), evil.clone(), evil.clone(), evil);
        let page = PasskeyForm { typed_name, name_fault, fault, form_token }.html();
        assert!(page.contains("alert(1)") && !page.contains("<script>") && !page.contains("style="), "{page}");
    }
}
