//! The bodies that make and change a page.

use parallax_core::page::edit::{
    MAX_DESCRIPTION, MAX_NAME, MAX_SLUG, MAX_SUPPORT_URL, PageEdit, UPTIME_TARGET,
};

use crate::http::fields::{Fields, field};
use crate::service::pages::making::NewPage;

/// A new page: what may be changed later, and the address label.
pub(in crate::http) fn read_new(mut body: impl Fields) -> NewPage {
    let slug = field("slug", "Address label: small letters, digits and inner hyphens; unique.")
        .required()
        .characters(1, MAX_SLUG)
        .example("shop");
    NewPage { slug: body.text(slug), edit: read(&mut body) }
}

/// The fields as they were sent; others are ignored.
pub(in crate::http) fn read(mut body: impl Fields) -> PageEdit {
    PageEdit {
        name: body
            .text(field("name", "Shown in the headline.").characters(1, MAX_NAME).example("Example Shop")),
        description: body.text(
            field("description", "One line under the headline. Null clears.")
                .characters(0, MAX_DESCRIPTION)
                .nullable(),
        ),
        support_url: body.text(
            field("supportUrl", "Link under the headline: http://, https:// or mailto:. Null clears.")
                .characters(0, MAX_SUPPORT_URL)
                .nullable()
                .example("mailto:help@shop.example"),
        ),
        uptime_target: body.number(
            field("uptimeTarget", "Uptime target in percent. Null turns the error budget off.")
                .from(*UPTIME_TARGET.start(), *UPTIME_TARGET.end())
                .nullable(),
        ),
        timezone: body.text(field("timezone", "IANA time zone.").example("Europe/Berlin")),
        show_deploys: body.flag(field("showDeploys", "Deploy markers are drawn on the public page.")),
        show_locations: body.flag(field("showLocations", "Each region is shown under the strips.")),
        latency_regions: body.regions(
            field("latencyLocations", "Regions counted for response times and slow alerts. Null: Europe.")
                .nullable(),
        ),
        uptime_regions: body.regions(
            field(
                "uptimeRegions",
                "Regions counted for uptime. Null, or every region: all, also later ones.",
            )
            .nullable(),
        ),
    }
}
