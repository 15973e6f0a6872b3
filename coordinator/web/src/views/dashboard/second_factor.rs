//! Pages of the second factor: the code at sign-in, the set-up of an app, and the recovery codes.

use parallax_service::people::SecondSteps;
use parallax_template::template_file;
use qrcode::QrCode;
use qrcode::render::svg;

use super::account::{SECURITY, tabs};
use super::frame::Frame;
use super::render;
use crate::views::assets;

/// Form for the second step of a sign-in: a code, or a passkey.
#[template_file("dashboard/sign_in_code.html")]
#[derive(Debug, Clone)]
pub(crate) struct CodeForm {
    /// The ways that the person has.
    steps: SecondSteps,
    /// Path to go to afterwards.
    next: String,
    /// True for the form that asks for a recovery code.
    is_recovery: bool,
    /// Address of the form for the other kind of code.
    other_form: String,
    /// Reason why the last code failed; empty if there is none.
    fault: String,
    /// Reason why the last passkey was refused; empty if there is none.
    passkey_fault: String,
}

impl CodeForm {
    /// The form that leads to a path, with the address of the form for the other kind of code.
    pub(crate) fn new(steps: SecondSteps, next: &str, (is_recovery, other_form): (bool, String)) -> Self {
        let (fault, passkey_fault) = (String::new(), String::new());
        Self { steps, next: next.to_owned(), is_recovery, other_form, fault, passkey_fault }
    }

    /// Shows why the last code or passkey was refused.
    pub(crate) fn with_faults(self, fault: String, passkey_fault: String) -> Self {
        Self { fault, passkey_fault, ..self }
    }

    /// Renders the page as HTML.
    pub(crate) fn html(&self) -> String {
        // Rendering to memory does not fail.
        render(self).unwrap_or_default()
    }
}

/// Set-up of an app: a button that makes a secret, or the secret that waits for its first code.
#[template_file("dashboard/factor.html")]
#[derive(Clone)]
pub(crate) struct FactorForm {
    /// The secret; none before the button.
    pub secret: Option<FactorSecretView>,
    /// True if the new app replaces one.
    pub is_replacement: bool,
    /// True if the person sees nothing else until it is set up.
    pub is_overdue: bool,
    /// True at a session by company sign-in, which sets none up.
    pub is_company: bool,
    /// True if a passkey can be made instead.
    pub offers_passkeys: bool,
    /// True if the person can open another account instead.
    pub has_other_accounts: bool,
    /// Token of the session's forms.
    pub form_token: String,
    /// Fault of the code; empty if there is none.
    pub fault: String,
}

/// A secret as an app reads it.
#[derive(Clone)]
pub(crate) struct FactorSecretView {
    /// As text.
    pub text: String,
    /// Address for the QR code.
    pub url: String,
}

impl FactorForm {
    /// Renders the page as HTML.
    pub(crate) fn html(&self) -> String {
        render(self).unwrap_or_default()
    }
}

impl std::fmt::Debug for FactorForm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FactorForm").field("is_replacement", &self.is_replacement).finish_non_exhaustive()
    }
}

impl FactorSecretView {
    /// The QR code as SVG. Its colors are attributes, which the content security policy allows, and the same in both
    /// themes: readers expect dark on light.
    fn qr_code(&self) -> String {
        let Ok(code) = QrCode::new(self.url.as_bytes()) else { return String::new() };
        let document = code.render::<svg::Color<'_>>().min_dimensions(220, 220).build();
        // The document begins with an XML declaration, which HTML does not have.
        document.find("<svg").and_then(|at| document.get(at..)).unwrap_or_default().to_owned()
    }
}

/// Recovery codes, shown once.
#[template_file("dashboard/recovery_codes.html")]
#[derive(Clone)]
pub(crate) struct RecoveryCodesScreen {
    frame: Frame,
    tabs: Vec<(&'static str, &'static str, bool)>,
    /// One on a line.
    codes: String,
    is_new_factor: bool,
}

impl RecoveryCodesScreen {
    /// Shows codes that were just made, for a new app or in place of older ones.
    pub(crate) fn new(frame: Frame, codes: &[String], is_new_factor: bool) -> Self {
        Self { tabs: tabs(&frame, SECURITY), codes: codes.join("\n"), is_new_factor, frame }
    }
}

impl std::fmt::Debug for RecoveryCodesScreen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecoveryCodesScreen").field("is_new_factor", &self.is_new_factor).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_outside_is_escaped_and_nothing_has_an_inline_style() {
        let evil = "\"><script>alert(1)</script>".to_owned();
        let form = |secret: Option<FactorSecretView>, is_company| FactorForm {
            secret,
            is_company,
            is_replacement: true,
            is_overdue: true,
            offers_passkeys: true,
            has_other_accounts: false,
            form_token: evil.clone(),
            fault: evil.clone(),
        };
        let secret = FactorSecretView { text: evil.clone(), url: evil.clone() };
        let code_form = |app, is_recovery| {
            let form = CodeForm::new(SecondSteps { app, passkey: true }, &evil, (is_recovery, evil.clone()));
            form.with_faults(evil.clone(), evil.clone()).html()
        };
        for page in [
            code_form(true, true),
            code_form(true, false),
            code_form(false, false),
            form(None, false).html(),
            form(None, true).html(),
            form(Some(secret), false).html(),
        ] {
            assert!(page.contains("alert(1)") && !page.contains("<script>"), "{page}");
            assert!(!page.contains("style=") && page.contains("</html>"), "{page}");
        }
    }

    #[test]
    fn a_qr_code_is_svg_that_html_can_hold() {
        let url = "otpauth://totp/Parallax:ann%40example.com?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Parallax";
        let code = FactorSecretView { text: String::new(), url: url.to_owned() }.qr_code();
        assert!(code.starts_with("<svg") && code.ends_with("</svg>") && !code.contains("style"), "{code}");
        // More than an address can have shows the text alone.
        let code = FactorSecretView { text: String::new(), url: "a".repeat(5_000) }.qr_code();
        assert_eq!(code, "");
    }
}
