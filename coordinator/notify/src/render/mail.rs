//! Mail rendering: one content as plain text and HTML, and the unsubscribe footer.

use askama::Template;
use parallax_core::delivery::MailMessage;
use parallax_core::evidence_link::EVIDENCE_LIFE;
use parallax_core::locale::fill;
use parallax_core::page::Page;
use parallax_core::page::branding::Language;
use parallax_core::time::DAY;
use parallax_i18n::mail_messages;
use parallax_template::template_file;

use super::alert_text::{AlertSeverity, AlertText};
use super::{Alert, text};

/// Maximum length of a subject in UTF-16 units.
const MAX_SUBJECT: usize = 200;
/// Text of the link that stops alerts to a mailbox.
const STOP_LINK_TEXT: &str = "Stop these alerts";
/// Text of the link to the page with the evidence.
const EVIDENCE_LINK_TEXT: &str = "See the evidence without signing in (for 7 days)";
const _: () = assert!(EVIDENCE_LIFE == 7 * DAY, "the text states it");
/// Placeholder in the HTML for the footer of each recipient. Nothing else in the content can produce a
/// comment.
const FOOTER_PLACEHOLDER: &str = "<!--footer-->";

/// Content of a mail before layout. Texts are plain; the HTML template escapes them.
#[derive(Debug, Clone, Default)]
pub(super) struct MailContent {
    /// Language.
    pub(super) language: Language,
    /// Heading, and the subject unless `subject` is set.
    pub(super) title: String,
    /// Subject, if all mails of a thread share one.
    pub(super) subject: Option<String>,
    /// Color of the heading.
    pub(super) heading_color: HeadingColor,
    /// Paragraphs.
    pub(super) paragraphs: Vec<String>,
    /// Labelled facts.
    pub(super) facts: Vec<(&'static str, String)>,
    /// Heading of the list.
    pub(super) list_title: &'static str,
    /// The list.
    pub(super) list: Vec<String>,
    /// Longer text in its source form and as sanitized HTML.
    pub(super) body: Option<MailBody>,
    /// Links: text and URL.
    pub(super) links: Vec<(String, String)>,
    /// Small print.
    pub(super) footer: Vec<String>,
}

/// Longer text.
#[derive(Debug, Clone)]
pub(super) struct MailBody {
    /// Source form.
    pub(super) text: String,
    /// Sanitized HTML.
    pub(super) html: String,
}

/// Color of a heading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum HeadingColor {
    /// Neutral.
    #[default]
    Neutral,
    /// Something is down.
    Critical,
    /// Something needs attention.
    Warning,
    /// Something is resolved.
    Resolved,
}

impl HeadingColor {
    const fn hex(self) -> &'static str {
        match self {
            Self::Neutral => "#3b5bdb",
            Self::Critical => "#c62828",
            Self::Warning => "#b26a00",
            Self::Resolved => "#2e7d32",
        }
    }
}

#[template_file("mail.html")]
struct Html<'a> {
    content: &'a MailContent,
}

#[derive(Template)]
#[template(path = "mail.txt", escape = "none")]
struct Text<'a> {
    content: &'a MailContent,
}

#[template_file("footer.html")]
struct Footer<'a> {
    subscribed: &'a str,
    unsubscribe: &'a str,
    url: &'a str,
}

impl MailContent {
    /// Formats a labelled fact as plain text.
    fn fact(&self, label: &str, value: &str) -> String {
        fill(mail_messages::messages(self.language).fact, &[label, value])
    }

    /// Renders the mail.
    pub(super) fn render(&self) -> MailMessage {
        // Rendering to memory does not fail.
        MailMessage {
            subject: text::single_line(self.subject.as_ref().unwrap_or(&self.title), MAX_SUBJECT),
            text: Text { content: self }.render().unwrap_or_default(),
            html: Html { content: self }.render().unwrap_or_default(),
        }
    }
}

/// Renders the mail of an alert.
pub(super) fn alert_mail(alert: &Alert<'_>) -> MailMessage {
    let alert_text = AlertText::for_alert(alert);
    let evidence_link = alert_text.evidence_url.map(|url| (EVIDENCE_LINK_TEXT.to_owned(), url));
    let page_link = ("Open the status page".to_owned(), alert_text.page_url);
    MailContent {
        title: alert_text.headline,
        heading_color: match alert_text.severity {
            AlertSeverity::Critical => HeadingColor::Critical,
            AlertSeverity::Warning => HeadingColor::Warning,
            AlertSeverity::Resolved => HeadingColor::Resolved,
        },
        facts: alert_text.facts,
        list_title: "Check results",
        list: alert_text.evidence,
        links: evidence_link.into_iter().chain([page_link]).collect(),
        footer: vec![format!("You received this email because this address receives alerts for {}.", alert_text.page)],
        ..MailContent::default()
    }
    .render()
}

/// Adds a subscriber's one-click unsubscribe link to an update.
pub(crate) fn with_unsubscribe(mail: &MailMessage, page: &Page, url: &str) -> MailMessage {
    let messages = mail_messages::messages(page.language);
    let subscribed = fill(messages.subscribed, &[&text::single_line(&page.name, MAX_SUBJECT)]);
    let unsubscribe_line = fill(messages.fact, &[messages.unsubscribe, url]);
    let footer = Footer { subscribed: &subscribed, unsubscribe: messages.unsubscribe, url };
    with_footer(mail, &footer, &format!("{subscribed}\n{unsubscribe_line}"))
}

/// Adds the stop link to an alert that goes to a mailbox other than the owner's.
pub(crate) fn with_stop(mail: &MailMessage, url: &str) -> MailMessage {
    let footer = Footer { subscribed: "", unsubscribe: STOP_LINK_TEXT, url };
    with_footer(mail, &footer, &format!("{STOP_LINK_TEXT}: {url}"))
}

/// Adds a recipient's footer to a mail.
fn with_footer(mail: &MailMessage, footer: &Footer<'_>, text: &str) -> MailMessage {
    let footer = footer.render().unwrap_or_default();
    let html = match mail.html.rfind(FOOTER_PLACEHOLDER) {
        Some(at) => {
            let (before, after) = mail.html.split_at(at);
            format!("{before}{footer}{}", after.strip_prefix(FOOTER_PLACEHOLDER).unwrap_or(after))
        }
        None => format!("{}{footer}", mail.html),
    };
    let text = format!("{}\n\n{text}\n", mail.text.trim_end());
    MailMessage { subject: mail.subject.clone(), text, html }
}
