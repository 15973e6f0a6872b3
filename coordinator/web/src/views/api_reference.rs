//! HTML reference of the API: one page, built from the OpenAPI document.

use parallax_markdown::Markup;
use parallax_template::template_file;

use super::assets;

/// The API reference.
#[derive(Debug, Default)]
pub(crate) struct ApiReference {
    /// URL of the service, without a trailing slash.
    pub base: String,
    /// Version of the API.
    pub version: String,
    /// Introduction.
    pub about: Markup,
    /// Operations by resource.
    pub groups: Vec<ReferenceGroup>,
    /// Objects in responses and request bodies, by name.
    pub objects: Vec<ReferenceObject>,
    /// Webhooks.
    pub webhooks: Vec<ReferenceWebhook>,
    /// Errors by status.
    pub errors: Vec<ReferenceError>,
    /// Plans, smallest first.
    pub plans: Vec<ReferencePlan>,
    /// Requests per minute and key.
    pub requests: u32,
    /// MCP tools for API keys, by name.
    pub tools: Vec<ReferenceTool>,
    /// MCP tools of a public page, by name.
    pub public_tools: Vec<ReferenceTool>,
    /// Code samples that verify a webhook, by language.
    pub samples: Vec<CodeSample>,
    /// Legacy names with their new names.
    pub old_names: Vec<(String, String)>,
}

/// The operations of a resource.
#[derive(Debug, Default)]
pub(crate) struct ReferenceGroup {
    /// Name of the resource.
    pub name: String,
    /// Description.
    pub about: String,
    /// Operations.
    pub operations: Vec<ReferenceOperation>,
}

/// An operation.
#[derive(Debug, Default)]
pub(crate) struct ReferenceOperation {
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
    pub parameters: Vec<ReferenceRow>,
    /// Fields of the request body; empty without a body.
    pub body: Vec<ReferenceRow>,
    /// Status of the response.
    pub status: String,
    /// Description of the response.
    pub response: String,
    /// Fields of the response; empty without a body.
    pub fields: Vec<ReferenceRow>,
    /// Example response as JSON; empty without a body.
    pub example: String,
    /// Errors: status and code.
    pub errors: Vec<(String, String)>,
    /// Request as a curl command.
    pub curl: String,
}

/// A parameter or a field.
#[derive(Debug, Default)]
pub(crate) struct ReferenceRow {
    /// Name.
    pub name: String,
    /// Location: path, query or header; empty for a field.
    pub location: &'static str,
    /// Type as text.
    pub kind: String,
    /// Anchor of the object that it is or contains; empty if it is none.
    pub link: String,
    /// True if required.
    pub required: bool,
    /// Allowed values.
    pub allowed_values: Vec<String>,
    /// Limits as text; empty if it has none.
    pub limits: String,
    /// Description.
    pub about: Markup,
}

/// An object in responses and request bodies.
#[derive(Debug, Default)]
pub(crate) struct ReferenceObject {
    /// Name.
    pub name: String,
    /// Description.
    pub about: Markup,
    /// Fields.
    pub fields: Vec<ReferenceRow>,
    /// Example as JSON.
    pub example: String,
}

/// A webhook.
#[derive(Debug, Default)]
pub(crate) struct ReferenceWebhook {
    /// Name, also its anchor on the page.
    pub id: String,
    /// Short title.
    pub summary: String,
    /// Description.
    pub about: Markup,
    /// Headers, each with an example.
    pub headers: Vec<ReferenceRow>,
    /// Fields of the body.
    pub fields: Vec<ReferenceRow>,
}

/// An error of the API.
#[derive(Debug, Default)]
pub(crate) struct ReferenceError {
    /// Status.
    pub status: String,
    /// Error codes.
    pub codes: Vec<String>,
    /// Cause.
    pub about: String,
}

/// Limits and features of a plan.
#[derive(Debug, Default)]
pub(crate) struct ReferencePlan {
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
pub(crate) struct ReferenceTool {
    /// Name.
    pub name: String,
    /// Short title.
    pub title: String,
    /// True if it makes changes.
    pub writes: bool,
}

/// A code sample.
#[derive(Debug)]
pub(crate) struct CodeSample {
    /// Language.
    pub language: &'static str,
    /// Code.
    pub code: &'static str,
}

/// Code samples that verify the two signatures of a webhook.
pub(crate) const SAMPLES: [CodeSample; 5] = [
    CodeSample { language: "Python", code: include_str!("../../templates/reference/verify/verify.py") },
    CodeSample { language: "JavaScript", code: include_str!("../../templates/reference/verify/verify.mjs") },
    CodeSample { language: "Go", code: include_str!("../../templates/reference/verify/verify.go") },
    CodeSample { language: "PHP", code: include_str!("../../templates/reference/verify/verify.php") },
    CodeSample { language: "Ruby", code: include_str!("../../templates/reference/verify/verify.rb") },
];

/// The HTML document.
#[template_file("reference/page.html")]
struct ReferencePage<'a> {
    it: &'a ApiReference,
}

impl ApiReference {
    /// Renders the document as HTML.
    ///
    /// # Errors
    /// If the template fails, which it doesn't.
    pub(crate) fn html(&self) -> Result<Vec<u8>, super::RenderError> {
        super::render(&ReferencePage { it: self })
    }
}
