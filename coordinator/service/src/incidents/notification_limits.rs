//! Rate limit of notifications to subscribers: an update is one record for each subscriber, kept for 30 days.

use std::sync::atomic::{AtomicBool, Ordering};

use parallax_core::page::Page;
use parallax_core::rate_limit::RateExceeded;

use super::IncidentService;
use crate::{ServiceError, ServiceResult};

/// Updates in an hour that notify a page's subscribers.
const PAGE_AN_HOUR: u32 = 60;
/// Updates in an hour that notify subscribers of all of an account's pages.
const ACCOUNT_AN_HOUR: u32 = 600;

impl IncidentService {
    /// Counts a person's update that notifies a page's subscribers, if there are any: once per request, which
    /// `is_counted` records.
    ///
    /// # Errors
    /// [`ServiceError::NotificationLimit`] beyond the limit.
    pub(super) async fn admit_notification(
        &self,
        page: &Page,
        notify: bool,
        is_counted: &AtomicBool,
    ) -> ServiceResult<()> {
        let id = page.id;
        if !notify
            || is_counted.swap(true, Ordering::Relaxed)
            || self.context.store().read(move |store| store.subscribers_count(id)).await? == 0
        {
            return Ok(());
        }
        let too_many = |scope, limit| {
            move |RateExceeded { seconds }: RateExceeded| ServiceError::NotificationLimit { scope, limit, seconds }
        };
        self.context
            .check_rate(&self.page_notify_limit, PAGE_AN_HOUR, &page.id)
            .map_err(too_many("a page's subscribers", PAGE_AN_HOUR))?;
        self.context
            .check_rate(&self.account_notify_limit, ACCOUNT_AN_HOUR, &page.account)
            .map_err(too_many("subscribers of an account's pages", ACCOUNT_AN_HOUR))
    }
}
