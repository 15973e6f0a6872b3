//! Mail to a real server, which accepts, rejects, delays or drops it; another implementation parses the messages.

use std::path::Path;
use std::time::Duration;

use parallax_core::delivery::{AttemptOutcome, MailMessage};
use parallax_core::id::DeliveryId;
use parallax_core::time::Timestamp;
use parallax_notify::deliver::mail::{MailBackend, MailConfig, Mailer, SmtpConfig, SmtpTls};
use parallax_notify::deliver::{OutgoingMail, SendMail, SendResult};
use parallax_tests::eventually::eventually;
use parallax_tests::external_tools::ExternalTools;
use parallax_tests::installation::CoordinatorProcess;
use parallax_tests::process::TestProcess;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::subscribers::ScriptlessBrowser;

const SOON: Duration = Duration::from_secs(30);
const FROM: &str = "Example Status <status@example.com>";
const UNSUBSCRIBE: &str = "https://status.example.com/p/shop/unsubscribe/\
                           AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";

/// A mail server for one test.
struct Server {
    process: TestProcess,
    port: u16,
    _folder: TempDir,
}

impl Server {
    /// Starts it; `None` if the program is not installed.
    async fn start(test: &str, arguments: &[&str]) -> Option<Self> {
        let tools = ExternalTools::find(test)?;
        let folder = TempDir::new().unwrap();
        let mut command = tools.python("python");
        command.arg(ExternalTools::file("mail_server.py")).args(arguments);
        let mut process = TestProcess::start("mail-server", command, folder.path());
        process.wait_for_log("listening on ", SOON).await;
        let port = process.log().lines().find_map(|line| line.strip_prefix("listening on ")?.parse().ok());
        Some(Self { process, port: port.unwrap(), _folder: folder })
    }

    fn config(&self) -> SmtpConfig {
        SmtpConfig {
            host: "localhost".to_owned(),
            port: self.port,
            tls: SmtpTls::Off,
            credentials: None,
            trusted_certificates: None,
            step_timeout: SOON,
        }
    }

    fn mailer(&self) -> Mailer {
        mailer(FROM, self.config())
    }

    /// Returns the messages accepted so far.
    fn taken(&self) -> Vec<Value> {
        let log = self.process.log();
        // The last line may be incomplete.
        let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().filter(|line| line.starts_with('{')).map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    async fn took(&self, count: usize) -> Vec<Value> {
        let what = format!("the mail server took {count}");
        eventually(&what, SOON, async || Some(self.taken()).filter(|taken| taken.len() == count)).await
    }
}

fn mailer(from: &str, smtp: SmtpConfig) -> Mailer {
    let transport = MailBackend::Smtp(smtp);
    let reply_to = Some("help@example.com".to_owned());
    Mailer::new(&MailConfig { backend: transport, from: from.to_owned(), reply_to }).unwrap()
}

fn mail(subject: &str) -> MailMessage {
    MailMessage {
        subject: subject.to_owned(),
        text: format!("Grüße\n.\n..\n{}\n", "long ".repeat(500)),
        html: format!("<p>Grüße</p>{}", "<i>x</i>".repeat(500)),
    }
}

fn parcel(number: u128, to: &str, subject: &str) -> OutgoingMail {
    OutgoingMail {
        delivery: DeliveryId::from_u128(number),
        date: Timestamp::from_millis(1_772_357_400_000),
        thread_id: None,
        list_id: None,
        to: to.to_owned(),
        content: mail(subject),
        unsubscribe_url: None,
    }
}

async fn send(mailer: &Mailer, to: &str) -> SendResult {
    mailer.send_mail(parcel(1, to, "Down: Checkout (Shop)")).await
}

/// Writes certificate, key and authority for `localhost` to files.
fn certificate(folder: &Path) -> (String, String, Vec<u8>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (folder.join("certificate.pem"), folder.join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let path = |path: &Path| path.to_string_lossy().into_owned();
    (path(&certificate), path(&key), made.cert.pem().into_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_arrives_with_both_parts_and_the_headers_that_mail_programs_go_by() {
    let name = "a_mail_arrives_with_both_parts_and_the_headers_that_mail_programs_go_by";
    let Some(server) = Server::start(name, &["off"]).await else { return };
    let mailer = server.mailer();
    let hostile = "Down: Grüße 🚀 <b>\r\nBcc: eve@evil.example\r\n\r\nx".to_owned() + &" long".repeat(30);
    let parcel = OutgoingMail {
        unsubscribe_url: Some(UNSUBSCRIBE.to_owned()),
        thread_id: Some("inc_1".to_owned()),
        list_id: Some("updates.pg_1".to_owned()),
        ..parcel(7, "ann@example.com", &hostile)
    };
    for _ in 0..2 {
        let sent = mailer.send_mail(parcel.clone()).await;
        assert_eq!((sent.status, sent.outcome, sent.error), (Some(250), AttemptOutcome::Accepted, None));
        assert_eq!(sent.reply, "2.0.0 Taken");
    }
    let taken = server.took(2).await;
    let (first, again) = (&taken[0], &taken[1]);
    assert_eq!(first["headers"], again["headers"], "the same letter over all tries");
    assert_eq!(first["peer"], again["peer"], "by one connection");
    let headers = &first["headers"];
    let id = format!("<{}@example.com>", DeliveryId::from_u128(7));
    let unsubscribe = format!("<{UNSUBSCRIBE}>");
    for (header, value) in [
        ("From", FROM),
        ("To", "ann@example.com"),
        ("Reply-To", "help@example.com"),
        ("Date", "Sun, 01 Mar 2026 09:30:00 +0000"),
        ("Message-ID", &id),
        ("In-Reply-To", "<inc_1@example.com>"),
        ("References", "<inc_1@example.com>"),
        ("List-Id", "<updates.pg_1.example.com>"),
        ("Auto-Submitted", "auto-generated"),
        ("List-Unsubscribe", &unsubscribe),
        ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"),
    ] {
        assert_eq!(headers[header], value, "{header} in {headers}");
    }
    assert_eq!(first["unsubscribe"], format!("List-Unsubscribe: {unsubscribe}"), "on one line");
    assert_eq!(headers.get("Bcc"), None);
    let subject = headers["Subject"].as_str().unwrap();
    assert!(subject.starts_with("Down: Grüße 🚀 <b>  Bcc: eve@evil.example    x long"), "{subject:?}");
    assert_eq!((&first["type"], &first["ascii"]), (&"multipart/alternative".into(), &true.into()));
    assert!(first["longest"].as_u64().unwrap() <= 998, "{first}");
    let wanted = mail("");
    let parts: Vec<(String, String)> = serde_json::from_value(first["parts"].clone()).unwrap();
    let read = |(kind, text): (String, String)| (kind, text.replace("\r\n", "\n").trim_end().to_owned());
    let parts: Vec<(String, String)> = parts.into_iter().map(read).collect();
    let written = |kind: &str, text: &str| (kind.to_owned(), text.trim_end().to_owned());
    assert_eq!(parts, [written("text/plain", &wanted.text), written("text/html", &wanted.html)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_refusal_is_held_against_whoever_it_is_about() {
    let Some(server) = Server::start("each_refusal_is_held_against_whoever_it_is_about", &["off"]).await else {
        return;
    };
    let mailer = server.mailer();
    let refused = send(&mailer, "refused@example.com").await;
    assert_eq!((refused.status, refused.outcome, refused.is_our_fault), (Some(550), AttemptOutcome::Rejected, false));
    assert!(refused.reply.contains("5.1.1 No such user"), "{refused:?}");
    for to in ["denied@example.com", "spam@example.com"] {
        let ours = send(&mailer, to).await;
        assert_eq!((ours.status, ours.outcome), (Some(554), AttemptOutcome::Deferred(None)), "{to}");
        assert!(ours.is_our_fault && ours.error.as_deref().unwrap().starts_with("our side: "), "{ours:?}");
    }
    let banned = refused_as_sender(&server).await;
    assert_eq!((banned.status, banned.outcome), (Some(550), AttemptOutcome::Deferred(None)));
    assert!(banned.error.as_deref().unwrap().contains("sender"), "{banned:?}");
    let nobody = send(&mailer, "not an address").await;
    assert_eq!(nobody.outcome, AttemptOutcome::Rejected);
    let fine = send(&mailer, "ann@example.com").await;
    assert_eq!(fine.outcome, AttemptOutcome::Accepted, "after refusals the connection is of use");
    assert_eq!(server.took(1).await.len(), 1);
}

async fn refused_as_sender(server: &Server) -> SendResult {
    send(&mailer("banned@example.com", server.config()), "ann@example.com").await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_put_off_or_lost_is_sent_again_under_the_same_message_id() {
    let name = "what_is_put_off_or_lost_is_sent_again_under_the_same_message_id";
    let Some(server) = Server::start(name, &["off"]).await else { return };
    let mailer = server.mailer();
    let grey = send(&mailer, "grey@example.com").await;
    assert_eq!((grey.status, grey.outcome), (Some(451), AttemptOutcome::Deferred(None)));
    assert!(!grey.is_our_fault && !grey.error.unwrap().contains("our side"));
    assert_eq!(send(&mailer, "grey@example.com").await.outcome, AttemptOutcome::Accepted);
    let dropped = send(&mailer, "drop@example.com").await;
    assert_eq!((dropped.status, dropped.outcome), (None, AttemptOutcome::Deferred(None)), "{dropped:?}");
    assert_eq!(send(&mailer, "drop@example.com").await.outcome, AttemptOutcome::Accepted);
    assert_eq!(send(&mailer, "slow@example.com").await.outcome, AttemptOutcome::Accepted);
    let ids: Vec<Value> = server.took(4).await.iter().map(|mail| mail["headers"]["Message-ID"].clone()).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_says_nothing_or_is_not_there_is_given_up_in_time() {
    let name = "a_server_that_says_nothing_or_is_not_there_is_given_up_in_time";
    let Some(mut server) = Server::start(name, &["off"]).await else { return };
    let hasty = mailer(FROM, SmtpConfig { step_timeout: Duration::from_millis(500), ..server.config() });
    let hung = send(&hasty, "hang@example.com").await;
    assert_eq!((hung.status, hung.outcome), (None, AttemptOutcome::Deferred(None)));
    assert!(hung.error.as_deref().unwrap().ends_with("no answer in time"), "{hung:?}");
    let mailer = server.mailer();
    assert_eq!(send(&mailer, "ann@example.com").await.outcome, AttemptOutcome::Accepted);
    server.process.kill();
    let gone = send(&mailer, "ann@example.com").await;
    assert_eq!((gone.status, gone.outcome), (None, AttemptOutcome::Deferred(None)));
    assert!(gone.is_our_fault && gone.error.as_deref().unwrap().contains("can't be reached"), "{gone:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_goes_by_tls_or_not_at_all() {
    let folder = TempDir::new().unwrap();
    let (certificate, key, authority) = certificate(folder.path());
    for (mode, tls) in [("starttls", SmtpTls::StartTls), ("implicit", SmtpTls::Implicit)] {
        let arguments = [mode, &certificate, &key];
        let Some(server) = Server::start("a_mail_goes_by_tls_or_not_at_all", &arguments).await else {
            return;
        };
        let trusting = SmtpConfig { tls, trusted_certificates: Some(authority.clone()), ..server.config() };
        let sent = send(&mailer(FROM, trusting), "ann@example.com").await;
        assert_eq!(sent.outcome, AttemptOutcome::Accepted, "{mode}: {sent:?}");
        assert_eq!(server.took(1).await[0]["tls"], true);
        let strange = send(&mailer(FROM, SmtpConfig { tls, ..server.config() }), "ann@example.com").await;
        assert_eq!(strange.outcome, AttemptOutcome::Deferred(None), "{mode}: an authority that nobody trusts");
    }
    let Some(server) = Server::start("a_mail_goes_by_tls_or_not_at_all", &["off"]).await else { return };
    let plain = send(&mailer(FROM, SmtpConfig { tls: SmtpTls::StartTls, ..server.config() }), "ann@example.com").await;
    assert_eq!(plain.outcome, AttemptOutcome::Deferred(None));
    assert!(plain.reply.contains("STARTTLS is not supported"), "{plain:?}");
    assert_eq!(server.taken().len(), 0, "nothing was sent in the clear");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_is_ours_to_mend() {
    let name = "a_login_is_ours_to_mend";
    let Some(server) = Server::start(name, &["off", "status", "pa55word"]).await else { return };
    let with = |password: &str| {
        let credentials = Some(("status".to_owned(), password.to_owned()));
        mailer(FROM, SmtpConfig { credentials, ..server.config() })
    };
    assert_eq!(send(&with("pa55word"), "ann@example.com").await.outcome, AttemptOutcome::Accepted);
    let wrong = send(&with("wrong"), "ann@example.com").await;
    assert_eq!((wrong.status, wrong.outcome), (Some(535), AttemptOutcome::Deferred(None)));
    assert_eq!(wrong.error.as_deref(), Some("our side: the mail server refuses our login"));
    assert!(!format!("{wrong:?}").contains("wrong"), "no password in what is noted");
}

#[tokio::test]
async fn without_a_server_mails_lie_in_a_folder() {
    let folder = TempDir::new().unwrap();
    let to = folder.path().join("mail");
    let transport = MailBackend::Folder(to.clone());
    let config = MailConfig { backend: transport, from: FROM.to_owned(), reply_to: None };
    let mailer = Mailer::new(&config).unwrap();
    for number in [1, 1, 2] {
        let sent = mailer.send_mail(parcel(number, "ann@example.com", "Grüße")).await;
        assert_eq!((sent.outcome, sent.error), (AttemptOutcome::Accepted, None));
    }
    let mut names: Vec<String> =
        std::fs::read_dir(&to).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let name = |number| format!("1772357400000-{}.eml", DeliveryId::from_u128(number));
    assert_eq!(names, [name(1), name(2)]);
    let held = std::fs::read_to_string(to.join(name(1))).unwrap();
    assert!(held.contains("To: ann@example.com\r\n") && held.contains("text/html"), "{held}");
    let off = Mailer::new(&MailConfig { backend: MailBackend::None, ..config }).unwrap();
    let sent = off.send_mail(parcel(1, "ann@example.com", "x")).await;
    assert_eq!((off.is_configured(), sent.outcome), (false, AttemptOutcome::Deferred(None)));
}

/// Returns a message's subject and plain text, as parsed by another implementation.
fn read(mail: &Value) -> (&str, &str) {
    (mail["headers"]["Subject"].as_str().unwrap(), mail["parts"][0][1].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn subscribers_are_written_to_in_their_pages_language() {
    let name = "subscribers_are_written_to_in_their_pages_language";
    let Some(server) = Server::start(name, &["off"]).await else { return };
    let config = format!(
        "[mail]\ntransport = \"smtp\"\nhost = \"localhost\"\nport = {}\ntls = \"none\"\nfrom = \"{FROM}\"\n",
        server.port
    );
    let coordinator = CoordinatorProcess::serve(([127, 0, 0, 1], 0).into(), &config).await;
    let account = coordinator.create_account("pro");
    let path = |rest: &str| format!("/pages/{}{rest}", account.page);
    let look = json!({ "name": "Lädchen", "language": "de", "timezone": "Europe/Berlin" });
    account.client.patch(&path(""), &look).await.expect_status(200);

    let (visitor, page) = (ScriptlessBrowser::new(), format!("{}/p/{}", coordinator.ready.base_url, account.slug));
    assert_eq!(visitor.post(&format!("{page}/subscribe"), "email=ann%40example.com").await, 200);
    let taken = server.took(1).await;
    let (subject, text) = read(&taken[0]);
    assert_eq!(subject, "Bestätigen Sie Ihr Abonnement: Lädchen");
    assert!(text.contains("Wenn Sie das waren, öffnen Sie den Link und bestätigen Sie."), "{text}");
    let confirm = text.split_whitespace().find(|word| word.contains("/confirm?t=")).unwrap();
    let (_, form) = visitor.get(confirm).await;
    assert!(form.contains("<html lang=\"de\"") && form.contains("Abonnement bestätigen"), "{form}");
    let (at, token) = confirm.split_once('?').unwrap();
    assert_eq!(visitor.post(at, token).await, 200);

    let incident = json!({ "title": "Störung an der Kasse" });
    let incident = account.client.post(&path("/incidents"), &incident).await.expect_status(201)["incident"].take();
    assert_eq!(incident["updates"][0]["body"], "Wir untersuchen diesen Vorfall.");
    let taken = server.took(2).await;
    let (subject, text) = read(&taken[1]);
    assert_eq!(subject, "[Lädchen] Störung an der Kasse");
    for line in [
        "Vorfall: Störung an der Kasse (Lädchen)",
        "Wir untersuchen diesen Vorfall.",
        "Status: Wird untersucht",
        "(Europe/Berlin, UTC+",
        "Abbestellen: http",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }

    account.client.patch(&path(""), &json!({ "language": "ja" })).await.expect_status(200);
    let updates = path(&format!("/incidents/{}/updates", incident["id"].as_str().unwrap()));
    let update = json!({ "status": "resolved", "message": "レジは復旧しました。" });
    account.client.post(&updates, &update).await.expect_status(201);
    let taken = server.took(3).await;
    let (subject, text) = read(&taken[2]);
    assert_eq!(subject, "[Lädchen] Störung an der Kasse", "one thread whatever the language");
    assert!(text.starts_with("【解決】Störung an der Kasse（Lädchen）"), "{text}");
    assert!(text.contains("レジは復旧しました。") && text.contains("登録を解除: http"), "{text}");
    assert_eq!((&taken[2]["ascii"], taken[2]["longest"].as_u64() <= Some(998)), (&true.into(), true));
}
