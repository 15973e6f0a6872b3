//! Reasons why a company sign-in is refused, in words for the person.

/// Reason why a company sign-in is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompanyRefusal {
    /// The account has no company sign-in.
    NotSetUp,
    /// No such sign-in was begun at this browser, or it ended.
    Unknown,
    /// The person cancelled at the provider.
    Cancelled,
    /// The provider answered with an error code.
    ProviderError(String),
    /// The provider can't be reached, or its answers can't be read.
    Unreachable(String),
    /// The provider remembered the person, who was to prove again that it is them.
    NotAskedAgain,
    /// The provider's proof is not valid.
    InvalidProof(&'static str),
    /// The provider named no email address.
    NoEmail,
    /// The provider did not verify the email address.
    UnverifiedEmail(String),
    /// The email address is of no proved domain of the account.
    ForeignDomain(String),
    /// Somebody else at the provider signed in with this email address before.
    OtherSubject(String),
    /// The person at the provider is known here by another email address.
    OtherEmail,
    /// The account or the person can join no more.
    Full,
}

impl CompanyRefusal {
    /// Heading of the page that says it.
    pub const fn title(&self) -> &'static str {
        match self {
            Self::NotSetUp => "No company sign-in here",
            Self::Unknown => "Begin again",
            Self::Cancelled => "Sign-in cancelled",
            Self::Unreachable(_) => "The company's provider does not work",
            Self::Full => "The account is full",
            Self::NotAskedAgain => "Not confirmed",
            Self::ProviderError(_)
            | Self::InvalidProof(_)
            | Self::NoEmail
            | Self::UnverifiedEmail(_)
            | Self::ForeignDomain(_)
            | Self::OtherSubject(_)
            | Self::OtherEmail => "Company sign-in refused",
        }
    }

    /// Reason and next step.
    pub fn text(&self) -> String {
        match self {
            Self::NotSetUp => "This account has no company sign-in. Sign in another way.".to_owned(),
            Self::Unknown => {
                "This sign-in was begun in another browser or more than 10 minutes ago, or was used already.".to_owned()
            }
            Self::Cancelled => "The provider says that the sign-in was cancelled.".to_owned(),
            Self::ProviderError(code) => {
                format!("The provider refused with \"{code}\". Ask your company's administrator.")
            }
            Self::Unreachable(problem) => {
                format!("{problem}. Try again in a minute, or sign in with your password or a mailed link.")
            }
            Self::InvalidProof(problem) => {
                format!("{problem}. Ask an owner of the account to test its company sign-in.")
            }
            Self::NotAskedAgain => {
                "The provider did not ask you to sign in again. Sign out there, then try again.".to_owned()
            }
            Self::NoEmail => {
                "The provider did not say your email address. Ask your company's administrator to send the claims \
                 email and email_verified."
                    .to_owned()
            }
            Self::UnverifiedEmail(email) => format!(
                "The provider did not say that {email} is verified (email_verified). Ask your company's administrator."
            ),
            Self::ForeignDomain(email) => {
                format!("{email} is not in an email domain that this account has proved. Ask an owner of the account.")
            }
            Self::OtherSubject(email) => format!(
                "Somebody else at the provider signed in as {email} before. Ask an owner of the account to remove that \
                 member; then sign in again."
            ),
            Self::OtherEmail => {
                "You are a member of this account with another email address. Ask an owner of the account to remove \
                 that member; then sign in again."
                    .to_owned()
            }
            Self::Full => "The account can have no more members. Ask an owner to remove one.".to_owned(),
        }
    }

    /// Short form for the audit log, without personal data.
    pub(super) const fn reason(&self) -> &'static str {
        match self {
            Self::NotSetUp => "not set up",
            Self::Unknown => "unknown or used state",
            Self::Cancelled => "cancelled",
            Self::ProviderError(_) => "the provider refused",
            Self::Unreachable(_) => "the provider does not work",
            Self::NotAskedAgain => "not asked to sign in again",
            Self::InvalidProof(problem) => problem,
            Self::NoEmail => "no email address",
            Self::UnverifiedEmail(_) => "unverified email address",
            Self::ForeignDomain(_) => "email address of another domain",
            Self::OtherSubject(_) => "another person at the provider",
            Self::OtherEmail => "another email address",
            Self::Full => "the account is full",
        }
    }

    /// Returns true if the provider proved somebody before. Everyone can bring about the others, without end.
    pub(super) const fn is_of_proved_person(&self) -> bool {
        match self {
            Self::NoEmail
            | Self::UnverifiedEmail(_)
            | Self::ForeignDomain(_)
            | Self::OtherSubject(_)
            | Self::OtherEmail
            | Self::Full => true,
            Self::NotSetUp
            | Self::Unknown
            | Self::Cancelled
            | Self::ProviderError(_)
            | Self::Unreachable(_)
            | Self::NotAskedAgain
            | Self::InvalidProof(_) => false,
        }
    }

    /// Returns the email address that the provider named.
    pub(super) fn email(&self) -> &str {
        match self {
            Self::UnverifiedEmail(email) | Self::ForeignDomain(email) | Self::OtherSubject(email) => email,
            _ => "",
        }
    }
}
