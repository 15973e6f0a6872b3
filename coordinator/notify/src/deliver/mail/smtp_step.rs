//! Classification of SMTP rejections by step: the side at fault, and whether to retry.

use lettre::transport::smtp::Error;
use parallax_core::delivery::AttemptOutcome;

use super::truncated_reply;
use crate::deliver::outgoing_mail::SendResult;

/// Step of an SMTP transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SmtpStep {
    /// Connection, greeting and TLS.
    Connect,
    /// Authentication.
    Login,
    /// `MAIL FROM`.
    Sender,
    /// `RCPT TO`.
    Recipient,
    /// `DATA` and the content.
    Content,
}

impl SmtpStep {
    /// Returns true if a temporary rejection at this step may be due to the recipient.
    const fn may_concern_recipient(self) -> bool {
        matches!(self, Self::Recipient | Self::Content)
    }

    const fn failure_text(self) -> &'static str {
        match self {
            Self::Connect => "the mail server can't be reached",
            Self::Login => "the mail server refuses our login",
            Self::Sender => "the mail server refuses our sender address",
            Self::Recipient => "the mail server refuses the address",
            Self::Content => "the mail server did not accept the mail",
        }
    }
}

/// Result to record for an error at a step. Only an error that is certainly about the address counts against
/// it: a server that rejects all of our mail must not get its users' addresses switched off.
pub(super) fn step_failed(step: SmtpStep, error: &Error) -> SendResult {
    let status = error.status().map(u16::from);
    let reply = error_chain(error);
    let is_rejected = error.is_permanent() && status.is_some_and(|status| is_about_address(step, status, &reply));
    let is_our_fault = !is_rejected && (error.is_permanent() || !step.may_concern_recipient() || status.is_none());
    let prefix = if is_our_fault { "our side: " } else { "" };
    SendResult {
        status,
        outcome: if is_rejected { AttemptOutcome::Rejected } else { AttemptOutcome::Deferred(None) },
        error: Some(format!("{prefix}{}", step.failure_text())),
        reply: truncated_reply(reply),
        is_our_fault,
    }
}

/// Result of a step that timed out.
pub(super) fn step_timed_out(step: SmtpStep) -> SendResult {
    let error = format!("our side: {}: no answer in time", step.failure_text());
    super::failed_result(AttemptOutcome::Deferred(None), &error, true)
}

fn error_chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        let cause_text = error.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = error.source();
    }
    text
}

fn is_about_address(step: SmtpStep, status: u16, reply: &str) -> bool {
    match (step, enhanced_status(reply)) {
        (SmtpStep::Connect | SmtpStep::Login | SmtpStep::Sender, _) => false,
        // 5.1 is the address (except 5.1.7 and 5.1.8, which concern the sender), 5.2 the mailbox (RFC 3463
        // section 3).
        (SmtpStep::Recipient | SmtpStep::Content, Some((subject, detail))) => match subject {
            1 => !matches!(detail, 7 | 8),
            2 => true,
            _ => step == SmtpStep::Recipient && !matches!(subject, 3 | 4 | 5 | 7),
        },
        // A server that requires a login or can't parse a command says nothing about the address (RFC 5321
        // section 4.2.3, RFC 4954).
        (SmtpStep::Recipient, None) => matches!(status, 550..=553 | 556),
        (SmtpStep::Content, None) => false,
    }
}

/// Subject and detail of an enhanced status code of class 5 (RFC 3463): `5.1.1` yields 1 and 1.
fn enhanced_status(reply: &str) -> Option<(u16, u16)> {
    reply.split(|character: char| !(character.is_ascii_digit() || character == '.')).find_map(|word| {
        let mut parts = word.strip_prefix("5.")?.split('.');
        let subject = parts.next()?.parse().ok()?;
        let detail = parts.next()?.parse().ok()?;
        parts.next().is_none().then_some((subject, detail))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rejections_of_the_address_count_against_it() {
        for (step, status, reply, about_address) in [
            (SmtpStep::Recipient, 550, "permanent error (550): No such user", true),
            (SmtpStep::Recipient, 550, "permanent error (550): 5.1.1 No such user", true),
            (SmtpStep::Recipient, 552, "permanent error (552): 5.2.2 Mailbox full", true),
            (SmtpStep::Recipient, 554, "permanent error (554): 5.7.1 Relay access denied", false),
            (SmtpStep::Recipient, 550, "permanent error (550): 5.7.26 Unauthenticated mail", false),
            (SmtpStep::Recipient, 530, "permanent error (530): Authentication required", false),
            (SmtpStep::Recipient, 501, "permanent error (501): 5.5.4 Syntax", false),
            (SmtpStep::Recipient, 553, "permanent error (553): 5.1.8 Sender's domain does not exist", false),
            (SmtpStep::Content, 554, "permanent error (554): Spam", false),
            (SmtpStep::Content, 550, "permanent error (550): 5.1.1 No such user", true),
            (SmtpStep::Sender, 550, "permanent error (550): 5.1.1 No", false),
            (SmtpStep::Login, 535, "permanent error (535): 5.7.8 No", false),
        ] {
            assert_eq!(is_about_address(step, status, reply), about_address, "{step:?} {reply}");
        }
    }

    #[test]
    fn an_enhanced_status_code_is_distinguished_from_other_numbers() {
        for (reply, code) in [
            ("5.1.1 no", Some((1, 1))),
            ("(550): 5.7.26, no", Some((7, 26))),
            ("198.5.1.1 says no", None),
            ("5.1", None),
            ("4.2.2 full", None),
        ] {
            assert_eq!(enhanced_status(reply), code, "{reply}");
        }
    }
}
