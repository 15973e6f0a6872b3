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
    "{% include \"x\" %} {{ content.title }}",
    "👩\u{200d}👩\u{200d}👧 ünïcödé العربية",
    "",
];

fn hostile() -> Vec<String> {
    let long = ["<", "&", "@", "*", "🚀", "é", "\u{202e}", "A"].map(|character| character.repeat(4_000));
    HOSTILE.into_iter().map(str::to_owned).chain(long).collect()
}

#[test]
fn hostile_text_is_escaped_in_every_chat() {
    for text in hostile() {
        let fixture = AlertFixture { page: &text, monitor: &text, reason: Some(&text), ..AlertFixture::default() };
        for (channel, kind) in ChannelKind::ALL.into_iter().flat_map(|c| AlertKind::ALL.map(|k| (c, k))) {
            if matches!(channel, ChannelKind::Email | ChannelKind::Webhook) {
                continue;
            }
            let body = fixture.json(channel, kind);
            let mut found = Vec::new();
            texts(&body, "", &mut found);
            for (path, output) in found {
                let at = format!("{} {path} of {text:?}: {output:?}", channel.name());
                assert!(channel == ChannelKind::Telegram || output.chars().count() <= 4_096, "{at}");
                let is_clean = output.split('\n').all(|part| text::single_line(part, 9_999) == part.trim());
                assert!(is_clean, "{at}");
                match channel {
                    ChannelKind::Slack => {
                        assert!(!output.contains(['<', '>']), "{at}");
                        assert!(!output.contains("]("), "{at}");
                        assert!(!output.contains("@channel") && !output.contains("@here"), "{at}");
                        assert!(output.encode_utf16().count() <= 3_000, "{at}");
                    }
                    ChannelKind::Discord => {
                        // A footer doesn't support Markdown.
                        assert!(path.ends_with("/footer/text") || is_literal(output), "{at}");
                        assert!(!output.contains("@everyone"), "{at}");
                    }
                    ChannelKind::Teams => assert!(!output.contains("{{"), "{at}"),
                    ChannelKind::Telegram if path == "/text" => assert_only_our_tags(output, &at),
                    ChannelKind::Ntfy => assert!(output.len() <= 4_096, "{at}"),
                    ChannelKind::PagerDuty if path == "/payload/summary" => {
                        assert!(output.chars().count() <= 1_024, "{at}");
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Returns true if Discord shows the text literally: everything that isn't escaped is no markup.
fn is_literal(text: &str) -> bool {
    let (mut unescaped, mut characters) = (String::new(), text.chars().peekable());
    while let Some(character) = characters.next() {
        let is_escape = character == '\\' && characters.peek().is_some_and(|next| next.is_ascii_punctuation());
        unescaped.push(if is_escape { characters.next().map_or(character, |_| 'x') } else { character });
    }
    let is_pair = ["**", "__", "~~", "||"].iter().any(|pair| unescaped.contains(pair));
    let is_link = unescaped.find("](").is_some_and(|end| unescaped.get(..end).is_some_and(|start| start.contains('[')));
    let is_mention = ["<@", "<#", "<:", "<t:", "<http"].iter().any(|start| unescaped.contains(start));
    let is_block =
        |line: &str| ["# ", "## ", "> ", ">>> ", "- ", "* ", "-# "].iter().any(|it| line.trim_start().starts_with(it));
    !(is_pair || is_link || is_mention || unescaped.contains('`') || unescaped.lines().any(is_block))
}

fn assert_only_our_tags(text: &str, at: &str) {
    let ours = ["<b>", "</b>", "<a href=\"https://shop.example\">", "</a>"];
    let rest = ours.iter().fold(text.to_owned(), |rest, tag| rest.replacen(tag, "", 1));
    assert!(!rest.contains(['<', '>', '"']), "{at}");
    let unescaped = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")];
    let unescaped = unescaped.iter().fold(rest.clone(), |text, (entity, character)| text.replace(entity, character));
    assert!(unescaped.encode_utf16().count() <= 4_096, "{at}");
    for part in rest.split('&').skip(1) {
        assert!(["amp;", "lt;", "gt;", "quot;"].iter().any(|entity| part.starts_with(entity)), "{at}");
    }
}

#[test]
fn hostile_text_is_escaped_in_mails() {
    for text in hostile() {
        let fixture = AlertFixture { page: &text, monitor: &text, reason: Some(&text), ..AlertFixture::default() };
        let usual = AlertFixture { reason: Some("x"), ..AlertFixture::default() };
        for kind in AlertKind::ALL {
            let mail = mail::with_unsubscribe(&fixture.mail(kind), &named(&text), "https://s.example/u");
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
fn a_webhook_has_hostile_text_unchanged() {
    for text in hostile() {
        let body =
            AlertFixture { monitor: &text, ..AlertFixture::default() }.json(ChannelKind::Webhook, AlertKind::WentDown);
        assert_eq!(body["monitor"], text.as_str());
    }
}
