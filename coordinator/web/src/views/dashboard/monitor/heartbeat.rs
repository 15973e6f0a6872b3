//! Screen of a heartbeat: its address, snippets for jobs, and its pings.

use chrono_tz::Tz;
use parallax_core::check::HeartbeatCheck;
use parallax_core::explanation::{clock, short_duration};
use parallax_core::heartbeat::{MAX_STORED_PINGS, PingKind, StoredPing};
use parallax_core::text::alters_layout;
use parallax_core::time::{SECOND, Timestamp};
use parallax_template::template_file;

use super::evidence::clock_time;
use super::heading::MonitorHeading;
use super::summary::StateHeadline;
use crate::views::assets;
use crate::views::dashboard::{Frame, words};
use crate::views::format::FormattedTime;

/// Bytes of a ping's body that the screen shows.
const MAX_SHOWN_BODY: usize = 2_048;

/// Tools with a snippet: name in the address, text.
const TOOLS: [(&str, &str); 6] = [
    ("cron", "cron"),
    ("curl", "curl"),
    ("systemd", "systemd"),
    ("kubernetes", "Kubernetes"),
    ("powershell", "PowerShell"),
    ("python", "Python"),
];

/// Screen of a heartbeat.
#[template_file("dashboard/monitor_heartbeat.html")]
#[derive(Debug, Clone)]
pub(crate) struct HeartbeatScreen {
    pub(crate) frame: Frame,
    pub(crate) heading: MonitorHeading,
    pub(crate) headline: Option<StateHeadline>,
    /// Notice: CSS class, bold words, the rest.
    pub(crate) notices: Vec<(&'static str, String, String)>,
    /// Address for pings; none for those who may not see it.
    pub(crate) address: Option<String>,
    /// Tools to choose from: address, text, true for the present one.
    pub(crate) tools: Vec<(String, &'static str, bool)>,
    /// Snippets of the chosen tool: heading and lines.
    pub(crate) snippets: Vec<(&'static str, String)>,
    /// Times until it is down without a ping: CSS class, true where it counts, time, text.
    pub(crate) timeline: Vec<(&'static str, bool, String, String)>,
    pub(crate) facts: Vec<(String, String, String)>,
    /// Pings, newest first.
    pub(crate) pings: Vec<PingRow>,
}

impl HeartbeatScreen {
    /// Number of pings that are kept.
    const fn kept(&self) -> u64 {
        MAX_STORED_PINGS
    }
}

/// A ping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PingRow {
    /// Time.
    pub at: FormattedTime,
    /// CSS class, icon and word of its kind.
    pub label: (&'static str, &'static str, String),
    /// Run time, if it was measured.
    pub run: Option<String>,
    /// Method, client and address.
    pub source: String,
    /// Body, cut and with control characters made visible; empty for those who may not see it.
    pub body: String,
}

impl PingRow {
    /// Builds the row of a ping.
    pub(crate) fn of(ping: &StoredPing, (now, zone): (Timestamp, Tz)) -> Self {
        let label = match ping.kind {
            PingKind::Succeeded => ("up", "up", "success".to_owned()),
            PingKind::Started => ("none", "again", "started".to_owned()),
            PingKind::Failed(Some(code)) => ("down", "down", format!("exit code {code}")),
            PingKind::Failed(None) => ("down", "down", "failed".to_owned()),
            PingKind::Log => ("none", "book", "log".to_owned()),
        };
        let client = ping.client_ip.map(|ip| ip.to_string());
        let agent = Some(ping.user_agent.as_str()).filter(|agent| !agent.is_empty()).map(visible);
        let source: Vec<String> = [Some(ping.method.clone()), client, agent].into_iter().flatten().collect();
        Self {
            at: clock_time(ping.at, now, zone),
            label,
            run: ping.run_ms.map(words::elapsed),
            source: source.join(" · "),
            body: shown_body(&ping.body),
        }
    }
}

/// Text from outside, cut and with control and direction characters made visible.
fn shown_body(body: &[u8]) -> String {
    let cut = body.get(..MAX_SHOWN_BODY).unwrap_or(body);
    let text = visible(&String::from_utf8_lossy(cut));
    if cut.len() < body.len() { format!("{text}…") } else { text }
}

fn visible(text: &str) -> String {
    let letter = |letter: char| match letter {
        '\n' | '\t' => letter,
        it if alters_layout(it) => char::REPLACEMENT_CHARACTER,
        it => it,
    };
    text.chars().map(letter).collect()
}

/// Times of the next ping: expected, late, down. The deadline may be later than the last ping tells: after a pause, and
/// where pings may have been lost.
pub(crate) fn timeline(
    check: &HeartbeatCheck,
    (last_ping, deadline): (Option<Timestamp>, Option<Timestamp>),
    (now, zone): (Timestamp, Tz),
) -> Vec<(&'static str, bool, String, String)> {
    let (period, grace) = (i64::from(check.period_seconds) * SECOND, i64::from(check.grace_seconds) * SECOND);
    let from = deadline.map(|deadline| deadline - grace - period);
    let at = |offset: i64, otherwise: &str| {
        from.map_or_else(|| otherwise.to_owned(), |from| clock(from + offset, zone, now))
    };
    let period_text = short_duration(period);
    let expected = match from == last_ping || from.is_none() {
        true => format!("expected, from the last ping plus {period_text}"),
        false => "expected".to_owned(),
    };
    let mut steps = vec![("none", false, at(period, "one period later"), expected)];
    if grace > 0 {
        let text = format!("late, within the grace of {}. Shown here, nothing sent.", short_duration(grace));
        steps.push(("slow", false, format!("until {}", at(period + grace, "the end of the grace")), text));
    }
    let text = "down. Alerts go out at once: a missing ping needs no second network.".to_owned();
    steps.push(("down", true, at(period + grace, "then"), text));
    steps
}

/// Choices of the tool, with the chosen one.
pub(crate) fn tools(path: &str, chosen: &str) -> Vec<(String, &'static str, bool)> {
    let chosen = chosen_tool(chosen);
    TOOLS.map(|(name, text)| (format!("{path}?tool={name}#snippets"), text, name == chosen)).into()
}

fn chosen_tool(name: &str) -> &'static str {
    TOOLS.into_iter().map(|(it, _)| it).find(|it| *it == name).unwrap_or("cron")
}

/// Snippets of a tool for pings to that address.
pub(crate) fn snippets(tool: &str, url: &str) -> Vec<(&'static str, String)> {
    match chosen_tool(tool) {
        "curl" => vec![
            ("Success", format!("curl -fsS -m 10 --retry 5 {url}")),
            ("Exit code with the output", format!("report 2>&1 | curl -fsS -m 10 --retry 5 --data-binary @- {url}/$?")),
        ],
        "systemd" => vec![(
            "In the unit of the job",
            format!(
                "[Service]\nExecStartPre=-/usr/bin/curl -fsS -m 10 {url}/start\nExecStart=/usr/local/bin/report\n\
                 ExecStopPost=-/usr/bin/curl -fsS -m 10 --retry 5 {url}/${{EXIT_STATUS}}"
            ),
        )],
        "kubernetes" => vec![(
            "In the CronJob",
            format!(
                "containers:\n- name: report\n  image: example/report\n  command: [\"/bin/sh\", \"-c\"]\n  args:\n  - |\n    \
                 wget -q -T 10 -O /dev/null {url}/start\n    /usr/local/bin/report\n    wget -q -T 10 -O /dev/null {url}/$?"
            ),
        )],
        "powershell" => vec![(
            "Success and failure",
            format!(
                "& C:\\Jobs\\report.exe\nInvoke-RestMethod -Method Post -TimeoutSec 10 -Uri \"{url}/$LASTEXITCODE\""
            ),
        )],
        "python" => vec![(
            "Success and failure",
            format!(
                "import subprocess, urllib.request\ncode = subprocess.call([\"/usr/local/bin/report\"])\n\
                 urllib.request.urlopen(f\"{url}/{{code}}\", timeout=10)"
            ),
        )],
        _ => vec![
            ("Success only", format!("0 3 * * * /usr/local/bin/report && curl -fsS -m 10 --retry 5 {url}")),
            (
                "Success, failure and run time",
                format!(
                    "0 3 * * * U={url}; curl -fsS -m 10 $U/start; /usr/local/bin/report; curl -fsS -m 10 --retry 5 $U/$?"
                ),
            ),
        ],
    }
}

#[cfg(test)]
mod tests {
    use parallax_core::time::MINUTE;

    use super::*;
    use crate::views::tests::NOW;

    #[test]
    fn every_tool_has_a_snippet_with_the_address() {
        let url = "https://status.example/ping/token";
        for (name, _) in TOOLS {
            let all = snippets(name, url);
            assert!(!all.is_empty() && all.iter().all(|(_, lines)| lines.contains(url)), "{name}");
        }
        assert_eq!(snippets("other", url), snippets("cron", url));
        assert_eq!(tools("/x", "python").iter().filter(|(_, _, chosen)| *chosen).count(), 1);
    }

    #[test]
    fn bodies_are_cut_and_show_what_is_hidden() {
        assert_eq!(shown_body("a\u{202e}b\u{7}\nc".as_bytes()), "a\u{fffd}b\u{fffd}\nc");
        let long = vec![b'x'; MAX_SHOWN_BODY + 1];
        assert_eq!(shown_body(&long).chars().count(), MAX_SHOWN_BODY + 1);
        assert!(shown_body(&long).ends_with('…'));
    }

    #[test]
    fn the_timeline_names_the_times_of_the_next_ping() {
        let check = HeartbeatCheck { period_seconds: 3600, grace_seconds: 300, token: String::new() };
        let times = |deadline: Timestamp| {
            let steps = timeline(&check, (Some(NOW), Some(deadline)), (NOW, Tz::UTC));
            (steps[0].3.clone(), steps.into_iter().map(|(_, _, time, _)| time).collect::<Vec<_>>())
        };
        let (text, of_ping) = times(NOW + 65 * MINUTE);
        assert_eq!(
            (text.as_str(), of_ping.join(", ").as_str()),
            ("expected, from the last ping plus 1 h", "13:46, until 13:51, 13:51")
        );
        // Resumed an hour later: the deadline is not that of the last ping.
        let (text, resumed) = times(NOW + 125 * MINUTE);
        assert_eq!((text.as_str(), resumed.join(", ").as_str()), ("expected", "14:46, until 14:51, 14:51"));
        let without_grace = HeartbeatCheck { grace_seconds: 0, ..check };
        assert_eq!(timeline(&without_grace, (None, None), (NOW, Tz::UTC)).len(), 2);
    }
}
