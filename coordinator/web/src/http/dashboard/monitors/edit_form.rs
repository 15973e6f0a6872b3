//! Forms that make and change a monitor: drawn, tested, and saved by the rules of the API.

use std::collections::BTreeSet;
use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::check::{Check, CheckKind};
use parallax_core::id::{MonitorId, PageId};
use parallax_core::monitor::edit::MonitorEdit;
use parallax_core::monitor::{Monitor, NewMonitor};
use parallax_core::page::Page;
use parallax_core::plan::Plan;
use parallax_core::vantage::{Region, RegionSet};
use parallax_service::ServiceError;
use parallax_service::accounts::usage::PlanUsage;
use parallax_service::idempotency::IdempotentRequest;
use parallax_service::monitors::{CheckNowProgress, CheckNowReport, MonitorWithState};
use parallax_service::public_pages::explanation::labels;

use super::super::check_progress::{self, ProgressSection, region_results, threshold_ms};
use super::super::forms::{Form, FormBody, FormRefusal, FormStatus, LOADED, SubmittedForm, result_path};
use super::super::{SignedIn, see_other};
use super::record_form;
use super::screen::{self, MonitorCall};
use crate::http::HttpContext;
use crate::http::api::monitors::body;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::Toast;
use crate::views::dashboard::form::{FieldFault, FormView};
use crate::views::dashboard::monitor::edit_form::{MonitorForm, TestView};
use crate::views::dashboard::monitor::settings_words::stored_text;

/// A form with everything that it is drawn from.
struct FormScreen {
    page: Page,
    /// The monitor that is changed; none for a new one.
    monitor: Option<Monitor>,
    plan: Plan,
    /// Usage of the plan, if a monitor is added to it.
    usage: Option<PlanUsage>,
    groups: Vec<String>,
}

impl FormScreen {
    async fn read(context: &HttpContext, call: &MonitorCall) -> Result<Self, ApiError> {
        let (service, caller) = (&context.service, &call.caller.caller);
        let page = service.pages.get(caller, call.page)?;
        caller.require(parallax_core::role::Permission::Edit)?;
        let siblings = service.monitors.list(caller, page.id).await?;
        let mut own = siblings.iter().map(|it| &it.monitor);
        let monitor = match call.monitor {
            Some(id) => Some(own.find(|it| it.id == id).cloned().ok_or(ServiceError::NotFound)?),
            None => None,
        };
        let usage = if monitor.is_none() { Some(service.accounts.usage(caller).await?) } else { None };
        let plan = usage.map_or_else(|| service.accounts.plan(caller), |usage| Ok(usage.plan))?;
        let groups: BTreeSet<String> = siblings.into_iter().filter_map(|it| it.monitor.group).collect();
        Ok(Self { page, monitor, plan, usage, groups: groups.into_iter().collect() })
    }

    fn kind(&self, form: &Form) -> CheckKind {
        self.monitor.as_ref().map_or_else(|| record_form::kind_of(form.text("type")), |it| it.check.kind())
    }

    fn has_secrets(&self) -> bool {
        self.monitor.as_ref().is_some_and(record_form::has_secrets)
    }

    /// Reads the form as the API would read a body, with the fields that someone else changed meanwhile.
    fn edit(&self, form: &Form) -> (MonitorEdit, Vec<FieldFault>) {
        let read = record_form::as_body(form, self.has_secrets());
        match &self.monitor {
            None => (body::read(FormBody::new(&read)), Vec::new()),
            Some(monitor) => {
                let current = record_form::values(monitor);
                let mut fields = FormBody::change(&read, &current);
                let edit = body::read_change(&mut fields);
                (edit, fields.into_conflicts())
            }
        }
    }

    /// Replies with the form.
    async fn reply(
        self,
        context: &HttpContext,
        call: &MonitorCall,
        form: FormView,
        kind: CheckKind,
        (test, status): (Option<TestView>, impl Into<FormStatus>),
    ) -> HandlerResult {
        let frame = screen::frame(context, &call.caller, self.page.id, &call.query).await?;
        let list = format!("/app/pages/{}/monitors", self.page.id);
        let path = self.monitor.as_ref().map(|it| format!("{list}/{}", it.id));
        let stored = match self.monitor.as_ref().map(|it| &it.check) {
            Some(Check::Http(check)) => stored_text(check),
            _ => String::new(),
        };
        let (limit, full) = self.usage.map(|usage| limit_texts(&usage, kind)).unwrap_or_default();
        let view = MonitorForm {
            frame,
            action: path.as_ref().map_or_else(|| format!("{list}/new"), |path| format!("{path}/edit")),
            cancel: path.unwrap_or_else(|| list.clone()),
            list,
            name: self.monitor.map(|it| it.name),
            kind,
            form,
            groups: self.groups,
            stored,
            limit,
            full,
            has_components: self.plan.has_components(),
            uses_regions: self.plan.uses_regions(),
            test,
        };
        screen::reply_with(&view, status)
    }
}

/// Limits of the plan in words, and why there can't be another monitor.
fn limit_texts(usage: &PlanUsage, kind: CheckKind) -> (String, String) {
    match usage.limits.monitor_limit(usage.plan, kind) {
        Err(error) => (String::new(), FieldFault::sentence(&error.to_string())),
        Ok(limit) if kind == CheckKind::Component => (format!("Up to {limit} vendor monitors."), String::new()),
        Ok(limit) => {
            let is_full = u32::try_from(usage.monitors).unwrap_or(u32::MAX) >= limit;
            let full = format!("The {} plan has {limit} monitors, and all are used.", usage.plan.name());
            let text = format!("{} of {limit} monitors. First check within 5 s.", usage.monitors);
            (text, if is_full { full } else { String::new() })
        }
    }
}

/// `GET /app/pages/{page}/monitors/new`
pub(super) async fn show_new(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let call = MonitorCall::new(call)?;
    let drawn = FormScreen::read(&context, &call).await?;
    let mut form = match screen::param(&call.query, "from").and_then(|id| id.parse().ok()) {
        Some(id) => {
            let original = context.service.monitors.get(&call.caller.caller, drawn.page.id, id).await?.monitor;
            let mut form = record_form::of_monitor(&original);
            form.set("type", original.check.kind().name());
            form.set("name", format!("{} copy", original.name));
            form.remove(LOADED);
            form
        }
        None => screen::param(&call.query, "target").map(|text| record_form::of_target(&text)).unwrap_or_default(),
    };
    for name in ["type", "url"] {
        if let Some(value) = screen::param(&call.query, name) {
            form.set(name, value);
        }
    }
    let kind = drawn.kind(&form);
    let view = form.view(&call.caller.form_token);
    drawn.reply(&context, &call, view, kind, (None, StatusCode::OK)).await
}

/// `GET /app/pages/{page}/monitors/{monitor}/edit`
pub(super) async fn show_edit(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let call = MonitorCall::new(call)?;
    let drawn = FormScreen::read(&context, &call).await?;
    let form = drawn.monitor.as_ref().map(record_form::of_monitor).unwrap_or_default();
    let (kind, view) = (drawn.kind(&form), form.view(&call.caller.form_token));
    drawn.reply(&context, &call, view, kind, (None, StatusCode::OK)).await
}

/// `POST /app/pages/{page}/monitors/new/type`: draws the form for another type, or with a suggested threshold.
pub(super) async fn redraw_new(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    redraw(context, call).await
}

/// `POST /app/pages/{page}/monitors/{monitor}/edit/type`
pub(super) async fn redraw_edit(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    redraw(context, call).await
}

async fn redraw(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let SubmittedForm { mut form, .. } = SubmittedForm::read(&mut call).await?;
    let call = MonitorCall::new(call)?;
    let drawn = FormScreen::read(&context, &call).await?;
    if form.has("useThreshold") {
        let threshold = form.text("useThreshold").to_owned();
        form.set("slowThresholdMs", threshold);
        form.remove("useThreshold");
    }
    let (kind, view) = (drawn.kind(&form), form.view(&call.caller.form_token));
    drawn.reply(&context, &call, view, kind, (None, StatusCode::OK)).await
}

/// `POST /app/pages/{page}/monitors/new`
pub(super) async fn create(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let SubmittedForm { form, idempotency_key } = SubmittedForm::read(&mut call).await?;
    let call = MonitorCall::new(call)?;
    let drawn = FormScreen::read(&context, &call).await?;
    let (edit, _) = drawn.edit(&form);
    let page = drawn.page.id;
    let path = move |made: &MonitorWithState| saved_path(page, &made.monitor, "monitor-created");
    let answer = |made: &MonitorWithState| path(made).into_bytes();
    let once = IdempotentRequest::new(idempotency_key, &answer);
    match context.service.monitors.create(&call.caller.caller, page, &edit, &once).await {
        Ok(outcome) => Ok(see_other(&result_path(outcome, path))),
        Err(error) => refuse(&context, &call, drawn, form, FormRefusal::of(error)?).await,
    }
}

/// `POST /app/pages/{page}/monitors/{monitor}/edit`
pub(super) async fn edit(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let SubmittedForm { form, idempotency_key } = SubmittedForm::read(&mut call).await?;
    let call = MonitorCall::new(call)?;
    let drawn = FormScreen::read(&context, &call).await?;
    let (edit, conflicts) = drawn.edit(&form);
    if !conflicts.is_empty() {
        return refuse(&context, &call, drawn, form, FormRefusal::conflict(conflicts)).await;
    }
    let page = drawn.page.id;
    let path = move |changed: &MonitorWithState| saved_path(page, &changed.monitor, "saved");
    let answer = |changed: &MonitorWithState| path(changed).into_bytes();
    let once = IdempotentRequest::new(idempotency_key, &answer);
    let id = call.monitor_id()?;
    match context.service.monitors.edit(&call.caller.caller, page, id, &edit, &once).await {
        Ok(outcome) => Ok(see_other(&result_path(outcome, path))),
        Err(error) => refuse(&context, &call, drawn, form, FormRefusal::of(error)?).await,
    }
}

fn saved_path(page: PageId, monitor: &Monitor, toast: &str) -> String {
    Toast::address(&format!("/app/pages/{page}/monitors/{}", monitor.id), toast, 1)
}

/// Draws a form again with the reasons for which it was refused. Nothing that was typed is lost, and nothing that someone
/// else changed meanwhile.
async fn refuse(
    context: &HttpContext,
    call: &MonitorCall,
    drawn: FormScreen,
    form: Form,
    refusal: FormRefusal,
) -> HandlerResult {
    let mut form = match &drawn.monitor {
        Some(monitor) => form.redrawn(&refusal, &record_form::values(monitor), &record_form::of_monitor(monitor)),
        None => form,
    };
    // What was typed replaces what someone else stored meanwhile, as the conflict says.
    if form.text("secrets").is_empty() && refusal.conflicts().any(|it| record_form::SECRETS.contains(&it)) {
        form.set("secrets", "replace");
    }
    let (kind, mut view) = (drawn.kind(&form), form.view(&call.caller.form_token));
    let status = refusal.apply(&mut view);
    drawn.reply(context, call, view, kind, (None, status)).await
}

/// `POST /app/pages/{page}/monitors/new/test`
pub(super) async fn test_new(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    test(context, call).await
}

/// `POST /app/pages/{page}/monitors/{monitor}/edit/test`
pub(super) async fn test_edit(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    test(context, call).await
}

/// Checks what the form holds and draws it with the result. Nothing is saved.
async fn test(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let SubmittedForm { form, .. } = SubmittedForm::read(&mut call).await?;
    let call = MonitorCall::new(call)?;
    let drawn = FormScreen::read(&context, &call).await?;
    let (edit, _) = drawn.edit(&form);
    let before = drawn.monitor.as_ref().map(Monitor::settings);
    let settings = match edit.validate(before.as_ref(), "") {
        Ok(settings) => settings,
        Err(errors) => {
            return refuse(&context, &call, drawn, form, FormRefusal::of(ServiceError::Invalid(errors))?).await;
        }
    };
    let new = NewMonitor {
        id: MonitorId::from_u128(0),
        page: drawn.page.id,
        slot: 0,
        position: 0,
        now: context.service.now(),
    };
    let (edit, monitor) = (record_form::as_new(&settings), Monitor::new(new, settings));
    if !check_progress::is_wanted(&call.query) {
        return tested(&context, &call, drawn, (form, edit, monitor), CheckNowProgress::default()).await;
    }
    let section = ProgressSection { id: "test", monitor: monitor.clone(), plan: drawn.plan };
    let (own, caller) = (Arc::clone(&context), call.caller.clone());
    let screen = |progress| async move { tested(&own, &call, drawn, (form, edit, monitor), progress).await };
    check_progress::reply(&context, &caller, section, screen).await
}

/// Runs the test of a monitor and draws its form with the result.
async fn tested(
    context: &HttpContext,
    call: &MonitorCall,
    drawn: FormScreen,
    (form, edit, monitor): (Form, MonitorEdit, Monitor),
    progress: CheckNowProgress,
) -> HandlerResult {
    let (caller, page) = (&call.caller.caller, drawn.page.id);
    let result = match context.service.monitors.test(caller, page, &edit, progress).await {
        Ok(report) => test_view(&report, &monitor, &drawn, call.caller.is_operator),
        Err(error) => match FormRefusal::of(error)? {
            FormRefusal { problem: Some(problem), .. } => TestView::refused(problem),
            refusal => return refuse(context, call, drawn, form, refusal).await,
        },
    };
    let (kind, view) = (drawn.kind(&form), form.view(&call.caller.form_token));
    drawn.reply(context, call, view, kind, (Some(result), StatusCode::OK)).await
}

fn test_view(report: &CheckNowReport, monitor: &Monitor, drawn: &FormScreen, shows_names: bool) -> TestView {
    let plan = drawn.plan;
    let own = monitor.latency_regions.or(drawn.page.latency_regions).filter(|_| plan.uses_regions());
    let counted = own.unwrap_or(RegionSet::only(Region::Europe));
    let results = region_results(&report.outcomes, false, |region| threshold_ms(monitor, plan, region));
    // Without a check in a counted region, every region has to do.
    let has_counted = results.iter().any(|it| it.seen.is_some() && counted.contains(it.region));
    TestView::new(&results, &labels(&report.agents, shows_names), |region| !has_counted || counted.contains(region))
}
