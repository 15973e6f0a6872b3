//! Alert settings of a page, for the operator.

use parallax_core::given::Given;
use parallax_core::id::PageId;
use parallax_core::page::Page;
use parallax_core::telling::TellingEdit;
use serde_json::{Value, json};

use super::command::Fault;
use crate::service::Service;

/// Changes the given settings and returns the current ones.
pub(super) async fn page(
    service: &Service,
    wanted: &str,
    repeat: Given<i64>,
    automatic_incidents: Option<bool>,
) -> Result<Value, Fault> {
    let page = find(service, wanted).await?;
    let edit = TellingEdit {
        repeat_minutes: repeat,
        automatic_incidents: automatic_incidents.map_or(Given::Absent, Given::Value),
        ..TellingEdit::default()
    };
    let telling = service.set_telling(page.id, &edit).await?;
    Ok(json!({
        "page": page.id.to_string(),
        "slug": page.slug,
        "repeatMinutes": telling.repeat_minutes,
        "automaticIncidents": telling.automatic_incidents,
    }))
}

/// Finds a page by id or slug.
async fn find(service: &Service, wanted: &str) -> Result<Page, Fault> {
    let id: Option<PageId> = wanted.parse().ok();
    for account in service.accounts().await? {
        let pages = service.pages_of(account.id).await?;
        if let Some(page) = pages.into_iter().find(|page| Some(page.id) == id || page.slug == wanted) {
            return Ok(page);
        }
    }
    Err(Fault::new("not_found", format!("no page has the id or address label {wanted:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::tests::world;

    #[tokio::test]
    async fn the_operator_shows_and_sets_what_a_page_tells() {
        let world = world().await;
        let (service, id) = (&world.service, world.shop.id.to_string());
        let set = async |wanted: &str, repeat, automatic| page(service, wanted, repeat, automatic).await;
        let told = |repeat: Value, automatic: bool| {
            Ok(json!({
                "page": id, "slug": "shop", "repeatMinutes": repeat, "automaticIncidents": automatic,
            }))
        };
        assert_eq!(set("shop", Given::Absent, None).await, told(Value::Null, true));
        assert_eq!(set(&id, Given::Value(30), Some(false)).await, told(json!(30), false));
        assert_eq!(set("shop", Given::Absent, Some(true)).await, told(json!(30), true));
        assert_eq!(set("shop", Given::Null, None).await, told(Value::Null, true));
        let code = |told: Result<Value, Fault>| told.unwrap_err().code;
        assert_eq!(code(set("shop", Given::Value(4), None).await), "invalid");
        assert_eq!(code(set("nothing", Given::Absent, None).await), "not_found");
    }
}
