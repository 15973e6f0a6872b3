//! The reference of the API for people: one page, made of values that its maker read out of the API's description.

use askama::Template;

use super::assets;
use super::markdown::Markup;

/// The reference.
#[derive(Debug, Default)]
pub struct Reference {
    /// The service's address, without a trailing slash.
    pub base: String,
    /// Version of the description.
    pub version: String,
    /// The description's introduction.
    pub about: Markup,
    /// Operations by resource, in their order.
    pub groups: Vec<Group>,
    /// Objects that answers and bodies hold, by name.
    pub objects: Vec<Object>,
    /// Webhooks, in their order.
    pub webhooks: Vec<Hook>,
    /// Refusals, by status.
    pub refusals: Vec<Refusal>,
    /// Plans, smallest first.
    pub plans: Vec<Plan>,
    /// Requests that a key may make in a minute.
    pub requests: u32,
    /// Tools of a key, by name.
    pub tools: Vec<Tool>,
    /// Tools beside a public page, by name.
    pub public_tools: Vec<Tool>,
    /// How a receiver checks a webhook, by language.
    pub samples: Vec<Sample>,
    /// The secret that the webhooks' examples are signed with.
    pub secret: &'static str,
    /// Old names, each with its new one.
    pub old_names: Vec<(String, String)>,
}

/// The operations of a resource.
#[derive(Debug, Default)]
pub struct Group {
    /// Name of the resource.
    pub name: String,
    /// A description.
    pub about: String,
    /// Its operations.
    pub operations: Vec<Operation>,
}

/// One operation.
#[derive(Debug, Default)]
pub struct Operation {
    /// Its name, which is its place on the page.
    pub id: String,
    /// Method in capitals.
    pub method: String,
    /// Path below the API's address.
    pub path: String,
    /// A short title.
    pub summary: String,
    /// A description.
    pub about: Markup,
    /// A key that may only read can't do it.
    pub writes: bool,
    /// Parameters of path, query and header.
    pub parameters: Vec<Row>,
    /// Fields of the body; empty where it takes none.
    pub body: Vec<Row>,
    /// Status of its answer.
    pub status: String,
    /// Description of the answer.
    pub answer: String,
    /// Fields of the answer; empty where it has no body.
    pub fields: Vec<Row>,
    /// An answer, as JSON; empty where it has no body.
    pub example: String,
    /// Refusals: status and name.
    pub refusals: Vec<(String, String)>,
    /// The request as a command line.
    pub curl: String,
}

/// A parameter or a field.
#[derive(Debug, Default)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Where it stands: in a path, query or header; empty for a field.
    pub place: &'static str,
    /// Its type in words.
    pub kind: String,
    /// The object that it is or holds, as a place on the page; empty where it is none.
    pub link: String,
    /// It has to be there.
    pub required: bool,
    /// Words that it is one of.
    pub words: Vec<String>,
    /// Its bounds in words; empty where it has none.
    pub bounds: String,
    /// Its meaning.
    pub about: Markup,
}

/// An object that answers and bodies hold.
#[derive(Debug, Default)]
pub struct Object {
    /// Its name.
    pub name: String,
    /// A description.
    pub about: Markup,
    /// Its fields.
    pub fields: Vec<Row>,
    /// One, as JSON.
    pub example: String,
}

/// A webhook.
#[derive(Debug, Default)]
pub struct Hook {
    /// Its name, which is its place on the page.
    pub id: String,
    /// A short title.
    pub summary: String,
    /// A description.
    pub about: Markup,
    /// Its headers, each with an example in its bounds.
    pub headers: Vec<Row>,
    /// Fields of its body.
    pub fields: Vec<Row>,
}

/// A refusal.
#[derive(Debug, Default)]
pub struct Refusal {
    /// Its status.
    pub status: String,
    /// Its codes.
    pub codes: Vec<String>,
    /// When it comes.
    pub about: String,
}

/// Caps and features of a plan.
#[derive(Debug, Default)]
pub struct Plan {
    /// Its name.
    pub name: String,
    /// Monitors, those of type component not counted.
    pub monitors: u32,
    /// Pages.
    pub pages: usize,
    /// Seconds between two checks in a region.
    pub interval: u32,
    /// Webhooks and chats take alerts.
    pub webhooks: bool,
    /// Regions and their thresholds are used.
    pub regions: bool,
    /// Monitors may follow a vendor's status page.
    pub components: bool,
}

/// A tool for agents.
#[derive(Debug, Default)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// A short title.
    pub title: String,
    /// It changes something.
    pub writes: bool,
}

/// A piece of code.
#[derive(Debug)]
pub struct Sample {
    /// Its language.
    pub language: &'static str,
    /// The code.
    pub code: &'static str,
}

/// The samples of a receiver: each checks the two signatures of a webhook.
pub const SAMPLES: [Sample; 5] = [
    Sample { language: "Python", code: include_str!("../../templates/reference/verify/verify.py") },
    Sample { language: "JavaScript", code: include_str!("../../templates/reference/verify/verify.mjs") },
    Sample { language: "Go", code: include_str!("../../templates/reference/verify/verify.go") },
    Sample { language: "PHP", code: include_str!("../../templates/reference/verify/verify.php") },
    Sample { language: "Ruby", code: include_str!("../../templates/reference/verify/verify.rb") },
];

/// The document.
#[derive(Template)]
#[template(path = "reference/page.html")]
struct Page<'a> {
    it: &'a Reference,
}

impl Reference {
    /// The document as HTML.
    ///
    /// # Errors
    /// Where its template gives up, which it does not.
    pub fn html(&self) -> Result<Vec<u8>, super::Unprintable> {
        super::print(&Page { it: self })
    }
}
