//! Toasts: one sentence about what the last form did, shown once.
//!
//! A form answers with a redirect whose query names the toast, so that a reload repeats nothing. The query has a name of
//! the table below and a number, never a text: a link can't put words into the dashboard's mouth.

/// Name of the query parameter with the toast's name.
pub(crate) const TOAST_PARAM: &str = "done";
/// Name of the query parameter with the toast's number.
pub(crate) const TOAST_COUNT_PARAM: &str = "count";
/// Name of the query parameter with the token by which the form's change is undone.
///
/// A token in an address can get into a history or a log. It is of no use there: it works for one person alone, in their
/// own session, by a form with the session's token, once, and for ten minutes.
pub(crate) const UNDO_PARAM: &str = "undo";

/// Toasts: name, text for one thing, text for several, where `{}` is the number.
const TOASTS: &[(&str, &str, &str)] = &[
    ("saved", "Changes saved", "{} changes saved"),
    ("created", "Created", "{} created"),
    ("deleted", "Deleted", "{} deleted"),
    ("sent", "Sent", "{} sent"),
    ("monitor-created", "Monitor created", "{} monitors created"),
    ("monitors-paused", "1 monitor paused", "{} monitors paused"),
    ("monitors-resumed", "1 monitor resumed", "{} monitors resumed"),
    ("monitors-grouped", "1 monitor moved", "{} monitors moved"),
    ("monitors-deleted", "1 monitor deleted", "{} monitors deleted"),
    ("monitors-edited", "1 monitor changed", "{} monitors changed"),
    ("monitors-reordered", "Order saved", "Order of {} monitors saved"),
    ("subscribers-imported", "Imported. 1 address is asked.", "Imported. {} addresses are asked, some each hour."),
    ("posted", "Posted", "Posted. {} messages are on their way."),
    ("maintenance-started", "Maintenance started", "Maintenance started for {} monitors"),
    ("key-revoked", "Key revoked", "{} keys revoked"),
    ("page-created", "Page created", "{} pages created"),
    ("page-deleted", "Page deleted", "{} pages deleted"),
    ("domain-found", "Record found, the domain is set", "{} domains are set"),
    ("domain-missing", "Looked up: the record isn’t there yet", "{} records are missing"),
    ("agent-revoked", "Agent revoked", "{} agents revoked"),
    ("agent-forgotten", "Agent forgotten", "{} agents forgotten"),
    ("invitation-revoked", "Invitation revoked", "{} invitations revoked"),
    ("invitation-sent", "Invitation sent", "{} invitations sent"),
    ("role-changed", "Role changed", "{} roles changed"),
    ("role-raised", "Role changed. They sign in again to use it.", "{} roles changed"),
    ("member-removed", "Member removed", "{} members removed"),
    ("plan-changed", "Plan changed", "{} plans changed"),
    ("acknowledged", "You have it", "You have {} outages"),
    ("acknowledged-before", "Someone else has it already", "Someone else has {} of them already"),
    ("taken-back", "Taken back", "{} taken back"),
    ("not-down", "The outage is over", "{} outages are over"),
    ("set-up", "Set up. The first check runs now", "{} sites set up"),
    ("steps-dismissed", "The list is gone for all owners", "{} lists are gone"),
    ("company-works", "The provider’s configuration works", "{} providers work"),
    ("company-removed", "Company sign-in removed", "{} company sign-ins removed"),
    ("factor-off", "Second factor turned off", "{} second factors turned off"),
    ("factor-needed", "Members need a second factor from now on", "{} settings saved"),
    ("passkey-added", "Passkey added", "{} passkeys added"),
    ("passkey-removed", "Passkey removed", "{} passkeys removed"),
    ("recovery-code-used", "Signed in. 1 recovery code is left.", "Signed in. {} recovery codes are left."),
    ("session-ended", "Session ended", "{} sessions ended"),
    ("subscriber-removed", "Subscriber removed", "{} subscribers removed"),
    ("deploy-deleted", "Deploy deleted", "{} deploys deleted"),
    ("destination-deleted", "Destination deleted", "{} destinations deleted"),
    ("undone", "Undone", "{} changes undone"),
];

/// Result of the last form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Toast {
    /// Text.
    pub text: String,
    /// Button that undoes it, while that is possible.
    pub undo: Option<UndoButton>,
}

/// Form of the button that undoes the last form's change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UndoButton {
    /// Address of the form.
    pub action: String,
    /// Address of the screen to which it leads back.
    pub next: String,
    /// Token of the session.
    pub form_token: String,
    /// Idempotency key.
    pub once: String,
}

impl Toast {
    /// Returns the toast of that name for a number of things; `None` for an unknown name.
    pub(crate) fn of(name: &str, count: usize) -> Option<Self> {
        let (_, one, many) = TOASTS.iter().find(|(known, ..)| *known == name)?;
        let text = if count == 1 { (*one).to_owned() } else { many.replacen("{}", &count.to_string(), 1) };
        Some(Self { text, undo: None })
    }

    /// Returns an address with the query that shows the toast of that name.
    pub(crate) fn address(path: &str, name: &str, count: usize) -> String {
        let separator = if path.contains('?') { '&' } else { '?' };
        format!("{path}{separator}{TOAST_PARAM}={name}&{TOAST_COUNT_PARAM}={count}")
    }

    /// Returns the same address with the token by which the change is undone, if it can be.
    pub(crate) fn address_with_undo(path: &str, name: &str, count: usize, token: Option<&str>) -> String {
        let Some(token) = token else { return Self::address(path, name, count) };
        let separator = if path.contains('?') { '&' } else { '?' };
        Self::address(&format!("{path}{separator}{UNDO_PARAM}={token}"), name, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_toasts_have_words() {
        assert_eq!(Toast::of("monitors-paused", 1).unwrap().text, "1 monitor paused");
        assert_eq!(Toast::of("monitors-paused", 20).unwrap().text, "20 monitors paused");
        assert_eq!(Toast::of("<b>You won</b>", 1), None);
        assert_eq!(Toast::address("/app?a=b", "saved", 1), "/app?a=b&done=saved&count=1");
        assert_eq!(Toast::address_with_undo("/app", "saved", 1, None), "/app?done=saved&count=1");
        let undoable = Toast::address_with_undo("/app", "saved", 1, Some("t0"));
        assert_eq!(undoable, "/app?undo=t0&done=saved&count=1");
    }
}
