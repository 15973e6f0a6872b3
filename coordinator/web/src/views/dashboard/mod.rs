//! Screens of the dashboard: their frame, and one view for each screen.
//!
//! The dashboard speaks English so far; its texts are in its templates and views.

mod account;
pub(crate) mod alerts;
mod attention;
pub(crate) mod audit;
mod browser_name;
mod bulk;
pub(crate) mod bulk_edit;
pub(crate) mod company;
pub(crate) mod deliveries;
pub(crate) mod delivery_text;
pub(crate) mod deploys;
mod first_site;
pub(crate) mod form;
mod frame;
mod icons;
pub(crate) mod incident_forms;
pub(crate) mod incidents;
pub(crate) mod installation_accounts;
pub(crate) mod members;
pub(crate) mod mesh;
pub(crate) mod monitor;
mod monitor_list;
pub(crate) mod monitor_order;
mod overview;
mod passkeys;
pub(crate) mod plan;
#[cfg(test)]
mod samples;
mod search;
mod second_factor;
mod second_factor_state;
pub(crate) mod settings;
mod signed_out;
mod state_label;
pub(crate) mod subscriber_import;
pub(crate) mod subscribers;
#[cfg(test)]
mod tests;
mod toast;
mod undo;
pub(crate) mod window_times;
pub(crate) mod windows;
mod words;

pub(crate) use self::account::{KeysScreen, NewKeyScreen, PLAN, SecurityScreen};
pub(crate) use self::attention::AttentionRow;
pub(crate) use self::browser_name::browser_name;
pub(crate) use self::bulk::BulkScreen;
pub(crate) use self::first_site::{FirstSiteFields, FirstSiteTest};
pub(crate) use self::frame::{Frame, PageEntry, Section, SignedInPerson};
pub(crate) use self::monitor_list::{ListFilter, MonitorListScreen, RowInput};
pub(crate) use self::overview::{
    AlertFigures, ChangeRow, HeadlineText, MeshText, NextMaintenance, NextStepRow, OverviewParts, OverviewScreen,
    PageRow, Tile,
};
pub(crate) use self::passkeys::{PasskeyForm, PasskeyList, PasskeyScreen};
pub(crate) use self::search::{SearchHit, SearchScreen};
pub(crate) use self::second_factor::{CodeForm, FactorForm, FactorSecretView, RecoveryCodesScreen};
pub(crate) use self::second_factor_state::FactorState;
pub(crate) use self::signed_out::{
    CompanyButton, CompanyContinue, CompanyEmailForm, ConfirmForm, JoinForm, JoinProof, LinkButton, MessagePage,
    ResetForm, ResetRequestForm, SetUpForm, SignInForm,
};
pub(crate) use self::state_label::{MonitorStatusInput, StateText};
pub(crate) use self::toast::{TOAST_COUNT_PARAM, TOAST_PARAM, Toast, UNDO_PARAM, UndoButton};
pub(crate) use self::undo::UndoRefusedScreen;
pub(crate) use self::words::{clock, count, duration, time};

use super::RenderError;
/// A screen, for handlers that reply with any of them.
pub(crate) use askama::Template as Screen;

/// Renders a screen, with the icons that it uses.
///
/// # Errors
/// If the template fails, which the compiled templates don't.
pub(crate) fn render(screen: &impl Screen) -> Result<String, RenderError> {
    Ok(icons::insert_sprite(screen.render()?))
}
