//! Hostile texts on every channel and event.

use super::*;

/// Collects every string of a body with its path.
fn texts<'a>(value: &'a Value, path: &str, found: &mut Vec<(String, &'a str)>) {
    match value {
        Value::String(text) => found.push((path.to_owned(), text)),
        Value::Array(items) => items.iter().for_each(|item| texts(item, path, found)),
        Value::Object(fields) => {
            fields.iter().for_each(|(name, field)| texts(field, &format!("{path}/{name}"), found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

const HOSTILE: [&str; 16] = [
    "Cart\r\nBcc: eve@evil.example\r\n\r\nHello",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "\"><a href=\"https://evil.example\">x</a>",
    "[log in](https://evil.example) ![x](https://evil.example/x.png)",
    "<!channel> <@U024BE7LH> <https://evil.example|Status page> &lt;!here&gt;",
    "@everyone @here @channel <@&1234> <#1>",
    "\u{202e}gpj.exe\u{202c} \u{2066}x\u{2069} \u{200f}y",
    "a\u{0}b\u{1b}[31mc\u{9b}d\u{7f}",
    "line\u{2028}line\u{2029}line\u{85}line",
    "`code` **bold** __under__ ~~gone~~ ||hidden|| # head > quote",
    "</b></a><tg-spoiler>x</tg-spoiler> &amp; &#60;",
    "{{DATE(2026-03-01T09:30:00Z)}} <at>Ann</at>",
    "-->  <!--footer--> ]]>",
    "{% include \"x\" %} {{ sheet.title }}",
    "👩\u{200d}👩\u{200d}👧 ünïcödé العربية",
    "",
];

fn hostile() -> Vec<String> {
    let long = ["<", "&", "@", "*", "🚀", "é", "\u{202e}", "A"].map(|sign| sign.repeat(4_000));
    HOSTILE.into_iter().map(str::to_owned).chain(long).collect()
}

#[test]
fn a_text_from_outside_stays_a_text_in_every_chat() {
    for text in hostile() {
        let cast = AlertCast { page: &text, monitor: &text, reason: Some(&text), is_test: false };
        for (channel, kind) in ChannelKind::ALL.into_iter().flat_map(|c| AlertKind::ALL.map(|k| (c, k))) {
            if matches!(channel, ChannelKind::Email | ChannelKind::Webhook) {
                continue;
            }
            let body = cast.json(channel, kind);
            let mut found = Vec::new();
            texts(&body, "", &mut found);
            for (path, shown) in found {
                let at = format!("{} {path} of {text:?}: {shown:?}", channel.name());
                assert!(channel == ChannelKind::Telegram || shown.chars().count() <= 4_096, "{at}");
                let is_clean = shown.split('\n').all(|part| text::single_line(part, 9_999) == part.trim());
                assert!(is_clean, "{at}");
                match channel {
                    ChannelKind::Slack => {
                        assert!(!shown.contains(['<', '>']), "{at}");
                        assert!(!shown.contains("]("), "{at}");
                        assert!(!shown.contains("@channel") && !shown.contains("@here"), "{at}");
                        assert!(shown.encode_utf16().count() <= 3_000, "{at}");
                    }
                    ChannelKind::Discord => {
                        // A footer doesn't support Markdown.
                        assert!(path.ends_with("/footer/text") || is_literal(shown), "{at}");
                        assert!(!shown.contains("@everyone"), "{at}");
                    }
                    ChannelKind::Teams => assert!(!shown.contains("{{"), "{at}"),
                    ChannelKind::Telegram if path == "/text" => assert_only_our_tags(shown, &at),
                    ChannelKind::Ntfy => assert!(shown.len() <= 4_096, "{at}"),
                    ChannelKind::PagerDuty if path == "/payload/summary" => {
                        assert!(shown.chars().count() <= 1_024, "{at}");
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Returns true if Discord shows the text literally: everything that isn't escaped is no markup.
fn is_literal(shown: &str) -> bool {
    let (mut bare, mut signs) = (String::new(), shown.chars().peekable());
    while let Some(sign) = signs.next() {
        let is_escape = sign == '\\' && signs.peek().is_some_and(|next| next.is_ascii_punctuation());
        bare.push(if is_escape { signs.next().map_or(sign, |_| 'x') } else { sign });
    }
    let is_pair = ["**", "__", "~~", "||"].iter().any(|pair| bare.contains(pair));
    let is_link = bare.find("](").is_some_and(|end| bare.get(..end).is_some_and(|start| start.contains('[')));
    let is_mention = ["<@", "<#", "<:", "<t:", "<http"].iter().any(|start| bare.contains(start));
    let begins =
        |line: &str| ["# ", "## ", "> ", ">>> ", "- ", "* ", "-# "].iter().any(|it| line.trim_start().starts_with(it));
    !(is_pair || is_link || is_mention || bare.contains('`') || bare.lines().any(begins))
}

fn assert_only_our_tags(shown: &str, at: &str) {
    let ours = ["<b>", "</b>", "<a href=\"https://shop.example\">", "</a>"];
    let rest = ours.iter().fold(shown.to_owned(), |rest, tag| rest.replacen(tag, "", 1));
    assert!(!rest.contains(['<', '>', '"']), "{at}");
    let read = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")];
    let read = read.iter().fold(rest.clone(), |text, (entity, sign)| text.replace(entity, sign));
    assert!(read.encode_utf16().count() <= 4_096, "{at}");
    for part in rest.split('&').skip(1) {
        assert!(["amp;", "lt;", "gt;", "quot;"].iter().any(|entity| part.starts_with(entity)), "{at}");
    }
}

#[test]
fn a_text_from_outside_stays_a_text_in_a_mail() {
    for text in hostile() {
        let cast = AlertCast { page: &text, monitor: &text, reason: Some(&text), is_test: false };
        let usual = AlertCast { reason: Some("x"), ..AlertCast::default() };
        for kind in AlertKind::ALL {
            let mail = mail::with_unsubscribe(&cast.mail(kind), &named(&text), "https://s.example/u");
            let at = format!("{text:?}: {mail:?}");
            assert!(!mail.subject.contains(char::is_control) && mail.subject.chars().count() <= 200, "{at}");
            assert!(mail.html.len() + mail.text.len() < 40_000, "{at}");
            let tags = |html: &str| html.matches('<').count();
            let plain = mail::with_unsubscribe(&usual.mail(kind), &named("x"), "https://s.example/u");
            assert_eq!(tags(&mail.html), tags(&plain.html), "{at}");
            assert_eq!(mail.html.matches("<!--footer-->").count(), 0, "{at}");
            assert!(!mail.text.contains(['\r', '\0', '\u{202e}']), "{at}");
            assert_eq!(mail.text.lines().count(), plain.text.lines().count(), "{at}");
        }
    }
}

#[test]
fn a_webhook_holds_a_hostile_text_as_it_is() {
    for text in hostile() {
        let told = AlertCast { monitor: &text, ..AlertCast::default() }.json(ChannelKind::Webhook, AlertKind::WentDown);
        assert_eq!(told["monitor"], text.as_str());
    }
}
