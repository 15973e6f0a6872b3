//! Request bodies that create and change a monitor.

use parallax_core::check::edit::{
    CERTIFICATE_WARN_DAYS, CheckEdit, DOMAIN_WARN_DAYS, GRACE_MINUTES, MAX_BODY, MAX_COMPONENT, MAX_EXPECT,
    MAX_KEYWORD, PERIOD_MINUTES, STATUS_CODES, WARN_DAYS,
};
use parallax_core::check::{CheckKind, KeywordMode, Method, RecordType};
use parallax_core::monitor::edit::{MAX_GROUP, MAX_NAME, MonitorEdit, THRESHOLD_MS};
use parallax_core::text::{MAX_HEADER_CHARACTERS, MAX_HEADERS, MAX_URL};
use parallax_core::vantage::Region;

use crate::http::api::body_check::{BodyRules, SET_BY_SERVICE};
use crate::http::body_fields::{BodyFields, field};

/// Validation rules of the body.
pub(in crate::http::api) const RULES: BodyRules = BodyRules {
    hints: &[
        ("group", "send it as groupName"),
        ("heartbeat", "send periodMinutes and graceMinutes"),
        ("periodSeconds", "send it as periodMinutes"),
        ("graceSeconds", "send it as graceMinutes"),
        ("status", "the checks set it"),
        ("interval", "the plan sets the check interval"),
        ("timeout", "it is ten seconds for every check"),
    ],
    other_routes: &[
        ("target", "can't be changed: it follows url, host and port"),
        ("position", "can't be changed here: PATCH /api/v1/pages/{pageId}/monitors/order orders the page's monitors"),
    ],
    default_rule: SET_BY_SERVICE,
    echoes: &["paused"],
    volatile: &[
        "since",
        "downFrom",
        "downReason",
        "acknowledged",
        "lastCheck",
        "expiresAt",
        "confirmable",
        "unconfirmedFrom",
        "disputedSince",
        "flapping",
        "pausedBy",
        "uptime24h",
        "latencyMs24h",
        "lastPingAt",
        "lastRunMs",
        "pingUrl",
    ],
};

/// Reads the fields as sent. Unknown fields are ignored, and later also those that do not apply to the type.
pub(in crate::http) fn read(mut body: impl BodyFields) -> MonitorEdit {
    let kind = body.text(
        field("type", "Type of check. It can't be changed after creation.")
            .one_of(CheckKind::ALL.map(CheckKind::name))
            .default(CheckKind::Http.name()),
    );
    let name = body.text(
        field(
            "name",
            "Shown on the page. Default on a new monitor: the host of `url` or `host`. Required for heartbeat and \
             component.",
        )
        .length(1, MAX_NAME)
        .example("Shop"),
    );
    let shared = read_shared(&mut body);
    MonitorEdit {
        kind,
        name,
        check: CheckEdit {
            url: body.text(
                field(
                    "url",
                    "http: URL to request; without a scheme, https:// is added. Up to 5 redirects are followed, unless \
                     `expectStatus` is one.",
                )
                .length(1, MAX_URL)
                .example("https://shop.example/health"),
            ),
            host: body.text(
                field("host", "tcp, dns, ping, certificate, domain: host. Names in any script. dns: `.` is the root.")
                    .example("shop.example"),
            ),
            port: body.integer(field("port", "tcp: port, required. certificate: port, default 443.").range(1, 65_535)),
            dns_type: body.text(
                field("dnsType", "dns: record type to query.")
                    .one_of(RecordType::ALL.map(RecordType::name))
                    .default(RecordType::A.name())
                    .nullable(),
            ),
            dns_expect: body
                .text(field("dnsExpect", "dns: text an answer must contain.").length(0, MAX_EXPECT).nullable()),
            warn_days: body
                .integer(field("warnDays", WARN_DAYS_ABOUT).range(*WARN_DAYS.start(), *WARN_DAYS.end()).nullable()),
            period_minutes: body.integer(
                field("periodMinutes", "heartbeat: minutes between pings, required.")
                    .range(*PERIOD_MINUTES.start(), *PERIOD_MINUTES.end()),
            ),
            grace_minutes: body.integer(
                field("graceMinutes", "heartbeat: minutes of grace after the period.")
                    .range(*GRACE_MINUTES.start(), *GRACE_MINUTES.end())
                    .default(0)
                    .nullable(),
            ),
            vendor_url: body.text(
                field("vendorUrl", "component: vendor status page to follow, required.")
                    .length(1, MAX_URL)
                    .example("https://www.githubstatus.com"),
            ),
            vendor_component: body.text(
                field("vendorComponent", "component: one component on that page, by name. Null: the whole page.")
                    .length(0, MAX_COMPONENT)
                    .nullable(),
            ),
            method: body.text(
                field("method", "http: request method.")
                    .one_of(Method::ALL.map(Method::name))
                    .default(Method::Get.name())
                    .nullable(),
            ),
            headers: body.string_map(
                field(
                    "headers",
                    "http: request headers, name to value, up to 4000 characters in all. Stored, never returned.",
                )
                .nullable(),
                MAX_HEADERS,
            ),
            body: body
                .text(field("body", "http: request body. Stored, never returned.").length(0, MAX_BODY).nullable()),
            expect_status: body.integer(
                field("expectStatus", "http: exact status expected. Null: any 2xx.")
                    .range(*STATUS_CODES.start(), *STATUS_CODES.end())
                    .nullable(),
            ),
            keyword: body.text(
                field("keyword", "http: text the response body must contain, or must not.")
                    .length(0, MAX_KEYWORD)
                    .nullable(),
            ),
            keyword_mode: body.text(
                field("keywordMode", "http: whether the keyword must be present or absent.")
                    .one_of(KeywordMode::ALL.map(KeywordMode::name))
                    .default(KeywordMode::Present.name())
                    .nullable(),
            ),
        },
        ..shared
    }
}

/// Reads the fields that can be the same for many monitors.
pub(super) fn read_shared(mut body: impl BodyFields) -> MonitorEdit {
    MonitorEdit {
        group: body.text(
            field("groupName", "Monitors with the same group are shown together.").length(0, MAX_GROUP).nullable(),
        ),
        slow_threshold_ms: body.integer(
            field("slowThresholdMs", "http, tcp, dns, ping: a successful response slower than this is slow.")
                .range(*THRESHOLD_MS.start(), *THRESHOLD_MS.end())
                .nullable(),
        ),
        slow_thresholds: body.region_integers(
            field("slowThresholds", "http, tcp, dns, ping: per-region thresholds, in milliseconds.").nullable(),
            *THRESHOLD_MS.start(),
            *THRESHOLD_MS.end(),
        ),
        latency_regions: body.regions(
            field(
                "latencyLocations",
                "http, tcp, dns, ping: regions counted for response time and slowness. Null: the page's.",
            )
            .nullable(),
        ),
        pinned_region: body.text(
            field(
                "pinnedRegion",
                "http, tcp, dns, ping, certificate, domain: only region to check from. Null or empty: every region.",
            )
            .one_of(Region::ALL.iter().map(|region| region.name()).chain([""]))
            .nullable(),
        ),
        paused: body.boolean(
            field("paused", "Pauses checks and alerts; the status is unknown meanwhile.").default(false).nullable(),
        ),
        ..MonitorEdit::default()
    }
}

/// Reads the fields of a change as sent: those of a new monitor, and `notify`.
pub(in crate::http) fn read_change(mut body: impl BodyFields) -> MonitorEdit {
    let edit = read(&mut body);
    let notify = body.boolean(field(
        "notify",
        "With `paused`: notify subscribers that the monitor's incident is over because it is no \
         longer monitored. Default: false.",
    ));
    MonitorEdit { notify, ..edit }
}

const WARN_DAYS_ABOUT: &str = "certificate, domain: fails this many days before expiry. Default: 14 for certificate, \
    30 for domain.";
const _: () = assert!(CERTIFICATE_WARN_DAYS == 14 && DOMAIN_WARN_DAYS == 30, "the text above states them");
const _: () = assert!(MAX_HEADER_CHARACTERS == 4000, "the text of the headers states it");
