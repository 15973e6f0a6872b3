//! Form of a new monitor or of one that is changed: the fields of its type, the rest folded, and the test beside it.

use parallax_core::check::{CheckKind, Method, RecordType};
use parallax_core::observation::ProbeOutcome;
use parallax_core::vantage::Region;
use parallax_template::template_file;

use super::outcome::VantageLabels;
use super::waterfall::{self, PHASES, RegionResult, WaterfallLine};
use crate::views::assets;
use crate::views::dashboard::Frame;
use crate::views::dashboard::form::FormView;

/// Types as cards: type, icon, title, explanation.
const KINDS: [(CheckKind, &str, &str, &str); 8] = [
    (CheckKind::Http, "pulse", "HTTP", "Website or API"),
    (CheckKind::Tcp, "plug", "TCP", "Port accepts a connection"),
    (CheckKind::Dns, "book", "DNS", "Record has the right answer"),
    (CheckKind::Ping, "globe", "Ping", "Host answers"),
    (CheckKind::Certificate, "cert", "Certificate", "Valid and not ending soon"),
    (CheckKind::Domain, "flag", "Domain", "Registration not ending soon"),
    (CheckKind::Heartbeat, "heart", "Heartbeat", "Job pings in time"),
    (CheckKind::Component, "vendor", "Vendor", "Another status page"),
];

/// Fields with their labels, for the summary of faults.
const LABELS: [(&str, &str); 21] = [
    ("name", "Name"),
    ("groupName", "Group"),
    ("url", "URL"),
    ("host", "Host"),
    ("port", "Port"),
    ("dnsType", "Record type"),
    ("dnsExpect", "Must contain"),
    ("warnDays", "Days before the end"),
    ("periodMinutes", "Expected every"),
    ("graceMinutes", "Grace"),
    ("vendorUrl", "Vendor's status page"),
    ("vendorComponent", "Component"),
    ("slowThresholdMs", "Slow above"),
    ("slowThresholds", "Slow above, by region"),
    ("latencyLocations", "Response time counts from"),
    ("pinnedRegion", "Check from"),
    ("method", "Method"),
    ("headers", "Headers"),
    ("body", "Body"),
    ("expectStatus", "Expected status"),
    ("keyword", "Keyword"),
];

/// Rows for new headers that the form offers at least.
const HEADER_ROWS: usize = 3;
/// Step of suggested thresholds, in milliseconds.
const SUGGESTION_STEP: u32 = 50;

/// Units of a period: minutes in one, and text.
pub(crate) const UNITS: [(&str, &str); 3] = [("1", "minutes"), ("60", "hours"), ("1440", "days")];

/// Result of a test, as the form shows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TestView {
    /// CSS class and icon of the verdict.
    pub class: &'static str,
    /// Verdict in words.
    pub verdict: String,
    /// One line a region.
    pub lines: Vec<WaterfallLine>,
    /// Address that all of them checked; empty if they differ.
    pub address: String,
    /// Threshold that fits the times, in milliseconds.
    pub suggestion: Option<u32>,
    /// Reason that there was no test, as a sentence; empty if there was one.
    pub problem: String,
}

impl TestView {
    /// Builds the result; `counted` tells the regions whose response times count.
    pub(crate) fn new(results: &[RegionResult<'_>], labels: &VantageLabels, counted: impl Fn(Region) -> bool) -> Self {
        if results.is_empty() {
            return Self::refused("No agent answered in time. Test again.".to_owned());
        }
        let (class, verdict) = waterfall::verdict(results);
        let (lines, address) = waterfall::with_shared_address(waterfall::waterfall(results, labels));
        Self { class, verdict, lines, address, suggestion: suggestion(results, counted), problem: String::new() }
    }

    /// Reports that there was no test, and why.
    pub(crate) fn refused(problem: String) -> Self {
        let (verdict, address) = (String::new(), String::new());
        Self { class: "none", verdict, lines: Vec::new(), address, suggestion: None, problem }
    }

    /// True if a region would fail.
    pub(crate) fn has_failure(&self) -> bool {
        self.lines.iter().any(|line| line.class == "down")
    }
}

/// Suggests one and a half times the slowest counted region, rounded up.
fn suggestion(results: &[RegionResult<'_>], counted: impl Fn(Region) -> bool) -> Option<u32> {
    let latency = |result: &RegionResult<'_>| match result.seen {
        Some((_, ProbeOutcome::Passed(facts))) => facts.latency_ms.filter(|_| counted(result.region)),
        _ => None,
    };
    let slowest = results.iter().filter_map(latency).max()?;
    let wanted = slowest.saturating_add(slowest / 2).max(1);
    Some(wanted.div_ceil(SUGGESTION_STEP).saturating_mul(SUGGESTION_STEP))
}

/// Form of a monitor.
#[template_file("dashboard/monitor_form.html")]
#[derive(Debug, Clone)]
pub(crate) struct MonitorForm {
    pub(crate) frame: Frame,
    /// Path of the list of monitors.
    pub(crate) list: String,
    /// Address that the form is sent to; tests and changes of the type go below it.
    pub(crate) action: String,
    /// Address that Cancel leads to.
    pub(crate) cancel: String,
    /// Name of the monitor; none for a new one.
    pub(crate) name: Option<String>,
    /// Type.
    pub(crate) kind: CheckKind,
    /// The form as typed.
    pub(crate) form: FormView,
    /// Groups of the page.
    pub(crate) groups: Vec<String>,
    /// Secrets that are stored: `2 headers, a body`; empty without any.
    pub(crate) stored: String,
    /// Limits of the plan in words.
    pub(crate) limit: String,
    /// Reason that no further monitor can be made; empty while one can.
    pub(crate) full: String,
    /// True if the plan has monitors of vendors' pages.
    pub(crate) has_components: bool,
    /// True if settings of regions take effect on the plan.
    pub(crate) uses_regions: bool,
    /// Result of a test.
    pub(crate) test: Option<TestView>,
}

impl MonitorForm {
    const fn kinds(&self) -> [(CheckKind, &'static str, &'static str, &'static str); 8] {
        KINDS
    }

    const fn is_new(&self) -> bool {
        self.name.is_none()
    }

    fn title(&self) -> String {
        self.name.as_ref().map_or_else(|| "New monitor".to_owned(), |name| format!("Edit {name}"))
    }

    fn kind_title(&self) -> &'static str {
        KINDS.into_iter().find(|(kind, ..)| *kind == self.kind).map_or("", |(_, _, title, _)| title)
    }

    /// Text of the button that saves.
    fn button(&self) -> &'static str {
        match (self.is_new(), self.test.as_ref().is_some_and(TestView::has_failure)) {
            (true, true) => "Create anyway",
            (true, false) => "Create monitor",
            (false, true) => "Save anyway",
            (false, false) => "Save changes",
        }
    }

    /// Fields with faults and their labels, for the summary.
    fn summary(&self) -> Vec<(String, String)> {
        self.form.fault_links(&LABELS)
    }

    /// Faults that belong to no field of the form.
    fn other_faults(&self) -> Vec<String> {
        self.form.other_faults(&LABELS)
    }

    /// True if a fault is in one of these fields, so that their disclosure is open.
    fn is_open(&self, names: &[&str]) -> bool {
        self.form.has_fault(names)
    }

    const fn has_latency(&self) -> bool {
        self.kind.has_latency()
    }

    const fn has_regions(&self) -> bool {
        !matches!(self.kind, CheckKind::Heartbeat | CheckKind::Component)
    }

    fn is_kind(&self, name: &str) -> bool {
        self.kind.name() == name
    }

    const fn can_be_tested(&self) -> bool {
        !matches!(self.kind, CheckKind::Heartbeat)
    }

    /// Fields of the target: once all are filled in, the script runs the test.
    const fn test_fields(&self) -> &'static str {
        match self.kind {
            CheckKind::Http => "url",
            CheckKind::Tcp | CheckKind::Certificate => "host port",
            CheckKind::Dns => "host dnsType",
            CheckKind::Ping | CheckKind::Domain => "host",
            CheckKind::Component => "vendorUrl",
            CheckKind::Heartbeat => "",
        }
    }

    fn regions_summary(&self) -> String {
        let pinned = Region::ALL.into_iter().find(|region| self.form.is_value("pinnedRegion", region.name()));
        let mut parts = vec![pinned.map_or_else(|| "every region".to_owned(), |it| format!("{} only", it.title()))];
        let own = Region::ALL.into_iter().filter_map(|region| {
            let ms = self.threshold(region);
            (!ms.is_empty()).then(|| format!("{} {ms} ms", region.title()))
        });
        parts.extend(own);
        parts.join(", ")
    }

    fn request_summary(&self) -> String {
        let method = match self.form.value("method") {
            "" => Method::Get.name(),
            method => method,
        };
        let secrets = if self.stored.is_empty() { "no headers" } else { &self.stored };
        format!("{method}, {secrets}")
    }

    fn up_summary(&self) -> String {
        let status = match self.form.value("expectStatus") {
            "" => "any 2xx status".to_owned(),
            status => format!("status {status}"),
        };
        match self.form.value("keyword") {
            "" => status,
            keyword => format!("{status}, {} “{keyword}”", self.keyword_mode()),
        }
    }

    fn keyword_mode(&self) -> &'static str {
        if self.form.is_value("keywordMode", "absent") { "without" } else { "with" }
    }

    /// Threshold of a region as typed.
    fn threshold(&self, region: Region) -> &str {
        self.form.value(&format!("slowThresholds[{}]", region.name()))
    }

    fn regions(&self) -> [(&'static str, &'static str); 6] {
        Region::ALL.map(|region| (region.name(), region.title()))
    }

    fn region_thresholds(&self) -> Vec<(&'static str, &'static str, &str)> {
        Region::ALL.into_iter().map(|region| (region.name(), region.title(), self.threshold(region))).collect()
    }

    fn record_types(&self) -> [&'static str; 6] {
        RecordType::ALL.map(RecordType::name)
    }

    fn methods(&self) -> [&'static str; 6] {
        Method::ALL.map(Method::name)
    }

    /// Typed headers, and empty rows for more.
    fn headers(&self) -> Vec<(&str, &str)> {
        let mut rows: Vec<(&str, &str)> =
            self.form.values("headers.key").zip(self.form.values("headers.value")).collect();
        rows.resize(rows.len().max(HEADER_ROWS), ("", ""));
        rows
    }

    const fn secret_choices(&self) -> [(&'static str, &'static str); 3] {
        [("keep", "Keep"), ("replace", "Replace by what is entered below"), ("remove", "Remove")]
    }

    /// Returns true if that is the choice for the stored secrets: keep, replace or remove.
    fn keeps_secrets(&self, choice: &str) -> bool {
        match self.form.value("secrets") {
            "" => choice == "keep",
            chosen => chosen == choice,
        }
    }

    const fn units(&self) -> [(&'static str, &'static str); 3] {
        UNITS
    }

    const fn phases(&self) -> [(&'static str, &'static str); 5] {
        PHASES
    }

    /// Unit of a length as typed; minutes first.
    fn is_unit(&self, name: &str, minutes: &str) -> bool {
        self.form.is_value(&format!("{name}Unit"), minutes)
    }

    const fn warn_hint(&self) -> &'static str {
        if matches!(self.kind, CheckKind::Domain) { "Left empty: 30 days." } else { "Left empty: 14 days." }
    }

    /// Consequence of a change of the region.
    const fn pinned_hint(&self) -> &'static str {
        if self.is_new() { "" } else { "A change is judged again at once, alerts included." }
    }
}

#[cfg(test)]
mod tests {
    use parallax_core::observation::{Failure, Measurements};
    use parallax_core::vantage::VantageNo;

    use super::*;

    #[test]
    fn a_threshold_is_suggested_from_the_counted_regions() {
        let passed =
            |latency| ProbeOutcome::Passed(Measurements { latency_ms: Some(latency), ..Measurements::default() });
        let (europe, oceania) = (passed(88), passed(261));
        let failed = ProbeOutcome::Failed(Measurements::default(), Failure::Refused);
        let result =
            |region, seen| RegionResult { region, seen: Some((VantageNo(1), seen)), missing: None, threshold_ms: None };
        let results =
            [result(Region::Europe, &europe), result(Region::Oceania, &oceania), result(Region::Asia, &failed)];
        assert_eq!(suggestion(&results, |region| region == Region::Europe), Some(150));
        assert_eq!(suggestion(&results, |_| true), Some(400));
        assert_eq!(suggestion(&results, |region| region == Region::Asia), None);
        let view = TestView::new(&results, &VantageLabels::new(), |_| true);
        assert!(view.has_failure());
        assert_eq!(view.verdict, "2 of 3 regions would be up");
        assert!(!TestView::new(&[], &VantageLabels::new(), |_| true).problem.is_empty());
    }
}
