//! The bodies that make and change a page.

use parallax_core::page::access::{MAX_DOMAINS, MAX_PEOPLE, PASSWORD, Password};
use parallax_core::page::domain::MAX_HOST;
use parallax_core::page::edit::{
    MAX_DESCRIPTION, MAX_NAME, MAX_SLUG, MAX_SUPPORT_URL, PageEdit, UPTIME_TARGET,
};
use parallax_core::page::look::{Language, Theme};
use serde_json::json;

use crate::http::api::sent::Rules;
use crate::http::fields::{Field, Fields, field};
use crate::service::pages::making::NewPage;

/// Rules that the body of a page is held against.
pub(in crate::http::api) const RULES: Rules = Rules {
    hints: &[
        ("domain", "PATCH /api/v1/pages/{pageId}/address sets customDomain"),
        ("repeatMinutes", "PATCH /api/v1/pages/{pageId}/alerts sets it"),
        ("automaticIncidents", "PATCH /api/v1/pages/{pageId}/alerts sets it"),
    ],
    elsewhere: &[
        ("slug", ADDRESS),
        ("customDomain", ADDRESS),
        ("url", FOLLOWS_ADDRESS),
        ("plan", PLAN),
        ("passwordProtected", "can't be changed: it follows password"),
        ("privateFeedUrl", "can't be changed: it follows password, private and who is allowed"),
    ],
    other: "can't be changed: the service sets it",
    echoes: &["logo", "favicon"],
    measured: MEASURED,
};

/// Rules that the body of a page's address is held against.
pub(in crate::http::api) const ADDRESS_RULES: Rules = Rules {
    hints: &[("domain", "send it as customDomain")],
    elsewhere: &[("url", FOLLOWS_ADDRESS), ("plan", PLAN)],
    other: "can't be changed here: PATCH /api/v1/pages/{pageId} changes it",
    echoes: &["logo", "favicon"],
    measured: MEASURED,
};

const ADDRESS: &str = "can't be changed here: PATCH /api/v1/pages/{pageId}/address changes it";
const FOLLOWS_ADDRESS: &str =
    "can't be changed: it follows slug and customDomain, which PATCH /api/v1/pages/{pageId}/address changes";
const PLAN: &str = "can't be changed by the API: the operator of this service sets it";
const MEASURED: &[&str] = &["customDomainProblem", "domainVerification"];

/// A new page: what may be changed later, and the address label.
pub(in crate::http) fn read_new(mut body: impl Fields) -> NewPage {
    let slug = field("slug", "Address label: small letters, digits and inner hyphens; unique.")
        .required()
        .characters(1, MAX_SLUG)
        .example("shop");
    NewPage { slug: body.text(slug), edit: read(&mut body) }
}

/// A page's address: its label, and its owner's own hostname.
pub(in crate::http) fn read_address(mut body: impl Fields) -> PageEdit {
    PageEdit {
        slug: body.text(
            field("slug", "Address label: small letters, digits and inner hyphens; unique.")
                .characters(1, MAX_SLUG)
                .example("shop"),
        ),
        custom_domain: body.text(
            field(
                "customDomain",
                "Owner's own hostname. It is the page's once the record of `domainVerification` was found. Null gives it up.",
            )
            .characters(1, MAX_HOST)
            .nullable()
            .example("status.shop.example"),
        ),
        ..PageEdit::default()
    }
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
                .characters(1, MAX_SUPPORT_URL)
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
        password: body
            .text(
                field("password", "What visitors are asked for; it is never shown. Null clears.")
                    .characters(*PASSWORD.start(), *PASSWORD.end())
                    .nullable(),
            )
            .map(Password::new),
        private: body
            .flag(field("private", "Only the people and domains that are allowed can see the page.")),
        allowed_people: body.texts(
            field("allowedPeople", "Email addresses that may see the page while it is private. Null: none.")
                .most(MAX_PEOPLE)
                .nullable(),
        ),
        allowed_domains: body.texts(
            field(
                "allowedDomains",
                "Domains whose email addresses may see the page while it is private. Null: none.",
            )
            .most(MAX_DOMAINS)
            .nullable()
            .example(json!(["shop.example"])),
        ),
        noindex: body.flag(field("noindex", "Search engines are asked to leave the page out.")),
        theme: body.text(
            field(
                "theme",
                "Colours of the page, until its visitor chooses. Null: as the visitor's system has it.",
            )
            .words(Theme::ALL.map(Theme::name))
            .nullable(),
        ),
        accent_color: body.text(
            field(
                "accentColor",
                "Colour of links and buttons, made darker or lighter where it could not be read. Null: none.",
            )
            .nullable()
            .example("#1a7f4b"),
        ),
        logo: body.text(picture("logo", "Picture beside the headline, of 64 KiB at most")),
        favicon: body.text(picture("favicon", "Picture in the browser's tab, of 32 KiB at most")),
        language: body.text(
            field("language", "Language of the page's fixed words, of mails to its subscribers and of what incidents say by themselves. Null: English.")
                .words(Language::ALL.map(Language::tag))
                .nullable(),
        ),
        ..PageEdit::default()
    }
}

fn picture(name: &'static str, about: &'static str) -> Field {
    field(name, about)
        .nullable()
        .example("data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4=")
}
