//! Pages and the key, as the description tells of them.

use ::http::Method;

use crate::http::api::me::MeDocument;
use crate::http::api::pages::{body, status::StatusDocument, view::PageDocument};
use crate::http::api::regions::RegionDocument;
use crate::http::openapi::operation::Operation;

const TAG: &str = "Pages";

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new("getKey", Method::GET, "/me")
            .does("Keys", "Show the key that asks, and its account's plan")
            .about("What the key may do and which pages it reaches; what the plan allows, and how much of it is used.")
            .gives_bare::<MeDocument>("KeyResponse", "The key and the plan."),
        Operation::new("listRegions", Method::GET, "/regions")
            .does("Regions", "List the regions that checks come from")
            .about("With the public addresses of their places: what a firewall must let in.")
            .gives::<Vec<RegionDocument>>(200, "RegionListResponse", "regions", "The regions."),
        Operation::new("listPages", Method::GET, "/pages")
            .does(TAG, "List the pages that the key reaches")
            .about("Oldest first.")
            .gives::<Vec<PageDocument>>(200, "PageListResponse", "pages", "The pages."),
        Operation::new("createPage", Method::POST, "/pages")
            .does(TAG, "Make a page")
            .about("For a key that reaches every page.")
            .takes("PageCreate", |description| body::read_new(description))
            .requires("name")
            .gives::<PageDocument>(201, "PageResponse", "page", "The page that was made."),
        Operation::new("deletePage", Method::DELETE, "/pages/{pageId}")
            .does(TAG, "Delete a page")
            .about(
                "For a key that reaches every page. Removes the page, its monitors and their history. It can't be \
                 undone.",
            )
            .gives_nothing("It is gone."),
        Operation::new("getPage", Method::GET, "/pages/{pageId}")
            .does(TAG, "Show a page")
            .about("Its settings; how it is doing is told by its status document.")
            .gives::<PageDocument>(200, "PageResponse", "page", "The page."),
        Operation::new("updatePage", Method::PATCH, "/pages/{pageId}")
            .does(TAG, "Change a page")
            .about("Its plan can't be changed here; its address and its domain have a path of their own.")
            .takes("PageUpdate", |description| body::read(description))
            .gives::<PageDocument>(200, "PageResponse", "page", "The page after the change."),
        Operation::new("checkDomain", Method::POST, "/pages/{pageId}/domain/check")
            .does(TAG, "Look at once for a page's own domain")
            .note("Looks for its TXT record. Once in ten seconds.")
            .each_time()
            .reaches_out()
            .about(
                "For a domain that was asked for: its TXT record is looked for now, beside the looks that come by \
                 themselves for seven days. Once in ten seconds. Where the record is not there, the page says why.",
            )
            .gives::<PageDocument>(200, "PageResponse", "page", "The page after the look."),
        Operation::new("updatePageAddress", Method::PATCH, "/pages/{pageId}/address")
            .does(TAG, "Change a page's address")
            .reaches_out()
            .about(
                "Its label, and its owner's own hostname. A hostname is asked for first: the page's `domainVerification` \
                 tells of the TXT record that shows it to be the owner's, and `customDomain` once it was found. Whoever \
                 followed the old address finds nothing there.",
            )
            .note("A hostname is used once the TXT record of the page's domainVerification was found.")
            .takes("PageAddressUpdate", |description| body::read_address(description))
            .gives::<PageDocument>(200, "PageResponse", "page", "The page after the change."),
        Operation::new("getStatus", Method::GET, "/pages/{pageId}/status")
            .does(TAG, "Show a page's status document")
            .about(
                "What the public page serves at `/status.json`, whatever the page's password: the headline, every \
                 monitor, open incidents, and maintenance in progress or planned within the next week.",
            )
            .note("The headline, every monitor (with downReason), open incidents and coming maintenance.")
            .gives_bare::<StatusDocument>("StatusDocument", "The status document."),
    ]
}
