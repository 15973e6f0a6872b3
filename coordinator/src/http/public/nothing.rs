//! What people read where nothing is. It is the same whether there is no such page or none that they may see, so it has no
//! page's look, language or name.

use ::http::HeaderMap;

use super::page::likes_html;
use crate::http::Context;
use crate::http::error::Refused;
use crate::service::gate::Door;
use crate::views::door::DoorPage;

/// What a request for nothing is refused with: people get a document, programs what any refusal is.
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
