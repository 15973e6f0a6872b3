//! Operations of pages and of the API key.

use ::http::Method;

use crate::http::api::current_key::MeDocument;
use crate::http::api::pages::{body, status::StatusDocument, view::PageDocument};
use crate::http::api::regions::RegionDocument;
use crate::http::openapi::operation::ApiOperation;

const TAG: &str = "Pages";

pub(super) fn operations() -> Vec<ApiOperation> {
    vec![
        ApiOperation::new("getKey", Method::GET, "/me")
            .with_summary("Keys", "Show the current key and its account's plan")
            .about("The key's access and pages, and the plan's limits and usage.")
            .responds_bare::<MeDocument>("KeyResponse", "The key and the plan."),
        ApiOperation::new("listRegions", Method::GET, "/regions")
            .with_summary("Regions", "List the regions that checks run from")
            .about("With the public addresses of their agents, for firewall allowlists.")
            .responds::<Vec<RegionDocument>>(200, "RegionListResponse", "regions", "The regions."),
        ApiOperation::new("listPages", Method::GET, "/pages")
            .with_summary(TAG, "List the pages the key can access")
            .about("Oldest first.")
            .responds::<Vec<PageDocument>>(200, "PageListResponse", "pages", "The pages."),
        ApiOperation::new("createPage", Method::POST, "/pages")
            .with_summary(TAG, "Create a page")
            .about("Needs a key for every page.")
            .accepts("PageCreate", |description| body::read_new(description))
            .requires("name")
            .responds::<PageDocument>(201, "PageResponse", "page", "The new page."),
        ApiOperation::new("deletePage", Method::DELETE, "/pages/{pageId}")
            .with_summary(TAG, "Delete a page")
            .about(
                "Needs a key for every page. Removes the page, its monitors and their history. This can't be \
                 undone.",
            )
            .responds_empty("Deleted."),
        ApiOperation::new("getPage", Method::GET, "/pages/{pageId}")
            .with_summary(TAG, "Show a page")
            .about("Its settings. For its state, see the status document.")
            .responds::<PageDocument>(200, "PageResponse", "page", "The page."),
        ApiOperation::new("updatePage", Method::PATCH, "/pages/{pageId}")
            .with_summary(TAG, "Change a page")
            .about("The plan can't be changed here; the address and domain have their own path.")
            .accepts("PageUpdate", |description| body::read(description))
            .responds::<PageDocument>(200, "PageResponse", "page", "The page after the change."),
        ApiOperation::new("checkDomain", Method::POST, "/pages/{pageId}/domain/check")
            .with_summary(TAG, "Verify a page's custom domain now")
            .tool_description("Looks up its TXT record. At most once every ten seconds.")
            .runs_every_time()
            .reaches_out()
            .about(
                "For a requested domain: looks up its TXT record now, in addition to the automatic look-ups during \
                 the first seven days. At most once every ten seconds. If the record is missing, the page gives the \
                 reason.",
            )
            .responds::<PageDocument>(200, "PageResponse", "page", "The page after the look-up."),
        ApiOperation::new("updatePageAddress", Method::PATCH, "/pages/{pageId}/address")
            .with_summary(TAG, "Change a page's address")
            .reaches_out()
            .about(
                "Its slug, and its custom hostname. A hostname has to be verified first: the page's \
                 `domainVerification` has the TXT record to create, and `customDomain` is set once the record is \
                 found. The old address does not redirect.",
            )
            .tool_description("A hostname is used once the TXT record in domainVerification is found.")
            .accepts("PageAddressUpdate", |description| body::read_address(description))
            .responds::<PageDocument>(200, "PageResponse", "page", "The page after the change."),
        ApiOperation::new("getStatus", Method::GET, "/pages/{pageId}/status")
            .with_summary(TAG, "Show a page's status document")
            .about(
                "The document that the public page serves at `/status.json`, whatever the page's password: the \
                 headline, every monitor, open incidents, and maintenance in progress or planned within the next \
                 week.",
            )
            .tool_description("The headline, every monitor (with downReason), open incidents and upcoming maintenance.")
            .responds_bare::<StatusDocument>("StatusDocument", "The status document."),
    ]
}
