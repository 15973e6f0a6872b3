//! Schemas of the API's enums and times: each enum is one named component, and times have one format.

use std::borrow::Cow;

use parallax_core::check::{CheckKind, KeywordMode, Method as CheckMethod, RecordType};
use parallax_core::delivery::DeliveryState;
use parallax_core::destination::{ChannelKind, DisableReason as CoreOffReason};
use parallax_core::event::{AlertKind, MonitorStatus as CoreMonitorStatus, ProbeReason};
use parallax_core::headline::Indicator as CoreIndicator;
use parallax_core::incident::{
    Impact as CoreImpact, IncidentKind as CoreIncidentKind, IncidentStatus as CoreIncidentStatus,
};
use parallax_core::key::KeyAccess;
use parallax_core::observation::RoundOutcome;
use parallax_core::plan::Plan;
use parallax_core::recurrence::Frequency as CoreEvery;
use parallax_core::time::Timestamp;
use parallax_core::vantage::Region as CoreRegion;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

/// A time as responses write it.
#[derive(Debug)]
pub(in crate::http) struct IsoTimeSchema;

impl JsonSchema for IsoTimeSchema {
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

/// A format for times in responses.
pub(in crate::http) trait TimeFormat {
    /// Formats the time.
    fn format(at: Timestamp) -> Self;
}

/// A time in ISO 8601.
#[derive(Debug, Serialize)]
pub(in crate::http) struct Iso(String);

/// A time in milliseconds since the epoch.
#[derive(Debug, Serialize)]
pub(in crate::http) struct Millis(i64);

impl TimeFormat for Iso {
    fn format(at: Timestamp) -> Self {
        Self(at.to_string())
    }
}

impl TimeFormat for Millis {
    fn format(at: Timestamp) -> Self {
        Self(at.as_millis())
    }
}

/// An empty schema name, so that types generic over it get no prefix.
impl JsonSchema for Iso {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("")
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        IsoTimeSchema::json_schema(generator)
    }
}

/// The schema name `Public`, which prefixes the types that visitors see.
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

/// Kinds of events in a monitor's list.
const MONITOR_EVENTS: [&str; 5] =
    ["status-changed", "regions-changed", "deadline-extended", "acknowledged", "acknowledgement-withdrawn"];

/// Defines one enum schema.
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
                let values: Vec<&str> = $all.to_vec();
                json_schema!({ "type": "string", "enum": values, "description": $about })
            }
        }
    )*};
}

words! {
    MonitorType: "Type of a monitor.", CheckKind::ALL.map(CheckKind::name);
    MonitorStatus: "State of a monitor; unknown before its first check.", CoreMonitorStatus::ALL.map(CoreMonitorStatus::name);
    Region: "A region that checks run from. More may be added.", CoreRegion::ALL.map(CoreRegion::name);
    Method: "Method of an http check.", CheckMethod::ALL.map(CheckMethod::name);
    DnsType: "Type of a DNS record.", RecordType::ALL.map(RecordType::name);
    Presence: "Required presence or absence of a keyword.", KeywordMode::ALL.map(KeywordMode::name);
    RoundResult: "Outcome of a round; disputed means that networks disagree.", RoundOutcome::ALL.map(RoundOutcome::name);
    RoundReason: "Reason of a round.", ProbeReason::ALL.map(ProbeReason::name);
    EventKind: "Type of an event.", MONITOR_EVENTS;
    IncidentKind: "Incident or maintenance window.", CoreIncidentKind::ALL.map(CoreIncidentKind::name);
    IncidentStatus: "Status of an incident or maintenance window.", CoreIncidentStatus::ALL.map(CoreIncidentStatus::name);
    Impact: "Severity of the impact.", CoreImpact::ALL.map(CoreImpact::name);
    Every: "Repetition of a maintenance window.", CoreEvery::ALL.map(CoreEvery::name);
    AlertEvent: "The monitor's change of state.", AlertKind::ALL.map(AlertKind::name);
    DestinationType: "Channel of a destination.", ChannelKind::ALL.map(ChannelKind::name);
    DestinationStatus: "State of a destination.", ["active", "pending", "off"];
    PausedBy: "Cause of a monitor's pause.", ["owner", "plan"];
    OffReason: "Reason a receiver was switched off.", CoreOffReason::ALL.map(CoreOffReason::name);
    NewsEvent: "Type of an incident update.", parallax_notify::render::incident_update::EVENTS;
    ChallengeEvent: "Confirmation request to a webhook.", [parallax_service::subscribers::CHALLENGE];
    SubscriberType: "Channel of a subscriber.", ["email", "webhook"];
    DeliveryStatus: "Status of a delivery; dropped means outdated or without a receiver.", DeliveryState::NAMES;
    Access: "Access level of a key; write includes read.", KeyAccess::ALL.map(KeyAccess::name);
    PlanName: "The plan of an account.", Plan::ALL.map(Plan::name);
    Indicator: "Overall state of a page.", CoreIndicator::ALL.map(CoreIndicator::name);
}
