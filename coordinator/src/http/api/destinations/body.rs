//! The bodies that make and change a destination.

use parallax_core::destination::ChannelKind;
use parallax_core::destination::edit::{
    DestinationEdit, KEY, MAX_CHAT, MAX_EMAIL, MAX_NAME, MAX_TOKEN, MAX_URL,
};
use parallax_core::event::AlertKind;
use parallax_core::incident::MAX_AFFECTED;

use crate::http::api::sent::Rules;
use crate::http::fields::{Fields, field};

/// Rules that a body is held against.
pub(in crate::http::api) const RULES: Rules = Rules {
    hints: &[
        ("email", "send it as to"),
        ("address", "send it as url, or a mailbox as to"),
        ("monitors", "send their ids as monitorIds"),
    ],
    elsewhere: &[(
        "secret",
        "can't be changed here: POST /api/v1/pages/{pageId}/destinations/{destinationId}/rotate-secret makes a new one",
    )],
    other: "can't be changed: the service sets it",
    echoes: &[],
    measured: &[
        "status",
        "failingSince",
        "offSince",
        "offReason",
        "secretPending",
        "secretRotatedAt",
        "oldSecretUntil",
    ],
};

/// A new destination: what may be changed later, and its type.
pub(in crate::http) fn read_new(mut body: impl Fields) -> DestinationEdit {
    let kind = body.text(
        field("type", "How it is reached. It can't be changed later.")
            .required()
            .words(ChannelKind::ALL.map(ChannelKind::name)),
    );
    let name = field("name", NAME).required().characters(1, MAX_NAME).example("On call");
    let name = body.text(name);
    DestinationEdit { name, kind, ..read_common(&mut body) }
}

/// The fields as they were sent; others are ignored.
pub(in crate::http) fn read(mut body: impl Fields) -> DestinationEdit {
    let kind = body.text(
        field("type", "It can't be changed; the same is taken.")
            .words(ChannelKind::ALL.map(ChannelKind::name)),
    );
    let name = body.text(field("name", NAME).characters(1, MAX_NAME).example("On call"));
    DestinationEdit { name, kind, ..read_common(&mut body) }
}

const NAME: &str = "What it is called: one line.";

fn read_common(body: &mut impl Fields) -> DestinationEdit {
    DestinationEdit {
        url: body.text(
            field(
                "url",
                "webhook, slack (also Mattermost), discord, teams, ntfy: where to, http or https. Of ntfy the topic's \
                 address.",
            )
            .characters(1, MAX_URL)
            .example("https://hooks.shop.example/alerts"),
        ),
        to: body.text(field("to", "email: the mailbox.").characters(3, MAX_EMAIL).example("ops@shop.example")),
        token: body.text(
            field("token", "telegram: the bot's token. ntfy: an access token, where the topic asks for one.")
                .characters(0, MAX_TOKEN)
                .nullable(),
        ),
        chat: body.text(
            field("chat", "telegram: the chat's number, or a channel's `@name`.").characters(1, MAX_CHAT),
        ),
        key: body.text(
            field("key", "pagerduty: the integration key of a service (Events API v2).").characters(KEY, KEY),
        ),
        events: body.words(
            field("events", "Alerts that it gets. Null: all.").nullable(),
            &AlertKind::ALL.map(AlertKind::name),
        ),
        monitor_ids: body.ids(
            field("monitorIds", "Monitors whose alerts it gets, by id. Null: all of the page.").least(1).nullable(),
            MAX_AFFECTED,
        ),
        enabled: body.flag(field("enabled", "Whether it is used.").default(true).nullable()),
        ..DestinationEdit::default()
    }
}
