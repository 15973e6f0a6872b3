//! Names of the API's words for a schema: each closed list of words is one named component, and times are one format.

use std::borrow::Cow;

use parallax_core::check::{CheckKind, KeywordMode, Method as CheckMethod, RecordType};
use parallax_core::event::{Reason, Status};
use parallax_core::headline::Indicator as CoreIndicator;
use parallax_core::key::Access as KeyAccess;
use parallax_core::observation::Word;
use parallax_core::place::Region as CoreRegion;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

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
    RoundResult: "How a round ended: disputed means that a second network passed.", Word::ALL.map(Word::name);
    RoundReason: "Why a round was run.", Reason::ALL.map(Reason::name);
    EventKind: "What kind of event it is.", ["status-changed", "regions-changed"];
    Access: "What a key may do; write includes reading.", KeyAccess::ALL.map(KeyAccess::name);
    Indicator: "The state of a page as a whole.", CoreIndicator::ALL.map(CoreIndicator::name);
}
