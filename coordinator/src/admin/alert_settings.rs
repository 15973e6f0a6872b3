//! Alert settings of a page, for the operator.

use parallax_core::alert_settings::AlertSettingsEdit;
use parallax_core::id::PageId;
use parallax_core::page::Page;
use parallax_core::patch::PatchField;
use parallax_service::Services;
use serde_json::{Value, json};

use super::command::CommandError;

/// Changes the given settings and returns the current ones.
pub(super) async fn update(
    service: &Services,
    id_or_slug: &str,
    repeat: PatchField<i64>,
    automatic_incidents: Option<bool>,
) -> Result<Value, CommandError> {
    let page = find(service, id_or_slug).await?;
    let edit = AlertSettingsEdit {
        repeat_minutes: repeat,
        automatic_incidents: automatic_incidents.map_or(PatchField::Absent, PatchField::Value),
        ..AlertSettingsEdit::default()
    };
    let settings = service.alert_settings.edit_as_operator(page.id, &edit).await?;
    Ok(json!({
        "page": page.id.to_string(),
        "slug": page.slug,
        "repeatMinutes": settings.repeat_minutes,
        "automaticIncidents": settings.automatic_incidents,
    }))
}

/// Finds a page by id or slug.
async fn find(service: &Services, id_or_slug: &str) -> Result<Page, CommandError> {
    let id: Option<PageId> = id_or_slug.parse().ok();
    for account in service.accounts.list().await? {
        let pages = service.pages.list_of_account(account.id).await?;
        if let Some(page) = pages.into_iter().find(|page| Some(page.id) == id || page.slug == id_or_slug) {
            return Ok(page);
        }
    }
    Err(CommandError::new("not_found", format!("no page has the id or address label {id_or_slug:?}")))
}

#[cfg(test)]
mod tests {
    use parallax_service::test_world::world;

    use super::*;

    #[tokio::test]
    async fn the_operator_shows_and_sets_alert_settings() {
        let world = world().await;
        let (service, id) = (&world.service, world.shop.id.to_string());
        let set = async |page: &str, repeat, automatic| update(service, page, repeat, automatic).await;
        let expected_settings = |repeat: Value, automatic: bool| {
            Ok(json!({
                "page": id, "slug": "shop", "repeatMinutes": repeat, "automaticIncidents": automatic,
            }))
        };
        assert_eq!(set("shop", PatchField::Absent, None).await, expected_settings(Value::Null, true));
        assert_eq!(set(&id, PatchField::Value(30), Some(false)).await, expected_settings(json!(30), false));
        assert_eq!(set("shop", PatchField::Absent, Some(true)).await, expected_settings(json!(30), true));
        assert_eq!(set("shop", PatchField::Null, None).await, expected_settings(Value::Null, true));
        let code = |result: Result<Value, CommandError>| result.unwrap_err().code;
        assert_eq!(code(set("shop", PatchField::Value(4), None).await), "invalid");
        assert_eq!(code(set("nothing", PatchField::Absent, None).await), "not_found");
    }
}
