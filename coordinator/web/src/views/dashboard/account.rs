//! Screens of the person's own account: API keys, and sign-in with its sessions.

use parallax_core::key::{ApiKey, KeyAccess};
use parallax_core::login_session::LoginSession;
use parallax_core::time::{MINUTE, Timestamp};
use parallax_template::template_file;

use super::browser_name::browser_name;
use super::frame::Frame;
use super::passkeys::PasskeyList;
use super::second_factor_state::FactorState;
use super::words;
use crate::views::assets;
use crate::views::format::FormattedTime;

/// Address of the list of keys.
const KEYS: &str = "/app/account/keys";
/// Address of the members.
pub(super) const MEMBERS: &str = "/app/account/members";
/// Address of the person's accounts.
pub(super) const SWITCH: &str = "/app/account/switch";
/// Address of the audit log.
pub(super) const AUDIT: &str = "/app/account/audit";
/// Address of the plan.
pub(crate) const PLAN: &str = "/app/account/plan";
/// Address of sign-in and security.
pub(super) const SECURITY: &str = "/app/account/security";

/// Keys of the account.
#[template_file("dashboard/keys.html")]
#[derive(Debug, Clone)]
pub(crate) struct KeysScreen {
    frame: Frame,
    tabs: Vec<(&'static str, &'static str, bool)>,
    keys: Vec<KeyRow>,
    /// Key that was just created, with its secret.
    created: Option<CreatedKey>,
}

/// A key in the list.
#[derive(Debug, Clone)]
struct KeyRow {
    id: String,
    name: String,
    created: FormattedTime,
    access: &'static str,
    reach: String,
    last_used: Option<FormattedTime>,
    /// Idempotency key of the form that revokes it.
    once: String,
}

/// A key that is shown once.
#[derive(Debug, Clone)]
struct CreatedKey {
    name: String,
    text: String,
    /// Access and reach in words.
    facts: String,
    /// Command that tries the key.
    curl: String,
}

impl KeysScreen {
    /// Lists keys. The idempotency keys of their forms begin with `once`.
    pub(crate) fn new(frame: Frame, keys: &[ApiKey], now: Timestamp, once: &str) -> Self {
        let row = |key: &ApiKey| KeyRow {
            id: key.id.to_string(),
            name: key.name.clone(),
            created: words::time(key.created_at, now),
            access: access_text(key.access),
            reach: reach_text(&frame, key),
            last_used: key.last_used_at.map(|at| words::time(at, now)),
            once: format!("{once}-{}", key.id),
        };
        Self { tabs: tabs(&frame, KEYS), keys: keys.iter().map(row).collect(), created: None, frame }
    }

    /// Shows the secret of a key that was just created.
    pub(crate) fn with_created(self, key: &ApiKey, text: &str, base_url: &str) -> Self {
        let created = CreatedKey {
            name: key.name.clone(),
            text: text.to_owned(),
            facts: format!("{} access, {}.", access_text(key.access), reach_text(&self.frame, key)),
            curl: format!("curl -H \"Authorization: Bearer {text}\" {base_url}/api/v1/me"),
        };
        Self { created: Some(created), ..self }
    }
}

/// Form for a new key.
#[template_file("dashboard/key_new.html")]
#[derive(Debug, Clone)]
pub(crate) struct NewKeyScreen {
    /// The frame.
    pub frame: Frame,
    /// Name that was entered.
    pub name: String,
    /// Fault of the name; empty if there is none.
    pub name_fault: String,
    /// Name of the chosen access.
    pub access: String,
    /// Id of the chosen page; empty for all.
    pub page: String,
    /// Fault of the page; empty if there is none.
    pub page_fault: String,
    /// Key by which a repetition makes no second key.
    pub idempotency_key: String,
}

impl NewKeyScreen {
    /// Choices of access: value and text.
    fn accesses(&self) -> Vec<(String, String)> {
        let text = |access: KeyAccess| match access {
            KeyAccess::Read => "Read",
            KeyAccess::Write => "Read and write",
        };
        KeyAccess::ALL.map(|access| (access.name().to_owned(), text(access).to_owned())).to_vec()
    }

    /// Choices of pages: value and text.
    fn pages(&self) -> Vec<(String, String)> {
        let all = (String::new(), "All pages".to_owned());
        let pages = self.frame.pages.iter().map(|page| (page.id.to_string(), page.name.clone()));
        std::iter::once(all).chain(pages).collect()
    }
}

/// Sign-in and security: password, second factor, passkeys and sessions.
#[template_file("dashboard/security.html")]
#[derive(Debug, Clone)]
pub(crate) struct SecurityScreen {
    frame: Frame,
    tabs: Vec<(&'static str, &'static str, bool)>,
    has_password: bool,
    /// True at a session by company sign-in, which changes nothing that counts elsewhere.
    is_company: bool,
    factor: FactorState,
    passkeys: PasskeyList,
    sessions: Vec<SessionRow>,
    /// Reason why a form was refused that is not shown; empty if there is none.
    problem: String,
    /// Fault of the present password; empty if there is none.
    current_fault: String,
    /// Fault of the new password; empty if there is none.
    password_fault: String,
}

/// A signed-in browser in the list.
#[derive(Debug, Clone)]
struct SessionRow {
    id: String,
    browser: String,
    network: String,
    signed_in: FormattedTime,
    last_used: Option<FormattedTime>,
    is_current: bool,
}

impl SecurityScreen {
    /// Shows the sessions of a person, the last used first.
    pub(crate) fn new(
        frame: Frame,
        (has_password, factor): (bool, FactorState),
        (sessions, current): (&[LoginSession], &LoginSession),
        now: Timestamp,
    ) -> Self {
        let row = |session: &LoginSession| SessionRow {
            id: session.id.short(),
            browser: browser_name(&session.user_agent),
            network: session.network.clone().unwrap_or_else(|| "address unknown".to_owned()),
            signed_in: words::time(session.created_at, now),
            last_used: (now.since(session.last_used_at) >= 2 * MINUTE).then(|| words::time(session.last_used_at, now)),
            is_current: session.id == current.id,
        };
        Self {
            tabs: tabs(&frame, SECURITY),
            has_password,
            is_company: current.is_company,
            factor,
            passkeys: PasskeyList::new(&[], None, false, now),
            sessions: sessions.iter().map(row).collect(),
            problem: String::new(),
            current_fault: String::new(),
            password_fault: String::new(),
            frame,
        }
    }

    /// Adds the passkeys.
    pub(crate) fn with_passkeys(self, passkeys: PasskeyList) -> Self {
        Self { passkeys, ..self }
    }

    /// Shows why a form was refused that the screen does not have.
    pub(crate) fn with_problem(self, problem: String) -> Self {
        Self { problem, ..self }
    }

    /// Shows why a change of the password was refused.
    pub(crate) fn with_faults(self, current_fault: String, password_fault: String) -> Self {
        Self { current_fault, password_fault, ..self }
    }
}

/// Tabs of the account: address, text, and true for the present one. Those who may not manage it see their own alone.
pub(super) fn tabs(frame: &Frame, current: &str) -> Vec<(&'static str, &'static str, bool)> {
    let all = [
        (KEYS, "API keys"),
        (SECURITY, "Sign-in and security"),
        (MEMBERS, "Members"),
        (AUDIT, "Audit log"),
        (PLAN, "Plan"),
        (SWITCH, "Accounts"),
    ];
    let may_see = |href: &str| match href {
        SECURITY => true,
        SWITCH => frame.accounts > 1,
        _ => frame.may_manage_account(),
    };
    all.into_iter().filter(|(href, _)| may_see(href)).map(|(href, text)| (href, text, href == current)).collect()
}

const fn access_text(access: KeyAccess) -> &'static str {
    match access {
        KeyAccess::Read => "Read",
        KeyAccess::Write => "Write",
    }
}

fn reach_text(frame: &Frame, key: &ApiKey) -> String {
    let Some(only) = key.page else { return "all pages".to_owned() };
    let page = frame.pages.iter().find(|page| page.id == only);
    page.map_or_else(|| "one page".to_owned(), |page| page.name.clone())
}
