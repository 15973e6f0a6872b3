//! The small shop that all examples are about: its ids, URLs and signing secret.

use parallax_core::evidence_link::EvidenceReference;
use parallax_core::id::{
    DeliveryId, DeployId, DestinationId, IncidentId, MonitorId, PageId, SeriesId, SubscriberId, UpdateId,
};
use parallax_core::link_token;
use parallax_core::time::Timestamp;

/// The example page.
pub(super) const PAGE: PageId = PageId::from_u128(0x019c_a9f0_6c12_7be2_9d41_c08e_51f7_3a60);
/// The page's monitor.
pub(super) const MONITOR: MonitorId = MonitorId::from_u128(0x019c_a9f1_b7a0_4c1e_8f22_6d90_e3b5_174c);
/// A delivery of one of the monitor's alerts.
pub(super) const DELIVERY: DeliveryId = DeliveryId::from_u128(0x019c_aa7e_0d31_52f8_b6c4_19a7_7e02_d5f3);
/// The page's address.
pub(super) const PAGE_URL: &str = "https://status.shop.example";
/// The URL the monitor requests.
pub(super) const TARGET: &str = "https://shop.example/health";

/// The page's heartbeat monitor.
pub(super) const HEARTBEAT: MonitorId = MonitorId::from_u128(0x019c_a9f2_3e55_7a08_93bd_f41c_0562_e8d7);
/// The example incident.
pub(super) const INCIDENT: IncidentId = IncidentId::from_u128(0x019c_aa7e_0d30_61b4_a2e9_5c37_d8f0_1b42);
/// The incident's update.
pub(super) const UPDATE: UpdateId = UpdateId::from_u128(0x019c_aa7e_5d8c_20f7_8e16_b39a_4cd2_7065);
/// The example deploy marker.
pub(super) const DEPLOY: DeployId = DeployId::from_u128(0x019c_aa60_f94e_13a5_bd78_02e6_9fc1_584b);
/// The example series of maintenance windows.
pub(super) const SERIES: SeriesId = SeriesId::from_u128(0x019c_aa10_2b67_58d0_97a3_e4f1_6b0c_d928);
/// The example destination.
pub(super) const DESTINATION: DestinationId = DestinationId::from_u128(0x019c_a9f5_11c8_7f3e_a04b_d65c_92e1_38b7);

/// The example subscriber.
pub(super) const SUBSCRIBER: SubscriberId = SubscriberId::from_u128(0x019c_a9f7_52d3_6a40_b91c_4e08_7fd5_c263);

/// The secret that the examples are signed with: the numbers from 0 to 31.
pub(in crate::http) const EXAMPLE_SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// Returns the evidence link of the monitor's event with that number.
pub(super) fn evidence_url(seq: u64, at: Timestamp) -> String {
    let reference = EvidenceReference::new(MONITOR, seq, at);
    let signature = [0x2b, 0x3a, 0x8b, 0x80, 0xe8, 0xf3, 0xc1, 0xd9, 0x0a, 0x4b, 0x75, 0x2c, 0x6e, 0x1f, 0xd0, 0x8b];
    format!("https://status.example/evidence/{}", reference.encode(signature))
}

/// Returns the token in a subscriber's links.
pub(super) fn subscriber_token() -> String {
    let id = SUBSCRIBER.to_string();
    link_token::encode(&id, SubscriberId::PREFIX, [0x5a; 16])
}
