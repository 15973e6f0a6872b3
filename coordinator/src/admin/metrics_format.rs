//! Formats of `/metrics`: the classic Prometheus text format, or OpenMetrics if the scraper accepts it.

use std::borrow::Cow;

use parallax_core::text::accept::{media_ranges, weight};

/// A format of the metrics page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MetricsFormat {
    /// The text format, version 0.0.4.
    Text,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl MetricsFormat {
    /// Chooses the format for these values of `Accept`: OpenMetrics if it is listed and plain text is not
    /// preferred, else text, which browsers and `curl` can also read.
    pub(super) fn negotiate(values: &[&str]) -> Self {
        let open = media_ranges(values.iter().copied())
            .filter(|range| range.is("application/openmetrics-text"))
            .filter(|range| matches!(range.version, None | Some("1.0.0" | "0.0.1")))
            .map(|range| range.weight)
            .fold(0.0, f32::max);
        if open > 0.0 && open >= weight(values.iter().copied(), "text/plain") { Self::OpenMetrics } else { Self::Text }
    }

    /// Returns the format's `Content-Type`.
    pub(super) const fn media_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// Converts a page from OpenMetrics to this format.
    pub(super) fn convert(self, open_metrics: String) -> String {
        match self {
            Self::Text => text(&open_metrics),
            Self::OpenMetrics => open_metrics,
        }
    }
}

/// Converts an OpenMetrics page to the text format, in which a counter's `HELP` and `TYPE` name its sample (with
/// `_total`), types have other names, and units and the end marker are left out.
fn text(open_metrics: &str) -> String {
    let mut page = String::with_capacity(open_metrics.len());
    // HELP precedes TYPE, which decides the family's name in the text format.
    let mut help = None;
    for line in open_metrics.lines() {
        if let Some(described) = line.strip_prefix("# HELP ") {
            help = described.split_once(' ').map(|(_, help_text)| help_text);
        } else if let Some(typed) = line.strip_prefix("# TYPE ") {
            let (family, kind) = typed.split_once(' ').unwrap_or((typed, "unknown"));
            let (name, kind) = match kind {
                "counter" => (Cow::Owned(format!("{family}_total")), "counter"),
                "info" => (Cow::Owned(format!("{family}_info")), "gauge"),
                "stateset" => (Cow::Borrowed(family), "gauge"),
                "unknown" => (Cow::Borrowed(family), "untyped"),
                other => (Cow::Borrowed(family), other),
            };
            if let Some(help_text) = help.take() {
                page.extend(["# HELP ", &name, " ", help_text, "\n"]);
            }
            page.extend(["# TYPE ", &name, " ", kind, "\n"]);
        } else if !line.starts_with('#') {
            page.extend([line, "\n"]);
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_metrics_is_for_clients_that_accept_it() {
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
            application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
        for (accept, expected) in [
            (prometheus, MetricsFormat::OpenMetrics),
            ("application/openmetrics-text", MetricsFormat::OpenMetrics),
            ("application/openmetrics-text; version=1.0.0, text/plain", MetricsFormat::OpenMetrics),
            ("application/openmetrics-text;q=0.1, text/plain;q=0.2", MetricsFormat::Text),
            ("application/openmetrics-text;q=0", MetricsFormat::Text),
            ("application/openmetrics-text;version=2.0.0", MetricsFormat::Text),
            ("text/plain;version=0.0.4", MetricsFormat::Text),
            ("text/html,application/xhtml+xml,*/*;q=0.8", MetricsFormat::Text),
            ("*/*", MetricsFormat::Text),
            ("", MetricsFormat::Text),
        ] {
            assert_eq!(MetricsFormat::negotiate(&[accept]), expected, "{accept}");
        }
        assert_eq!(MetricsFormat::negotiate(&[]), MetricsFormat::Text);
    }

    #[test]
    fn the_text_format_names_counters_by_their_samples() {
        let open = "# HELP a Requests.\n# TYPE a counter\na_total{class=\"2xx\"} 1\n\
            # HELP b_seconds Time.\n# TYPE b_seconds histogram\n# UNIT b_seconds seconds\nb_seconds_sum 1.0\n\
            # TYPE c gauge\nc 2\n# TYPE d unknown\nd 3\n# EOF\n";
        let expected = "# HELP a_total Requests.\n# TYPE a_total counter\na_total{class=\"2xx\"} 1\n\
            # HELP b_seconds Time.\n# TYPE b_seconds histogram\nb_seconds_sum 1.0\n\
            # TYPE c gauge\nc 2\n# TYPE d untyped\nd 3\n";
        assert_eq!(MetricsFormat::Text.convert(open.to_owned()), expected);
        assert_eq!(MetricsFormat::OpenMetrics.convert(open.to_owned()), open);
    }
}
