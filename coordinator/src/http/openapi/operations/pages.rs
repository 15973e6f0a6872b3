//! Operations of pages and of the API key.

use ::http::Method;

use crate::http::api::me::MeDocument;
use crate::http::api::pages::{body, status::StatusDocument, view::PageDocument};
use crate::http::api::regions::RegionDocument;
use crate::http::openapi::operation::Operation;

const TAG: &str = "Pages";

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new("getKey", Method::GET, "/me")
            .does("Keys", "Show the current key and its account's plan")
            .about("The key's access and pages, and the plan's limits and usage.")
            .gives_bare::<MeDocument>("KeyResponse", "The key and the plan."),
        Operation::new("listRegions", Method::GET, "/regions")
            .does("Regions", "List the regions that checks run from")
            .about("With the public addresses of their agents, for firewall allowlists.")
            .gives::<Vec<RegionDocument>>(200, "RegionListResponse", "regions", "The regions."),
        Operation::new("listPages", Method::GET, "/pages")
            .does(TAG, "List the pages the key can access")
            .about("Oldest first.")
            .gives::<Vec<PageDocument>>(200, "PageListResponse", "pages", "The pages."),
        Operation::new("createPage", Method::POST, "/pages")
            .does(TAG, "Create a page")
            .about("Needs a key for every page.")
            .takes("PageCreate", |description| body::read_new(description))
            .requires("name")
            .gives::<PageDocument>(201, "PageResponse", "page", "The new page."),
        Operation::new("deletePage", Method::DELETE, "/pages/{pageId}")
            .does(TAG, "Delete a page")
            .about(
                "Needs a key for every page. Removes the page, its monitors and their history. This can't be \
                 undone.",
            )
            .gives_nothing("Deleted."),
        Operation::new("getPage", Method::GET, "/pages/{pageId}")
            .does(TAG, "Show a page")
            .about("Its settings. For its state, see the status document.")
            .gives::<PageDocument>(200, "PageResponse", "page", "The page."),
        Operation::new("updatePage", Method::PATCH, "/pages/{pageId}")
            .does(TAG, "Change a page")
            .about("The plan can't be changed here; the address and domain have their own path.")
            .takes("PageUpdate", |description| body::read(description))
            .gives::<PageDocument>(200, "PageResponse", "page", "The page after the change."),
        Operation::new("checkDomain", Method::POST, "/pages/{pageId}/domain/check")
            .does(TAG, "Verify a page's custom domain now")
            .note("Looks up its TXT record. At most once every ten seconds.")
            .each_time()
            .reaches_out()
            .about(
                "For a requested domain: looks up its TXT record now, in addition to the automatic look-ups during \
                 the first seven days. At most once every ten seconds. If the record is missing, the page gives the \
                 reason.",
            )
            .gives::<PageDocument>(200, "PageResponse", "page", "The page after the look-up."),
        Operation::new("updatePageAddress", Method::PATCH, "/pages/{pageId}/address")
            .does(TAG, "Change a page's address")
            .reaches_out()
            .about(
                "Its slug, and its custom hostname. A hostname has to be verified first: the page's \
                 `domainVerification` has the TXT record to create, and `customDomain` is set once the record is \
                 found. The old address does not redirect.",
            )
            .note("A hostname is used once the TXT record in domainVerification is found.")
            .takes("PageAddressUpdate", |description| body::read_address(description))
            .gives::<PageDocument>(200, "PageResponse", "page", "The page after the change."),
        Operation::new("getStatus", Method::GET, "/pages/{pageId}/status")
            .does(TAG, "Show a page's status document")
            .about(
                "The document that the public page serves at `/status.json`, whatever the page's password: the \
                 headline, every monitor, open incidents, and maintenance in progress or planned within the next \
                 week.",
            )
            .note("The headline, every monitor (with downReason), open incidents and upcoming maintenance.")
            .gives_bare::<StatusDocument>("StatusDocument", "The status document."),
    ]
}
