//! Classification of SMTP rejections by step: whose fault it is, and whether to retry.

use lettre::transport::smtp::Error;
use parallax_core::delivery::Outcome;

use super::kept;
use crate::deliver::post::Posted;

/// Step of an SMTP transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
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

impl Step {
    /// Returns true if a temporary rejection at this step may be due to the recipient.
    const fn is_of_receiver(self) -> bool {
        matches!(self, Self::Recipient | Self::Content)
    }

    const fn words(self) -> &'static str {
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
pub(super) fn failed(step: Step, error: &Error) -> Posted {
    let status = error.status().map(u16::from);
    let said = describe(error);
    let is_refused =
        error.is_permanent() && status.is_some_and(|status| is_about_address(step, status, &said));
    let is_ours = !is_refused && (error.is_permanent() || !step.is_of_receiver() || status.is_none());
    let whose = if is_ours { "our side: " } else { "" };
    Posted {
        status,
        outcome: if is_refused { Outcome::Refused } else { Outcome::NotNow(None) },
        error: Some(format!("{whose}{}", step.words())),
        answer: kept(said),
        is_ours,
    }
}

/// Result of a step that timed out.
pub(super) fn late(step: Step) -> Posted {
    let error = format!("our side: {}: no answer in time", step.words());
    super::failed(Outcome::NotNow(None), &error, true)
}

fn describe(error: &Error) -> String {
    let mut words = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        let more = error.to_string();
        if !words.contains(&more) {
            words = format!("{words}: {more}");
        }
        source = error.source();
    }
    words
}

fn is_about_address(step: Step, status: u16, said: &str) -> bool {
    match (step, enhanced(said)) {
        (Step::Connect | Step::Login | Step::Sender, _) => false,
        // 5.1 is the address (except 5.1.7 and 5.1.8, which concern the sender), 5.2 the mailbox (RFC 3463
        // section 3).
        (Step::Recipient | Step::Content, Some((subject, detail))) => match subject {
            1 => !matches!(detail, 7 | 8),
            2 => true,
            _ => step == Step::Recipient && !matches!(subject, 3 | 4 | 5 | 7),
        },
        // A server that requires a login or can't parse a command says nothing about the address (RFC 5321
        // section 4.2.3, RFC 4954).
        (Step::Recipient, None) => matches!(status, 550..=553 | 556),
        (Step::Content, None) => false,
    }
}

/// Subject and detail of an enhanced status code of class 5 (RFC 3463): `5.1.1` yields 1 and 1.
fn enhanced(said: &str) -> Option<(u16, u16)> {
    said.split(|sign: char| !(sign.is_ascii_digit() || sign == '.')).find_map(|word| {
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
    fn only_what_is_about_the_address_is_held_against_it() {
        for (step, status, said, about_address) in [
            (Step::Recipient, 550, "permanent error (550): No such user", true),
            (Step::Recipient, 550, "permanent error (550): 5.1.1 No such user", true),
            (Step::Recipient, 552, "permanent error (552): 5.2.2 Mailbox full", true),
            (Step::Recipient, 554, "permanent error (554): 5.7.1 Relay access denied", false),
            (Step::Recipient, 550, "permanent error (550): 5.7.26 Unauthenticated mail", false),
            (Step::Recipient, 530, "permanent error (530): Authentication required", false),
            (Step::Recipient, 501, "permanent error (501): 5.5.4 Syntax", false),
            (Step::Recipient, 553, "permanent error (553): 5.1.8 Sender's domain does not exist", false),
            (Step::Content, 554, "permanent error (554): Spam", false),
            (Step::Content, 550, "permanent error (550): 5.1.1 No such user", true),
            (Step::Sender, 550, "permanent error (550): 5.1.1 No", false),
            (Step::Login, 535, "permanent error (535): 5.7.8 No", false),
        ] {
            assert_eq!(is_about_address(step, status, said), about_address, "{step:?} {said}");
        }
    }

    #[test]
    fn an_enhanced_code_is_told_from_other_numbers() {
        for (said, code) in [
            ("5.1.1 no", Some((1, 1))),
            ("(550): 5.7.26, no", Some((7, 26))),
            ("198.5.1.1 says no", None),
            ("5.1", None),
            ("4.2.2 full", None),
        ] {
            assert_eq!(enhanced(said), code, "{said}");
        }
    }
}
