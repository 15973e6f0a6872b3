//! Mails to people who sign in to the dashboard, or are invited to: invitations, and links for a new password.

use parallax_core::delivery::MailMessage;
use parallax_core::role::Role;

use super::mail::MailContent;
use super::text;

/// Maximum length of an address in UTF-16 units.
const MAX_ADDRESS: usize = 300;

/// Renders an invitation to an account. `inviter` and `account` are email addresses: no text that the inviter chose
/// reaches a stranger. Opening the link shows a form and does nothing else.
pub fn member_invitation(base_url: &str, (inviter, account): (&str, &str), role: Role, link: &str) -> MailMessage {
    let [url, inviter, account] = [base_url, inviter, account].map(|it| text::single_line(it, MAX_ADDRESS));
    let may = match role {
        Role::Owner => "see and change everything",
        Role::Editor => "see everything, and change monitors, incidents and maintenance",
        Role::Viewer => "see everything, and change nothing",
    };
    MailContent {
        title: "You are invited to Parallax".to_owned(),
        paragraphs: vec![
            format!("{inviter} invites you to the account {account} on {url}."),
            format!("As {} you may {may}.", role.name()),
            "The link works once, for 7 days.".to_owned(),
        ],
        links: vec![("See the invitation".to_owned(), link.to_owned())],
        footer: vec!["If you don't expect this, ignore this mail. Nothing happens until the link is used.".to_owned()],
        ..MailContent::default()
    }
    .render()
}

/// Renders the mail with a link that lets a person choose a new password.
pub fn password_reset(base_url: &str, link: &str) -> MailMessage {
    let url = text::single_line(base_url, MAX_ADDRESS);
    MailContent {
        title: "Choose a new password for Parallax".to_owned(),
        paragraphs: vec![
            format!("Someone asked for a new password for {url} with this email address."),
            "The link works once, for an hour, in any browser. A new password signs you out everywhere.".to_owned(),
        ],
        links: vec![("Choose a new password".to_owned(), link.to_owned())],
        footer: vec!["If it was not you, ignore this mail. Your password stays as it is.".to_owned()],
        ..MailContent::default()
    }
    .render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mails_have_their_link_and_no_markup_from_addresses() {
        let link = "https://status.example/invite/abc";
        for role in Role::ALL {
            let mail = member_invitation(
                "https://status.example",
                ("<b>ann</b>@example.com", "bob@example.com\nBcc: eve@example.com"),
                role,
                link,
            );
            assert!(mail.text.contains(link) && mail.text.contains(role.name()), "{}", mail.text);
            assert!(!mail.html.contains("<b>ann") && mail.text.contains("bob@example.com Bcc:"), "{}", mail.text);
        }
        let mail = password_reset("https://status.example", "https://status.example/reset/abc");
        assert!(mail.text.contains("https://status.example/reset/abc"), "{}", mail.text);
    }
}
