//! Audit log of the account: who changed what, when, and from where.

use parallax_core::audit::{AuditAction, AuditActor, AuditEntry, AuditField, AuditItem, AuditSubject};
use parallax_core::time::Timestamp;
use parallax_template::template_file;

use super::account::{AUDIT, tabs};
use super::frame::Frame;
use super::words;
use crate::views::assets;
use crate::views::format::FormattedTime;

/// Objects of an entry that are shown at once; the others are folded.
const SHOWN_ITEMS: usize = 3;

/// The audit log.
#[template_file("dashboard/audit.html")]
#[derive(Debug, Clone)]
pub(crate) struct AuditScreen {
    frame: Frame,
    tabs: Vec<(&'static str, &'static str, bool)>,
    /// The filter that was chosen.
    chosen: AuditChoice,
    rows: Vec<AuditRow>,
    /// Address of the next part; none at the end.
    next: Option<String>,
}

/// Filter of the log, as chosen: names of a kind of object and of an action, and a text; each may be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AuditChoice {
    /// Name of the kind of object.
    pub subject: String,
    /// Name of the action.
    pub action: String,
    /// Text to look for.
    pub text: String,
}

/// An entry of the log.
#[derive(Debug, Clone)]
struct AuditRow {
    at: FormattedTime,
    author: AuthorWords,
    network: String,
    lines: Vec<AuditLine>,
    /// Further objects, folded.
    folded: Vec<AuditLine>,
    /// Number of objects that are not in the log.
    omitted: u32,
}

/// A changed object of an entry.
#[derive(Debug, Clone)]
struct AuditLine {
    text: String,
    name: String,
    /// Address of its screen; empty if it has none.
    href: String,
    fields: Vec<String>,
}

impl AuditScreen {
    /// Shows a part of the log.
    pub(crate) fn new(
        frame: Frame,
        chosen: AuditChoice,
        entries: impl IntoIterator<Item = AuditEntry>,
        next: Option<String>,
        now: Timestamp,
    ) -> Self {
        let rows = entries.into_iter().map(|entry| row(&entry, now)).collect();
        Self { tabs: tabs(&frame, AUDIT), chosen, rows, next, frame }
    }

    /// Kinds of objects to choose from: name, text, and true for the chosen one.
    fn subjects(&self) -> Vec<(&'static str, String, bool)> {
        AuditSubject::ALL.map(|it| (it.name(), sentence(it.name()), it.name() == self.chosen.subject)).to_vec()
    }

    /// Actions to choose from.
    fn actions(&self) -> Vec<(&'static str, String, bool)> {
        AuditAction::ALL.map(|it| (it.name(), sentence(it.name()), it.name() == self.chosen.action)).to_vec()
    }

    fn is_filtered(&self) -> bool {
        self.chosen != AuditChoice::default()
    }
}

/// The originator of an entry in words. Names are chosen by people, so the id tells two of one name apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AuthorWords {
    /// Name of the icon.
    pub icon: &'static str,
    /// The name.
    pub name: String,
    /// The kind.
    pub kind: &'static str,
    /// The id; empty if there is none.
    pub id: String,
}

impl AuthorWords {
    /// Words for an originator.
    pub(crate) fn of(actor: &AuditActor) -> Self {
        let (icon, name, kind, id) = match actor {
            AuditActor::Person { id, name } => ("user", name.to_string(), "person", id.to_string()),
            AuditActor::Key { id, name } => ("key", name.to_string(), "API key", id.to_string()),
            AuditActor::Operator => ("tool", "Operator".to_owned(), "of this installation", String::new()),
            AuditActor::Visitor => ("user", "Visitor".to_owned(), "not signed in", String::new()),
            AuditActor::Service => ("tool", "Parallax".to_owned(), "by itself", String::new()),
        };
        Self { icon, name, kind, id }
    }
}

/// The fields of an object in words.
pub(crate) fn field_words(AuditItem { action, fields, .. }: &AuditItem) -> Vec<String> {
    let shown = |value: &str| if value.is_empty() { "none".to_owned() } else { value.to_owned() };
    let words = |AuditField { name, values }: &AuditField| match (values, action) {
        (None, _) => format!("{name}: changed"),
        // They change nothing, so there is no value from before.
        (Some((_, value)), AuditAction::SignedIn | AuditAction::SignInFailed) => format!("{name}: {}", shown(value)),
        (Some((old, new)), _) => format!("{name}: {} → {}", shown(old), shown(new)),
    };
    fields.iter().map(words).collect()
}

/// The action and the kind of its object in words, before the object's name.
fn action_words(item: &AuditItem) -> String {
    let subject = item.subject.name();
    let subject = match item.subject {
        AuditSubject::Key => "API key",
        AuditSubject::AlertSettings => "alert settings of",
        AuditSubject::SignIn => "sign-in of",
        _ => subject,
    };
    let verb = match (item.action, item.subject) {
        (AuditAction::Created, AuditSubject::Member) => "Added",
        (AuditAction::Created, AuditSubject::Invitation) => "Sent",
        (AuditAction::Created, _) => "Created",
        (AuditAction::Changed, _) => "Changed",
        (AuditAction::Deleted, AuditSubject::Key | AuditSubject::Invitation) => "Revoked",
        (AuditAction::Deleted, AuditSubject::Member | AuditSubject::Subscriber) => "Removed",
        (AuditAction::Deleted, _) => "Deleted",
        (AuditAction::SignedIn, _) => return "Signed in:".to_owned(),
        (AuditAction::SignInFailed, _) => return "Sign-in failed:".to_owned(),
        (AuditAction::Exported, AuditSubject::Subscriber) => return "Exported the subscribers of".to_owned(),
        (AuditAction::Exported, AuditSubject::Account) => return "Exported the audit log of".to_owned(),
        (AuditAction::Exported, _) => "Exported",
        (AuditAction::Shown, _) => return format!("Was shown the secrets of {subject}"),
    };
    format!("{verb} {subject}")
}

fn row(entry: &AuditEntry, now: Timestamp) -> AuditRow {
    let mut lines: Vec<AuditLine> = entry.items.iter().map(line).collect();
    let folded = lines.split_off(lines.len().min(SHOWN_ITEMS));
    AuditRow {
        at: words::time(entry.at, now),
        author: AuthorWords::of(&entry.actor),
        network: entry.network.clone().unwrap_or_default(),
        lines,
        folded,
        omitted: entry.omitted,
    }
}

fn line(item: &AuditItem) -> AuditLine {
    AuditLine { text: action_words(item), name: item.name.clone(), href: address(item), fields: field_words(item) }
}

/// Address of an object's screen; empty for what has none or is deleted.
fn address(item: &AuditItem) -> String {
    if item.action == AuditAction::Deleted {
        return String::new();
    }
    let own = match item.subject {
        AuditSubject::Key => "/app/account/keys",
        AuditSubject::Member | AuditSubject::Invitation => "/app/account/members",
        AuditSubject::CompanySignIn => "/app/account/company",
        _ => "",
    };
    let Some(page) = item.page else { return own.to_owned() };
    let id = &item.id;
    match item.subject {
        AuditSubject::Page => format!("/app/pages/{page}"),
        AuditSubject::Monitor => format!("/app/pages/{page}/monitors/{id}"),
        AuditSubject::Incident | AuditSubject::Maintenance => format!("/app/pages/{page}/incidents/{id}"),
        AuditSubject::Series => format!("/app/pages/{page}/incidents?kind=maintenance"),
        AuditSubject::Deploy => format!("/app/pages/{page}/deploys"),
        AuditSubject::Destination => format!("/app/pages/{page}/destinations/{id}"),
        AuditSubject::AlertSettings => format!("/app/pages/{page}/alerts"),
        AuditSubject::Subscriber => format!("/app/pages/{page}/subscribers"),
        AuditSubject::Account
        | AuditSubject::Key
        | AuditSubject::Member
        | AuditSubject::Invitation
        | AuditSubject::SignIn
        | AuditSubject::CompanySignIn => own.to_owned(),
    }
}

/// A name with a capital letter.
fn sentence(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use parallax_core::audit::MAX_ITEMS;
    use parallax_core::id::{AccountId, PageId};
    use parallax_core::role::Role;

    use super::super::frame::Section;
    use super::super::render;
    use super::super::tests::frame;
    use super::*;

    fn item(action: AuditAction, subject: AuditSubject) -> AuditItem {
        let page = Some(PageId::from_u128(1));
        AuditItem { action, subject, id: "x_1".to_owned(), name: "Website".to_owned(), page, fields: Vec::new() }
    }

    #[test]
    fn each_change_is_a_sentence() {
        use AuditAction::{Changed, Created, Deleted, Exported, Shown, SignInFailed};
        use AuditSubject::{Destination, Invitation, Key, Member, Monitor, SignIn, Subscriber};
        for (action, subject, expected) in [
            (Created, Monitor, "Created monitor"),
            (Changed, Monitor, "Changed monitor"),
            (Deleted, Key, "Revoked API key"),
            (Created, Invitation, "Sent invitation"),
            (Deleted, Member, "Removed member"),
            (Exported, Subscriber, "Exported the subscribers of"),
            (SignInFailed, SignIn, "Sign-in failed:"),
            (Shown, Destination, "Was shown the secrets of destination"),
        ] {
            assert_eq!(action_words(&item(action, subject)), expected);
        }
    }

    #[test]
    fn a_secret_has_no_values_and_an_empty_value_is_none() {
        let words = |action, name: &str, values: Option<(&str, &str)>| {
            let values = values.map(|(old, new)| (old.to_owned(), new.to_owned()));
            let fields = vec![AuditField { name: name.to_owned(), values }];
            field_words(&AuditItem { fields, ..item(action, AuditSubject::Monitor) }).concat()
        };
        assert_eq!(words(AuditAction::Changed, "Group", None), "Group: changed");
        assert_eq!(words(AuditAction::Changed, "Group", Some(("", "Shop"))), "Group: none → Shop");
        // The action decides, not the name of the field.
        assert_eq!(words(AuditAction::Changed, "Reason", Some(("a", "b"))), "Reason: a → b");
        for action in [AuditAction::SignedIn, AuditAction::SignInFailed] {
            assert_eq!(words(action, "Way", Some(("", "company sign-in"))), "Way: company sign-in");
        }
    }

    #[test]
    fn what_is_deleted_has_no_address() {
        let page = PageId::from_u128(1);
        assert_eq!(address(&item(AuditAction::Deleted, AuditSubject::Monitor)), "");
        let monitor = address(&item(AuditAction::Changed, AuditSubject::Monitor));
        assert_eq!(monitor, format!("/app/pages/{page}/monitors/x_1"));
        assert_eq!(address(&item(AuditAction::Changed, AuditSubject::Key)), "/app/account/keys");
    }

    #[test]
    fn an_entry_with_many_objects_folds_them_and_counts_those_that_are_not_logged() {
        let now = Timestamp::from_millis(0);
        let page = |count: usize| {
            let items = vec![item(AuditAction::Changed, AuditSubject::Monitor); count];
            let entry = AuditEntry::new(AccountId::from_u128(1), now, (AuditActor::Operator, None), items);
            let frame = frame(Role::Owner, Section::Account, "");
            let screen = render(&AuditScreen::new(frame, AuditChoice::default(), [entry], None, now)).unwrap();
            screen.split_once("<ul class=\"changes\">").unwrap().1.split_once("</table>").unwrap().0.to_owned()
        };
        let all = page(MAX_ITEMS + 7);
        assert!(all.contains("<summary>47 more</summary>") && all.contains("<small>and 7 more</small>"), "{all}");
        let few = page(SHOWN_ITEMS);
        assert!(!few.contains("<summary>") && !few.contains("more</small>"), "{few}");
    }
}
