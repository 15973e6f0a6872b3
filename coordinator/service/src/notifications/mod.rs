//! Notifications as people manage them: alert settings, destinations, deliveries and subscribers.

pub mod alert_settings;
pub(crate) mod confirmation_limits;
mod confirmation_requests;
pub mod deliveries;
pub mod destinations;
pub mod subscribers;
