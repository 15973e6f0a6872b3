//! Names of the API's words for a schema: each closed list of words is one named component, and times are one format.

use std::borrow::Cow;

use parallax_core::check::{CheckKind, KeywordMode, Method as CheckMethod, RecordType};
use parallax_core::delivery::Stage;
use parallax_core::destination::{ChannelKind, OffReason as CoreOffReason};
use parallax_core::event::{AlertKind, Reason, Status};
use parallax_core::headline::Indicator as CoreIndicator;
use parallax_core::incident::{Impact as CoreImpact, Kind, Progress};
use parallax_core::key::Access as KeyAccess;
use parallax_core::observation::Word;
use parallax_core::place::Region as CoreRegion;
use parallax_core::plan::Plan;
use parallax_core::recurrence::Every as CoreEvery;
use parallax_core::time::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

/// A moment as answers write it.
#[derive(Debug)]
pub(in crate::http) struct Moment;

impl JsonSchema for Moment {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("Moment")
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time", "examples": ["2026-03-01T09:30:00.000Z"] })
    }
}

/// A way of writing moments.
pub(in crate::http) trait Time {
    /// The moment, written.
    fn of(at: Timestamp) -> Self;
}

/// A moment in ISO 8601.
#[derive(Debug, Serialize)]
pub(in crate::http) struct Iso(String);

/// A moment in milliseconds since the epoch.
#[derive(Debug, Serialize)]
pub(in crate::http) struct Millis(i64);

impl Time for Iso {
    fn of(at: Timestamp) -> Self {
        Self(at.to_string())
    }
}

impl Time for Millis {
    fn of(at: Timestamp) -> Self {
        Self(at.as_millis())
    }
}

/// Its name stands for nothing in the names of what is made of it.
impl JsonSchema for Iso {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("")
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Moment::json_schema(generator)
    }
}

/// Its name tells what is made of it for visitors.
impl JsonSchema for Millis {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("Public")
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "examples": [1_772_357_400_000_i64] })
    }
}

/// Names one list of words.
macro_rules! words {
    ($($name:ident: $about:literal, $all:expr;)*) => {$(
        #[doc = $about]
        #[derive(Debug)]
        pub(in crate::http) struct $name;

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                Cow::Borrowed(stringify!($name))
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let words: Vec<&str> = $all.to_vec();
                json_schema!({ "type": "string", "enum": words, "description": $about })
            }
        }
    )*};
}

words! {
    MonitorType: "What kind of check a monitor is.", CheckKind::ALL.map(CheckKind::name);
    MonitorStatus: "State of a monitor; unknown before its first check.", Status::ALL.map(Status::name);
    Region: "A region that checks run from. More may be added.", CoreRegion::ALL.map(CoreRegion::name);
    Method: "Method of an http check.", CheckMethod::ALL.map(CheckMethod::name);
    DnsType: "Type of a DNS record.", RecordType::ALL.map(RecordType::name);
    Presence: "Whether a keyword must be there.", KeywordMode::ALL.map(KeywordMode::name);
    RoundResult: "How a round ended: disputed means that other networks passed.", Word::ALL.map(Word::name);
    RoundReason: "Why a round was run.", Reason::ALL.map(Reason::name);
    EventKind: "What kind of event it is.", ["status-changed", "regions-changed", "deadline-extended"];
    IncidentKind: "Whether it is an incident or maintenance.", Kind::ALL.map(Kind::name);
    IncidentStatus: "Where an incident or maintenance stands.", Progress::ALL.map(Progress::name);
    Impact: "How much is affected.", CoreImpact::ALL.map(CoreImpact::name);
    Every: "How often a window repeats.", CoreEvery::ALL.map(CoreEvery::name);
    AlertEvent: "What happened to the monitor.", AlertKind::ALL.map(AlertKind::name);
    DestinationType: "How a destination is reached.", ChannelKind::ALL.map(ChannelKind::name);
    DestinationStatus: "Whether a destination gets alerts.", ["active", "pending", "off"];
    PausedBy: "Who or what paused a monitor.", ["owner", "plan"];
    OffReason: "Why a receiver was switched off.", CoreOffReason::ALL.map(CoreOffReason::name);
    NewsEvent: "What happened to an incident or maintenance.", crate::letters::update::EVENTS;
    ChallengeEvent: "A webhook is asked.", [crate::service::subscribers::CHALLENGE];
    SubscriberType: "How a subscriber is reached.", ["email", "webhook"];
    DeliveryStatus: "Where a delivery stands; dropped is what says nothing new any more, or has no receiver.", Stage::NAMES;
    Access: "What a key may do; write includes reading.", KeyAccess::ALL.map(KeyAccess::name);
    PlanName: "The plan of an account.", Plan::ALL.map(Plan::name);
    Indicator: "The state of a page as a whole.", CoreIndicator::ALL.map(CoreIndicator::name);
}
