//! HTML reference of the API: one page, built from the OpenAPI document.

use askama::Template;

use super::assets;
use super::markdown::Markup;

/// The API reference.
#[derive(Debug, Default)]
pub struct Reference {
    /// URL of the service, without a trailing slash.
    pub base: String,
    /// Version of the API.
    pub version: String,
    /// Introduction.
    pub about: Markup,
    /// Operations by resource.
    pub groups: Vec<Group>,
    /// Objects in responses and request bodies, by name.
    pub objects: Vec<Object>,
    /// Webhooks.
    pub webhooks: Vec<Hook>,
    /// Errors by status.
    pub refusals: Vec<Refusal>,
    /// Plans, smallest first.
    pub plans: Vec<Plan>,
    /// Requests per minute and key.
    pub requests: u32,
    /// MCP tools for API keys, by name.
    pub tools: Vec<Tool>,
    /// MCP tools of a public page, by name.
    pub public_tools: Vec<Tool>,
    /// Code samples that verify a webhook, by language.
    pub samples: Vec<Sample>,
    /// Secret that signs the webhook examples.
    pub secret: &'static str,
    /// Legacy names with their new names.
    pub old_names: Vec<(String, String)>,
}

/// The operations of a resource.
#[derive(Debug, Default)]
pub struct Group {
    /// Name of the resource.
    pub name: String,
    /// Description.
    pub about: String,
    /// Operations.
    pub operations: Vec<Operation>,
}

/// An operation.
#[derive(Debug, Default)]
pub struct Operation {
    /// Operation id, also its anchor on the page.
    pub id: String,
    /// HTTP method.
    pub method: String,
    /// Path below the API's base URL.
    pub path: String,
    /// Short title.
    pub summary: String,
    /// Description.
    pub about: Markup,
    /// True if a read-only key can't use it.
    pub writes: bool,
    /// Parameters in path, query and headers.
    pub parameters: Vec<Row>,
    /// Fields of the request body; empty without a body.
    pub body: Vec<Row>,
    /// Status of the response.
    pub status: String,
    /// Description of the response.
    pub answer: String,
    /// Fields of the response; empty without a body.
    pub fields: Vec<Row>,
    /// Example response as JSON; empty without a body.
    pub example: String,
    /// Errors: status and code.
    pub refusals: Vec<(String, String)>,
    /// Request as a curl command.
    pub curl: String,
}

/// A parameter or a field.
#[derive(Debug, Default)]
pub struct Row {
    /// Name.
    pub name: String,
    /// Location: path, query or header; empty for a field.
    pub place: &'static str,
    /// Type as text.
    pub kind: String,
    /// Anchor of the object that it is or contains; empty if it is none.
    pub link: String,
    /// True if required.
    pub required: bool,
    /// Allowed values.
    pub words: Vec<String>,
    /// Limits as text; empty if it has none.
    pub bounds: String,
    /// Description.
    pub about: Markup,
}

/// An object in responses and request bodies.
#[derive(Debug, Default)]
pub struct Object {
    /// Name.
    pub name: String,
    /// Description.
    pub about: Markup,
    /// Fields.
    pub fields: Vec<Row>,
    /// Example as JSON.
    pub example: String,
}

/// A webhook.
#[derive(Debug, Default)]
pub struct Hook {
    /// Name, also its anchor on the page.
    pub id: String,
    /// Short title.
    pub summary: String,
    /// Description.
    pub about: Markup,
    /// Headers, each with an example.
    pub headers: Vec<Row>,
    /// Fields of the body.
    pub fields: Vec<Row>,
}

/// An error of the API.
#[derive(Debug, Default)]
pub struct Refusal {
    /// Status.
    pub status: String,
    /// Error codes.
    pub codes: Vec<String>,
    /// Cause.
    pub about: String,
}

/// Limits and features of a plan.
#[derive(Debug, Default)]
pub struct Plan {
    /// Name.
    pub name: String,
    /// Maximum number of monitors, not counting those of type component.
    pub monitors: u32,
    /// Maximum number of pages.
    pub pages: usize,
    /// Check interval in seconds.
    pub interval: u32,
    /// True if alerts by webhook and chat are included.
    pub webhooks: bool,
    /// True if region settings and thresholds are included.
    pub regions: bool,
    /// True if component monitors are included.
    pub components: bool,
}

/// An MCP tool.
#[derive(Debug, Default)]
pub struct Tool {
    /// Name.
    pub name: String,
    /// Short title.
    pub title: String,
    /// True if it makes changes.
    pub writes: bool,
}

/// A code sample.
#[derive(Debug)]
pub struct Sample {
    /// Language.
    pub language: &'static str,
    /// Code.
    pub code: &'static str,
}

/// Code samples that verify the two signatures of a webhook.
pub const SAMPLES: [Sample; 5] = [
    Sample { language: "Python", code: include_str!("../../templates/reference/verify/verify.py") },
    Sample { language: "JavaScript", code: include_str!("../../templates/reference/verify/verify.mjs") },
    Sample { language: "Go", code: include_str!("../../templates/reference/verify/verify.go") },
    Sample { language: "PHP", code: include_str!("../../templates/reference/verify/verify.php") },
    Sample { language: "Ruby", code: include_str!("../../templates/reference/verify/verify.rb") },
];

/// The HTML document.
#[derive(Template)]
#[template(path = "reference/page.html")]
struct Page<'a> {
    it: &'a Reference,
}

impl Reference {
    /// Renders the document as HTML.
    ///
    /// # Errors
    /// If the template fails, which it doesn't.
    pub fn html(&self) -> Result<Vec<u8>, super::Unprintable> {
        super::print(&Page { it: self })
    }
}
