//! Badges are readable and show the known data.

use parallax_core::event::MonitorStatus;

use super::*;
use crate::views::feeds::tests::HOSTILE_TEXTS;
use crate::views::tests::{monitor_view, page_view};

fn luminance(color: &str) -> f64 {
    let channel = |at: usize| {
        let value = f64::from(u8::from_str_radix(&color[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.03928 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
}

#[test]
fn white_text_is_readable_on_each_badge_color() {
    for class in ["up", "slow", "part", "down", "maint", "none"] {
        let contrast = 1.05 / (luminance(color(class)) + 0.05);
        assert!(contrast >= 4.5, "{class}: {contrast}");
    }
    assert!(1.05 / (luminance("#444c56") + 0.05) >= 4.5);
}

#[test]
fn badges_show_the_known_data_of_each_metric() {
    let badge_data = BadgeData::from_page(&page_view());
    let message_of = |monitor: Option<u128>, metric| {
        let badge = Badge::of(badge_data.values(monitor.map(MonitorId::from_u128)).unwrap(), metric, None);
        (badge.label, badge.message, badge.class)
    };
    let expected = |label: &str, message: &str, class| (label.to_owned(), message.to_owned(), class);
    assert_eq!(message_of(None, BadgeMetric::Status), expected("status", "partial outage", "part"));
    assert_eq!(message_of(Some(3), BadgeMetric::Status), expected("status", "down from Asia", "part"));
    assert_eq!(message_of(Some(1), BadgeMetric::Uptime(1)), expected("uptime 1d", "99.982 %", "up"));
    assert_eq!(message_of(Some(5), BadgeMetric::Uptime(90)), expected("uptime 90d", "no data", "none"));
    assert_eq!(message_of(Some(2), BadgeMetric::Response), expected("response time", "110 ms", "slow"));
    assert_eq!(badge_data.values(Some(MonitorId::from_u128(9))), None);
    let paused = monitor_values(&monitor_view(1, "x", "y", MonitorStatus::Down, 0), true);
    assert_eq!(&*paused.status, "was down");
}

#[test]
fn a_response_time_is_colored_only_with_current_data() {
    let message_and_class = |status, is_stale, change: fn(&mut MonitorView)| {
        let mut view = monitor_view(1, "x", "y", status, 0);
        change(&mut view);
        let badge = Badge::of(&monitor_values(&view, is_stale), BadgeMetric::Response, None);
        (badge.message, badge.class)
    };
    for (status, is_stale, class) in [
        (MonitorStatus::Up, false, "up"),
        (MonitorStatus::Slow, false, "slow"),
        (MonitorStatus::Down, false, "none"),
        (MonitorStatus::Unknown, false, "none"),
        (MonitorStatus::Up, true, "none"),
        (MonitorStatus::Slow, true, "none"),
    ] {
        let expected = ("99 ms".to_owned(), class);
        assert_eq!(message_and_class(status, is_stale, |_| {}), expected, "{status:?} {is_stale}");
    }
    for change in
        [|view: &mut MonitorView| view.monitor.paused = true, |view: &mut MonitorView| view.in_maintenance = true]
    {
        assert_eq!(message_and_class(MonitorStatus::Up, false, change).1, "none");
    }
    assert_eq!(
        message_and_class(MonitorStatus::Up, false, |view| view.latency_ms = None),
        ("no data".to_owned(), "none")
    );
}

#[test]
fn any_label_is_read_back_unchanged_from_the_badge() {
    let badge_data = BadgeData::from_page(&page_view());
    for text in HOSTILE_TEXTS {
        let clean = sanitize(text);
        for style in [BadgeStyle::Flat, BadgeStyle::Square, BadgeStyle::Large] {
            let badge = Badge::of(badge_data.values(None).unwrap(), BadgeMetric::Status, Some((*text).to_owned()));
            let svg = badge.svg(style).unwrap();
            let expected = if style == BadgeStyle::Large { clean.to_uppercase() } else { clean.clone() };
            let texts = crate::views::feeds::tests::texts(&svg, "text");
            assert_eq!(texts.first(), Some(&expected), "{}", String::from_utf8_lossy(&svg));
            assert_eq!(texts.len(), 2);
            assert_eq!(badge.shields()["label"], *text);
        }
    }
    let unlabelled = Badge::not_found(BadgeMetric::Status, Some(String::new()));
    let svg = String::from_utf8(unlabelled.svg(BadgeStyle::Flat).unwrap()).unwrap();
    assert!(svg.contains("<title>not found</title>") && svg.contains("role=\"img\""), "{svg}");
    assert_eq!(unlabelled.shields()["isError"], true);
}
