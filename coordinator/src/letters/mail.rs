//! Mails: one sheet of words, as plain text and as HTML, and the line that a subscriber leaves by.

use askama::Template;
use parallax_core::delivery::Mail;
use parallax_core::page::Page;
use parallax_core::page::look::Language;
use parallax_core::tongue::fill;

use super::words::{Grade, Story};
use super::{News, text, tongue};

/// UTF-16 units of a subject at most.
const MAX_SUBJECT: usize = 200;
/// Words of the link that ends alerts to a mailbox.
const STOP: &str = "Stop these alerts";
/// Where a sheet's HTML takes what is added for each receiver. Nothing else in a sheet can write a comment.
const FOOTER: &str = "<!--footer-->";

/// What a mail says, before it is laid out. Texts are plain: HTML escapes them.
#[derive(Debug, Clone, Default)]
pub(super) struct Sheet {
    /// The language that it is in.
    pub(super) language: Language,
    /// The heading, and the subject where that is no other.
    pub(super) title: String,
    /// The subject, where all mails of one thing have the same.
    pub(super) subject: Option<String>,
    /// The colour of the heading.
    pub(super) mood: Mood,
    /// Paragraphs.
    pub(super) lead: Vec<String>,
    /// What is known, each with its label.
    pub(super) facts: Vec<(&'static str, String)>,
    /// Heading of the list.
    pub(super) list_title: &'static str,
    /// The list.
    pub(super) list: Vec<String>,
    /// A longer text as it was written, and the same as HTML that holds nothing harmful.
    pub(super) body: Option<Body>,
    /// A link, with what it says.
    pub(super) link: Option<(String, String)>,
    /// Small print.
    pub(super) footer: Vec<String>,
}

/// A longer text.
#[derive(Debug, Clone)]
pub(super) struct Body {
    /// As it was written.
    pub(super) text: String,
    /// As HTML, sanitised.
    pub(super) html: String,
}

/// The colour of a heading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Mood {
    /// Neither.
    #[default]
    Plain,
    /// Something is down.
    Bad,
    /// Something needs a look.
    Warning,
    /// Something is over.
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
    /// Something with its label, as plain text.
    fn fact(&self, label: &str, value: &str) -> String {
        fill(tongue::words(self.language).fact, &[label, value])
    }

    /// The finished mail.
    pub(super) fn mail(&self) -> Mail {
        // Writing to memory does not fail.
        Mail {
            subject: text::line(self.subject.as_ref().unwrap_or(&self.title), MAX_SUBJECT),
            text: Text { sheet: self }.render().unwrap_or_default(),
            html: Html { sheet: self }.render().unwrap_or_default(),
        }
    }
}

/// The mail that tells of an alert.
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
        list_title: "What was seen",
        list: story.evidence,
        link: Some(("Open the status page".to_owned(), story.page_url)),
        footer: vec![format!(
            "You get this because this address is a destination of the alerts of {}.",
            story.page
        )],
        ..Sheet::default()
    }
    .mail()
}

/// A page's news as one subscriber gets it: with the link that ends it, which asks for nothing but a click.
pub fn with_unsubscribe(mail: &Mail, page: &Page, url: &str) -> Mail {
    let words = tongue::words(page.language);
    let subscribed = fill(words.subscribed, &[&text::line(&page.name, MAX_SUBJECT)]);
    let way_out = fill(words.fact, &[words.unsubscribe, url]);
    let footer = Footer { subscribed: &subscribed, unsubscribe: words.unsubscribe, url };
    with_footer(mail, &footer, &format!("{subscribed}\n{way_out}"))
}

/// An alert as another mailbox than the owner's gets it: with the link by which its reader ends them.
pub fn with_stop(mail: &Mail, url: &str) -> Mail {
    let footer = Footer { subscribed: "", unsubscribe: STOP, url };
    with_footer(mail, &footer, &format!("{STOP}: {url}"))
}

/// A mail with what is added for its receiver.
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
