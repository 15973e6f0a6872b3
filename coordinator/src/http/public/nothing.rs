//! The 404 page for people. It is the same for a missing page and one the visitor may not see, so it has no page's
//! branding, language or name.

use ::http::HeaderMap;

use super::page::likes_html;
use crate::http::Context;
use crate::http::error::Refused;
use crate::service::gate::Door;
use crate::views::door::DoorPage;

/// Converts a not-found error: people get an HTML page, programs JSON.
pub(in crate::http) fn to_people(
    context: &Context,
    headers: &HeaderMap,
    is_own_host: bool,
    refused: Refused,
) -> Refused {
    match refused {
        Refused::Page | Refused::Route | Refused::Nowhere(_) if likes_html(headers) => {
            let door = if is_own_host { Door::Own } else { Door::Shared };
            Refused::Nothing(DoorPage::nothing(context.service.base_of(door)).html())
        }
        other => other,
    }
}
