//! Request bodies that create and change a destination.

use parallax_core::destination::ChannelKind;
use parallax_core::destination::edit::{
    DestinationEdit, MAX_CHAT, MAX_EMAIL, MAX_NAME, MAX_TOKEN, MAX_URL, ROUTING_KEY_LENGTH,
};
use parallax_core::event::AlertKind;
use parallax_core::incident::MAX_AFFECTED;

use crate::http::api::body_check::{BodyRules, SET_BY_SERVICE};
use crate::http::body_fields::{BodyFields, FieldSpec, field};

/// Validation rules of the body.
pub(in crate::http::api) const RULES: BodyRules = BodyRules {
    hints: &[
        ("email", "send it as to"),
        ("address", "send it as url, or an email address as to"),
        ("monitors", "send their ids as monitorIds"),
    ],
    other_routes: &[(
        "secret",
        "can't be changed here: POST /api/v1/pages/{pageId}/destinations/{destinationId}/rotate-secret makes a new one",
    )],
    default_rule: SET_BY_SERVICE,
    echoes: &[],
    volatile: &[
        "status",
        "failingSince",
        "offSince",
        "offReason",
        "secretPending",
        "secretRotatedAt",
        "oldSecretUntil",
    ],
};

/// Reads a new destination: the editable fields, and its type.
pub(in crate::http) fn read_new(mut body: impl BodyFields) -> DestinationEdit {
    let kind = body.text(
        field("type", "Channel. It can't be changed later.").required().one_of(ChannelKind::ALL.map(ChannelKind::name)),
    );
    let name = body.text(name().required());
    DestinationEdit { name, kind, ..read_common(&mut body) }
}

/// Reads the fields as sent; others are ignored.
pub(in crate::http) fn read(mut body: impl BodyFields) -> DestinationEdit {
    let kind = body.text(
        field("type", "Can't be changed; the current value is accepted.")
            .one_of(ChannelKind::ALL.map(ChannelKind::name)),
    );
    let name = body.text(name());
    DestinationEdit { name, kind, ..read_common(&mut body) }
}

fn name() -> FieldSpec {
    field("name", "Name, on one line.").length(1, MAX_NAME).example("On call")
}

fn read_common(body: &mut impl BodyFields) -> DestinationEdit {
    DestinationEdit {
        url: body.text(
            field(
                "url",
                "webhook, slack (also Mattermost), discord, teams, ntfy: http or https URL to send to. For ntfy the \
                 topic's URL.",
            )
            .length(1, MAX_URL)
            .example("https://hooks.shop.example/alerts"),
        ),
        to: body.text(field("to", "email: address to send to.").length(3, MAX_EMAIL).example("ops@shop.example")),
        token: body.text(
            field("token", "telegram: the bot's token. ntfy: an access token, if the topic needs one.")
                .length(0, MAX_TOKEN)
                .nullable(),
        ),
        chat: body.text(field("chat", "telegram: chat id, or a channel's `@name`.").length(1, MAX_CHAT)),
        key: body.text(
            field("key", "pagerduty: the integration key of a service (Events API v2).")
                .length(ROUTING_KEY_LENGTH, ROUTING_KEY_LENGTH),
        ),
        events: body
            .choices(field("events", "Alerts to send. Null: all.").nullable(), &AlertKind::ALL.map(AlertKind::name)),
        monitor_ids: body.ids(
            field("monitorIds", "Monitors to send alerts for, by id. Null: all of the page.").min_items(1).nullable(),
            MAX_AFFECTED,
        ),
        enabled: body.boolean(field("enabled", "Send alerts to it.").default(true).nullable()),
        evidence_link: body.boolean(
            field("evidenceLink", "Alerts of outages link to their evidence for 7 days, without sign-in.")
                .default(false)
                .nullable(),
        ),
        ..DestinationEdit::default()
    }
}
