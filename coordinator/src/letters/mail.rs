//! Mail rendering: one content as plain text and HTML, and the unsubscribe footer.

use askama::Template;
use parallax_core::delivery::Mail;
use parallax_core::page::Page;
use parallax_core::page::look::Language;
use parallax_core::tongue::fill;

use super::words::{Grade, Story};
use super::{News, text, tongue};

/// Maximum length of a subject in UTF-16 units.
const MAX_SUBJECT: usize = 200;
/// Text of the link that stops alerts to a mailbox.
const STOP: &str = "Stop these alerts";
/// Placeholder in the HTML for the footer of each recipient. Nothing else in the content can produce a
/// comment.
const FOOTER: &str = "<!--footer-->";

/// Content of a mail before layout. Texts are plain; the HTML template escapes them.
#[derive(Debug, Clone, Default)]
pub(super) struct Sheet {
    /// Language.
    pub(super) language: Language,
    /// Heading, and the subject unless `subject` is set.
    pub(super) title: String,
    /// Subject, if all mails of a thread share one.
    pub(super) subject: Option<String>,
    /// Color of the heading.
    pub(super) mood: Mood,
    /// Paragraphs.
    pub(super) lead: Vec<String>,
    /// Labelled facts.
    pub(super) facts: Vec<(&'static str, String)>,
    /// Heading of the list.
    pub(super) list_title: &'static str,
    /// The list.
    pub(super) list: Vec<String>,
    /// Longer text in its source form and as sanitized HTML.
    pub(super) body: Option<Body>,
    /// Link text and URL.
    pub(super) link: Option<(String, String)>,
    /// Small print.
    pub(super) footer: Vec<String>,
}

/// Longer text.
#[derive(Debug, Clone)]
pub(super) struct Body {
    /// Source form.
    pub(super) text: String,
    /// Sanitized HTML.
    pub(super) html: String,
}

/// Color of a heading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Mood {
    /// Neutral.
    #[default]
    Plain,
    /// Something is down.
    Bad,
    /// Something needs attention.
    Warning,
    /// Something is resolved.
    Good,
}

impl Mood {
    const fn colour(self) -> &'static str {
        match self {
            Self::Plain => "#3b5bdb",
            Self::Bad => "#c62828",
            Self::Warning => "#b26a00",
            Self::Good => "#2e7d32",
        }
    }
}

#[derive(Template)]
#[template(path = "letters/mail.html")]
struct Html<'a> {
    sheet: &'a Sheet,
}

#[derive(Template)]
#[template(path = "letters/mail.txt", escape = "none")]
struct Text<'a> {
    sheet: &'a Sheet,
}

#[derive(Template)]
#[template(path = "letters/footer.html")]
struct Footer<'a> {
    subscribed: &'a str,
    unsubscribe: &'a str,
    url: &'a str,
}

impl Sheet {
    /// Formats a labelled fact as plain text.
    fn fact(&self, label: &str, value: &str) -> String {
        fill(tongue::words(self.language).fact, &[label, value])
    }

    /// Renders the mail.
    pub(super) fn mail(&self) -> Mail {
        // Rendering to memory does not fail.
        Mail {
            subject: text::line(self.subject.as_ref().unwrap_or(&self.title), MAX_SUBJECT),
            text: Text { sheet: self }.render().unwrap_or_default(),
            html: Html { sheet: self }.render().unwrap_or_default(),
        }
    }
}

/// Renders the mail of an alert.
pub(super) fn alert(news: &News<'_>) -> Mail {
    let story = Story::tell(news);
    Sheet {
        title: story.headline,
        mood: match story.grade {
            Grade::Bad => Mood::Bad,
            Grade::Poor => Mood::Warning,
            Grade::Good => Mood::Good,
        },
        facts: story.facts,
        list_title: "Check results",
        list: story.evidence,
        link: Some(("Open the status page".to_owned(), story.page_url)),
        footer: vec![format!(
            "You received this email because this address receives alerts for {}.",
            story.page
        )],
        ..Sheet::default()
    }
    .mail()
}

/// Adds a subscriber's one-click unsubscribe link to an update.
pub fn with_unsubscribe(mail: &Mail, page: &Page, url: &str) -> Mail {
    let words = tongue::words(page.language);
    let subscribed = fill(words.subscribed, &[&text::line(&page.name, MAX_SUBJECT)]);
    let way_out = fill(words.fact, &[words.unsubscribe, url]);
    let footer = Footer { subscribed: &subscribed, unsubscribe: words.unsubscribe, url };
    with_footer(mail, &footer, &format!("{subscribed}\n{way_out}"))
}

/// Adds the stop link to an alert that goes to a mailbox other than the owner's.
pub fn with_stop(mail: &Mail, url: &str) -> Mail {
    let footer = Footer { subscribed: "", unsubscribe: STOP, url };
    with_footer(mail, &footer, &format!("{STOP}: {url}"))
}

/// Adds a recipient's footer to a mail.
fn with_footer(mail: &Mail, footer: &Footer<'_>, text: &str) -> Mail {
    let footer = footer.render().unwrap_or_default();
    let html = match mail.html.rfind(FOOTER) {
        Some(at) => {
            let (before, after) = mail.html.split_at(at);
            format!("{before}{footer}{}", after.strip_prefix(FOOTER).unwrap_or(after))
        }
        None => format!("{}{footer}", mail.html),
    };
    let text = format!("{}\n\n{text}\n", mail.text.trim_end());
    Mail { subject: mail.subject.clone(), text, html }
}
