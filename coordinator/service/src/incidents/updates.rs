//! Updates of incidents and windows, alone or together with an edit.

use std::sync::atomic::AtomicBool;

use parallax_core::id::{IncidentId, PageId, UpdateId};
use parallax_core::incident::edit::IncidentEdit;
use parallax_core::incident::{IncidentEvent, UpdatePost};
use parallax_core::locale::Locale;
use parallax_core::patch::PatchField::Absent;
use parallax_store::{Batch, Expect, Presence};

use super::{IncidentDetail, IncidentService};
use crate::idempotency::{IdempotentRequest, RequestOutcome};
use crate::{Caller, ServiceResult};

impl IncidentService {
    /// Posts an update.
    ///
    /// # Errors
    /// [`ServiceError::ReadOnly`](crate::ServiceError::ReadOnly), [`ServiceError::NotFound`](crate::ServiceError::NotFound), [`ServiceError::Invalid`](crate::ServiceError::Invalid).
    pub async fn post_update(
        &self,
        caller: &Caller,
        page: PageId,
        id: IncidentId,
        post: &UpdatePost,
        once: &IdempotentRequest<'_, IncidentDetail>,
    ) -> ServiceResult<RequestOutcome<IncidentDetail>> {
        self.edit_and_post(caller, (page, id), &IncidentEdit::default(), post, once).await
    }

    /// Edits an incident and posts an update, in one change. The schedule of a window is edited by [`Self::edit`].
    ///
    /// # Errors
    /// [`ServiceError::ReadOnly`](crate::ServiceError::ReadOnly), [`ServiceError::NotFound`](crate::ServiceError::NotFound), and [`ServiceError::Invalid`](crate::ServiceError::Invalid) with the errors of both.
    pub async fn edit_and_post(
        &self,
        caller: &Caller,
        (page, id): (PageId, IncidentId),
        edit: &IncidentEdit,
        post: &UpdatePost,
        once: &IdempotentRequest<'_, IncidentDetail>,
    ) -> ServiceResult<RequestOutcome<IncidentDetail>> {
        let edit = &IncidentEdit { starts_at: Absent, ends_at: Absent, repeat: Absent, ..edit.clone() };
        let update = UpdateId::new(self.context.now(), rand::random());
        let is_counted = &AtomicBool::new(false);
        // Under the page's lock, so that the last free bytes for texts are taken once.
        self.context
            .change_page_once(caller, page, page.to_u128(), once, |page| async move {
                let before = self.context.incident_on(&page, id)?;
                let monitors = self.context.monitor_ids(&page).await?;
                let now = self.context.now();
                let amended = edit.validate_edit(&before.value, None, &monitors, now);
                let edited = amended.as_ref().map_or(&before.value, |amended| &amended.incident);
                let posted = post.validate(edited, update, Locale::of(page.language), now);
                let (after, change, notify) = match (amended, posted) {
                    (Ok(_), Ok(posted)) => posted,
                    (Err(mut faults), posted) => {
                        posted.err().into_iter().for_each(|others| faults.append(others));
                        return Err(faults.into());
                    }
                    (Ok(_), Err(faults)) => return Err(faults.into()),
                };
                self.check_text_size(&page, Some(&before.value), &after).await?;
                self.admit_notification(&page, notify, is_counted).await?;
                let mut detail = self.incident_detail(after).await?;
                // A person who resolves an automatic incident leaves its title to the service, unless they edit it.
                let is_title_kept = detail.incident.title == before.value.title;
                let first = before.value.first_monitor_name(&detail.monitors);
                let past_title = before.value.past_tense_title(first, page.language);
                if let Some(title) = past_title.filter(|_| is_title_kept && !detail.incident.is_open()) {
                    detail.incident.title = title;
                }
                let mut batch = Batch::new();
                batch.expect(Expect::Incident(id, Presence::At(before.revision))).write(detail.incident.clone());
                let event = IncidentEvent { incident: id, change, update: Some(update), notify };
                batch.event(self.context.incident_event(page.id, event));
                Ok((detail, batch))
            })
            .await
    }
}
