//! Request bodies that create and change a page.

use parallax_core::page::access::{MAX_DOMAINS, MAX_PEOPLE, PASSWORD, PagePassword};
use parallax_core::page::branding::{Language, Theme};
use parallax_core::page::domain::MAX_HOST;
use parallax_core::page::edit::{MAX_DESCRIPTION, MAX_NAME, MAX_SLUG, MAX_SUPPORT_URL, PageEdit, UPTIME_TARGET};
use parallax_service::pages::creation::NewPage;
use serde_json::json;

use crate::http::api::body_check::{BodyRules, SET_BY_SERVICE};
use crate::http::body_fields::{BodyFields, FieldSpec, field};

/// Validation rules of the body of a page.
pub(in crate::http::api) const RULES: BodyRules = BodyRules {
    hints: &[
        ("domain", "PATCH /api/v1/pages/{pageId}/address sets customDomain"),
        ("repeatMinutes", "PATCH /api/v1/pages/{pageId}/alerts sets it"),
        ("automaticIncidents", "PATCH /api/v1/pages/{pageId}/alerts sets it"),
    ],
    other_routes: &[
        ("slug", ADDRESS),
        ("customDomain", ADDRESS),
        ("url", FOLLOWS_ADDRESS),
        ("plan", PLAN),
        ("passwordProtected", "can't be changed: it follows password"),
        ("privateFeedUrl", "can't be changed: it follows password, private and the allowed visitors"),
    ],
    default_rule: SET_BY_SERVICE,
    echoes: &["logo", "favicon"],
    volatile: VOLATILE,
};

/// Validation rules of the body of a page's address.
pub(in crate::http::api) const ADDRESS_RULES: BodyRules = BodyRules {
    hints: &[("domain", "send it as customDomain")],
    other_routes: &[("url", FOLLOWS_ADDRESS), ("plan", PLAN)],
    default_rule: "can't be changed here: PATCH /api/v1/pages/{pageId} changes it",
    echoes: &["logo", "favicon"],
    volatile: VOLATILE,
};

const ADDRESS: &str = "can't be changed here: PATCH /api/v1/pages/{pageId}/address changes it";
const FOLLOWS_ADDRESS: &str =
    "can't be changed: it follows slug and customDomain, which PATCH /api/v1/pages/{pageId}/address changes";
const PLAN: &str = "can't be changed through the API: the operator of this service sets it";
const VOLATILE: &[&str] = &["customDomainProblem", "domainVerification"];

/// Reads a new page: the editable fields, and the slug.
pub(in crate::http) fn read_new(mut body: impl BodyFields) -> NewPage {
    NewPage { slug: body.text(slug().required()), edit: read(&mut body) }
}

fn slug() -> FieldSpec {
    field("slug", "Address label: lower-case letters, digits and inner hyphens; unique.")
        .length(1, MAX_SLUG)
        .example("shop")
}

/// Reads a page's address: its slug and custom hostname.
pub(in crate::http) fn read_address(mut body: impl BodyFields) -> PageEdit {
    PageEdit {
        slug: body.text(slug()),
        custom_domain: body.text(
            field(
                "customDomain",
                "Custom hostname. It is set once the record in `domainVerification` is found. Null removes it.",
            )
            .length(1, MAX_HOST)
            .nullable()
            .example("status.shop.example"),
        ),
        ..PageEdit::default()
    }
}

/// Reads the fields as sent; others are ignored.
pub(in crate::http) fn read(mut body: impl BodyFields) -> PageEdit {
    PageEdit {
        name: body.text(field("name", "Shown in the headline.").length(1, MAX_NAME).example("Example Shop")),
        description: body.text(
            field("description", "Line of text under the headline. Null clears.").length(0, MAX_DESCRIPTION).nullable(),
        ),
        support_url: body.text(
            field("supportUrl", "Link under the headline: http://, https:// or mailto:. Null clears.")
                .length(1, MAX_SUPPORT_URL)
                .nullable()
                .example("mailto:help@shop.example"),
        ),
        uptime_target: body.number(
            field("uptimeTarget", "Uptime target in percent. Null turns the error budget off.")
                .range(*UPTIME_TARGET.start(), *UPTIME_TARGET.end())
                .nullable(),
        ),
        timezone: body.text(field("timezone", "IANA time zone.").example("Europe/Berlin")),
        show_deploys: body.boolean(field("showDeploys", "Draw deploy markers on the public page.")),
        show_locations: body.boolean(field("showLocations", "Show each region under the uptime bars.")),
        latency_regions: body.regions(
            field("latencyLocations", "Regions counted for response times and slow alerts. Null: Europe.").nullable(),
        ),
        uptime_regions: body.regions(
            field(
                "uptimeRegions",
                "Regions counted for uptime. Null or every region: all, including ones added later.",
            )
            .nullable(),
        ),
        password: body
            .text(
                field("password", "Password for visitors. Stored, never returned. Null clears.")
                    .length(*PASSWORD.start(), *PASSWORD.end())
                    .nullable(),
            )
            .map(PagePassword::new),
        private: body.boolean(field("private", "Only allowed people and email domains can see the page.")),
        allowed_people: body.strings(
            field("allowedPeople", "Email addresses that can see the page while it is private. Null: none.")
                .max_items(MAX_PEOPLE)
                .nullable(),
        ),
        allowed_domains: body.strings(
            field("allowedDomains", "Domains whose email addresses can see the page while it is private. Null: none.")
                .max_items(MAX_DOMAINS)
                .nullable()
                .example(json!(["shop.example"])),
        ),
        noindex: body.boolean(field("noindex", "Ask search engines not to index the page.")),
        theme: body.text(
            field("theme", "Colour scheme, until the visitor chooses. Null: the visitor's system setting.")
                .one_of(Theme::ALL.map(Theme::name))
                .nullable(),
        ),
        accent_color: body.text(
            field("accentColor", "Colour of links and buttons, adjusted for contrast if needed. Null: none.")
                .nullable()
                .example("#1a7f4b"),
        ),
        logo: body.text(picture("logo", "Image next to the headline, at most 64 KiB")),
        favicon: body.text(picture("favicon", "Icon in the browser tab, at most 32 KiB")),
        language: body.text(
            field(
                "language",
                "Language of the page, of mails to its subscribers and of automatic incident texts. \
                Null: English.",
            )
            .one_of(Language::ALL.map(Language::tag))
            .nullable(),
        ),
        ..PageEdit::default()
    }
}

fn picture(name: &'static str, about: &'static str) -> FieldSpec {
    field(name, about)
        .nullable()
        .example("data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4=")
}
