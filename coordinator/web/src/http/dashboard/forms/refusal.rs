//! Outcome of a form: the address that it leads to, or the reasons to draw it again.

use ::http::StatusCode;
use ::http::header::{HeaderValue, RETRY_AFTER};
use parallax_core::validation::{FieldError, ValidationErrors};
use parallax_service::ServiceError;
use parallax_service::idempotency::RequestOutcome;

use crate::http::error::ApiError;
use crate::http::response::HttpResponse;
use crate::views::dashboard::form::{FieldFault, FormView};

/// Reason for refusing a form whose key was used with other values.
const ALREADY_SENT: &str = "This form was already sent, with other values. Reload the page to see the result.";

/// Outcome of a form: the address that it leads to, or the reasons to draw it again; or an error with a page of its own.
pub(in crate::http) type Saved = Result<Result<String, FormRefusal>, ApiError>;

/// Converts the outcome of a request of the services to that of its form, which leads to `path` of what it made.
pub(in crate::http) fn saved<T>(
    outcome: Result<RequestOutcome<T>, ServiceError>,
    path: impl FnOnce(&T) -> String,
) -> Saved {
    match outcome {
        Ok(outcome) => Ok(Ok(result_path(outcome, path))),
        Err(error) => Ok(Err(FormRefusal::of(error)?)),
    }
}

/// Returns where a form leads: to `path` of what it made. A repetition leads to the same place.
pub(in crate::http) fn result_path<T>(outcome: RequestOutcome<T>, path: impl FnOnce(&T) -> String) -> String {
    match outcome {
        RequestOutcome::Fresh(value) | RequestOutcome::Reread(value) => path(&value),
        RequestOutcome::Replayed(path) => String::from_utf8_lossy(&path).into_owned(),
    }
}

/// Status of the reply with a form, and the seconds to wait if a rate limit refused it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::http) struct FormStatus {
    code: StatusCode,
    retry_after: Option<HeaderValue>,
}

impl FormStatus {
    /// Status of a form that was not refused.
    pub(in crate::http) const OK: Self = Self { code: StatusCode::OK, retry_after: None };

    /// Sets the status of a reply, and `Retry-After`.
    pub(in crate::http) fn apply(self, reply: HttpResponse) -> HttpResponse {
        let reply = reply.with_status(self.code);
        match self.retry_after {
            Some(seconds) => reply.with(RETRY_AFTER, seconds),
            None => reply,
        }
    }
}

impl From<StatusCode> for FormStatus {
    fn from(code: StatusCode) -> Self {
        Self { code, retry_after: None }
    }
}

/// A form that was refused: it is drawn again, with what was typed and the reasons.
#[derive(Debug)]
pub(in crate::http) struct FormRefusal {
    /// Status of the reply.
    pub(in crate::http) status: FormStatus,
    /// Faults of its fields.
    pub(in crate::http) faults: Vec<FieldFault>,
    /// Reason that is not about a field.
    pub(in crate::http) problem: Option<String>,
}

impl FormRefusal {
    /// Converts an error of the services. It has the status of the API's error, and its `Retry-After`.
    ///
    /// # Errors
    /// The error itself, if it isn't about what the form holds: it is a page of its own.
    pub(in crate::http) fn of(error: ServiceError) -> Result<Self, ApiError> {
        use ServiceError as E;
        let message = error.to_string();
        let (faults, problem) = match &error {
            E::Invalid(errors) => {
                // No form has the session as a field.
                let (of_session, faults) = faults(errors).into_iter().partition(|fault| fault.field == "session");
                let of_session: Vec<FieldFault> = of_session;
                (
                    faults,
                    of_session.into_iter().next().map(|fault| format!("This session {}", lower_first(&fault.text))),
                )
            }
            E::IdempotencyKeyReused => (Vec::new(), Some(ALREADY_SENT.to_owned())),
            E::NotFound | E::Unauthenticated | E::ReadOnly | E::RoleForbids { .. } | E::Internal(_) | E::DiskFull => {
                return Err(error.into());
            }
            _ => (Vec::new(), Some(FieldFault::sentence(&message))),
        };
        let reply = ApiError::from(error).into_response();
        let status = FormStatus { code: reply.status(), retry_after: reply.header(&RETRY_AFTER).cloned() };
        Ok(Self { status, faults, problem })
    }

    /// Makes the refusal of a form with fields that someone else changed meanwhile.
    pub(in crate::http) fn conflict(faults: Vec<FieldFault>) -> Self {
        Self { status: StatusCode::CONFLICT.into(), faults, problem: None }
    }

    /// Returns true if someone else changed the form's fields meanwhile.
    pub(in crate::http) fn is_conflict(&self) -> bool {
        self.status.code == StatusCode::CONFLICT
    }

    /// Names of the fields that this person and someone else changed.
    pub(in crate::http) fn conflicts(&self) -> impl Iterator<Item = &str> {
        self.faults.iter().filter(|_| self.is_conflict()).map(|fault| fault.field.as_str())
    }

    /// Returns the fault of a field, as a sentence; empty if it has none.
    pub(in crate::http) fn fault(&self, field: &str) -> String {
        self.faults.iter().find(|fault| fault.field == field).map(|fault| fault.text.clone()).unwrap_or_default()
    }

    /// Returns the fault of a field, or else the reason that is about none, for a form whose only place is at that field.
    pub(in crate::http) fn fault_or_problem(&self, field: &str) -> String {
        let fault = Some(self.fault(field)).filter(|fault| !fault.is_empty());
        fault.or_else(|| self.problem.clone()).unwrap_or_default()
    }

    /// Writes the reasons into the form.
    pub(in crate::http) fn apply(self, form: &mut FormView) -> FormStatus {
        form.faults = self.faults;
        form.problem = self.problem;
        self.status
    }
}

/// Begins a rule's sentence with a small letter, to go on with after its subject.
pub(in crate::http) fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

/// Converts validation errors to texts under their fields.
pub(in crate::http) fn faults(errors: &ValidationErrors) -> Vec<FieldFault> {
    let fault = |error: &FieldError| FieldFault { field: error.field.clone(), text: FieldFault::sentence(&error.rule) };
    errors.iter().map(fault).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_form_has_the_status_of_the_api_and_the_seconds_to_wait() {
        let refusal = |error: ServiceError| {
            let mut form = FormView::default();
            let reply = FormRefusal::of(error).unwrap().apply(&mut form).apply(HttpResponse::html(String::new()));
            (reply.status().as_u16(), reply.header(&RETRY_AFTER).cloned(), form)
        };
        let (status, wait, form) = refusal(ValidationErrors::single("name", "is required").into());
        assert_eq!((status, wait, form.fault("name")), (400, None, "Is required."));
        let (status, wait, form) = refusal(ServiceError::CheckNowTooSoon { seconds: 12 });
        assert_eq!((status, wait), (429, Some(HeaderValue::from(12))));
        assert!(form.problem.is_some());
        let (status, _, form) = refusal(ValidationErrors::single("session", "is by company sign-in").into());
        assert_eq!((status, form.problem.as_deref()), (400, Some("This session is by company sign-in.")));
        assert!(form.faults.is_empty());
        assert_eq!(refusal(ServiceError::IdempotencyKeyReused).0, 422);
    }
}
