//! Where the evidence link stands in each channel's alerts.

use super::*;

const LINK: &str = "https://status.example/evidence/01kjm8m5z8000000000000bc55";
const CHANNELS: [ChannelKind; 7] = [
    ChannelKind::Webhook,
    ChannelKind::Slack,
    ChannelKind::Discord,
    ChannelKind::Teams,
    ChannelKind::Telegram,
    ChannelKind::Ntfy,
    ChannelKind::PagerDuty,
];

#[test]
fn every_channel_shows_the_link_in_alerts_of_outages_alone() {
    let linked = AlertFixture { evidence_url: Some(LINK), ..AlertFixture::default() };
    for kind in AlertKind::ALL {
        let is_outage = matches!(kind, AlertKind::WentDown | AlertKind::StillDown | AlertKind::Recovered);
        for channel in CHANNELS {
            assert_eq!(linked.json(channel, kind).to_string().contains(LINK), is_outage, "{channel:?} {kind:?}");
            let plain = AlertFixture::default().json(channel, kind).to_string();
            assert!(!plain.contains("/evidence/"), "{channel:?} {kind:?}");
        }
        let mail = linked.mail(kind);
        assert_eq!(mail.html.contains(&format!("<a href=\"{LINK}\">")), is_outage, "{kind:?}");
        assert_eq!(mail.text.contains(&format!("(for 7 days): {LINK}\n")), is_outage, "{}", mail.text);
        assert!(mail.text.contains("Open the status page: https://shop.example"), "{}", mail.text);
    }
}
