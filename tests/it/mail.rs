//! Mails to a real server, which takes, refuses, delays and drops them; what arrives is read by another implementation.

use std::path::Path;
use std::time::Duration;

use parallax_coordinator::deliver::mail::{MailConfig, Mailer, SmtpConfig, Tls, Transport};
use parallax_coordinator::deliver::{Parcel, Post, Posted};
use parallax_core::delivery::{Mail, Outcome};
use parallax_core::id::DeliveryId;
use parallax_core::time::Timestamp;
use parallax_tests::eventually::eventually;
use parallax_tests::installation::Coordinator;
use parallax_tests::process::Process;
use parallax_tests::tools::Tools;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::subscribers::Visitor;

const SOON: Duration = Duration::from_secs(30);
const FROM: &str = "Example Status <status@example.com>";
const UNSUBSCRIBE: &str = "https://status.example.com/p/shop/unsubscribe/\
                           AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";

/// A mail server of this test alone.
struct Server {
    process: Process,
    port: u16,
    _folder: TempDir,
}

impl Server {
    /// Starts one; none where the program is not there.
    async fn start(test: &str, arguments: &[&str]) -> Option<Self> {
        let tools = Tools::find(test)?;
        let folder = TempDir::new().unwrap();
        let mut command = tools.python("python");
        command.arg(Tools::file("mail_server.py")).args(arguments);
        let mut process = Process::start("mail-server", command, folder.path());
        process.says("listening on ", SOON).await;
        let port = process.log().lines().find_map(|line| line.strip_prefix("listening on ")?.parse().ok());
        Some(Self { process, port: port.unwrap(), _folder: folder })
    }

    fn config(&self) -> SmtpConfig {
        SmtpConfig {
            host: "localhost".to_owned(),
            port: self.port,
            tls: Tls::Off,
            credentials: None,
            authority: None,
            patience: SOON,
        }
    }

    fn mailer(&self) -> Mailer {
        mailer(FROM, self.config())
    }

    /// What it took so far.
    fn taken(&self) -> Vec<Value> {
        let log = self.process.log();
        // The last may be half written.
        let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole
            .lines()
            .filter(|line| line.starts_with('{'))
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    async fn took(&self, count: usize) -> Vec<Value> {
        let what = format!("the mail server took {count}");
        eventually(&what, SOON, async || Some(self.taken()).filter(|taken| taken.len() == count)).await
    }
}

fn mailer(from: &str, smtp: SmtpConfig) -> Mailer {
    let transport = Transport::Smtp(smtp);
    let reply_to = Some("help@example.com".to_owned());
    Mailer::new(&MailConfig { transport, from: from.to_owned(), reply_to }).unwrap()
}

fn mail(subject: &str) -> Mail {
    Mail {
        subject: subject.to_owned(),
        text: format!("Grüße\n.\n..\n{}\n", "long ".repeat(500)),
        html: format!("<p>Grüße</p>{}", "<i>x</i>".repeat(500)),
    }
}

fn parcel(number: u128, to: &str, subject: &str) -> Parcel {
    Parcel {
        delivery: DeliveryId::from_u128(number),
        date: Timestamp::from_millis(1_772_357_400_000),
        thread: None,
        list: None,
        to: to.to_owned(),
        mail: mail(subject),
        unsubscribe: None,
    }
}

async fn send(mailer: &Mailer, to: &str) -> Posted {
    mailer.post(parcel(1, to, "Down: Checkout (Shop)")).await
}

/// Certificate, key and authority for `localhost`, as files.
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
    let parcel = Parcel {
        unsubscribe: Some(UNSUBSCRIBE.to_owned()),
        thread: Some("inc_1".to_owned()),
        list: Some("updates.pg_1".to_owned()),
        ..parcel(7, "ann@example.com", &hostile)
    };
    for _ in 0..2 {
        let sent = mailer.post(parcel.clone()).await;
        assert_eq!((sent.status, sent.outcome, sent.error), (Some(250), Outcome::Taken, None));
        assert_eq!(sent.answer, "2.0.0 Taken");
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
    let Some(server) = Server::start("each_refusal_is_held_against_whoever_it_is_about", &["off"]).await
    else {
        return;
    };
    let mailer = server.mailer();
    let refused = send(&mailer, "refused@example.com").await;
    assert_eq!((refused.status, refused.outcome, refused.is_ours), (Some(550), Outcome::Refused, false));
    assert!(refused.answer.contains("5.1.1 No such user"), "{refused:?}");
    for to in ["denied@example.com", "spam@example.com"] {
        let ours = send(&mailer, to).await;
        assert_eq!((ours.status, ours.outcome), (Some(554), Outcome::NotNow(None)), "{to}");
        assert!(ours.is_ours && ours.error.as_deref().unwrap().starts_with("our side: "), "{ours:?}");
    }
    let banned = refused_as_sender(&server).await;
    assert_eq!((banned.status, banned.outcome), (Some(550), Outcome::NotNow(None)));
    assert!(banned.error.as_deref().unwrap().contains("sender"), "{banned:?}");
    let nobody = send(&mailer, "not an address").await;
    assert_eq!(nobody.outcome, Outcome::Refused);
    let fine = send(&mailer, "ann@example.com").await;
    assert_eq!(fine.outcome, Outcome::Taken, "after refusals the connection is of use");
    assert_eq!(server.took(1).await.len(), 1);
}

async fn refused_as_sender(server: &Server) -> Posted {
    send(&mailer("banned@example.com", server.config()), "ann@example.com").await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_put_off_or_lost_is_sent_again_under_the_same_message_id() {
    let name = "what_is_put_off_or_lost_is_sent_again_under_the_same_message_id";
    let Some(server) = Server::start(name, &["off"]).await else { return };
    let mailer = server.mailer();
    let grey = send(&mailer, "grey@example.com").await;
    assert_eq!((grey.status, grey.outcome), (Some(451), Outcome::NotNow(None)));
    assert!(!grey.is_ours && !grey.error.unwrap().contains("our side"));
    assert_eq!(send(&mailer, "grey@example.com").await.outcome, Outcome::Taken);
    let dropped = send(&mailer, "drop@example.com").await;
    assert_eq!((dropped.status, dropped.outcome), (None, Outcome::NotNow(None)), "{dropped:?}");
    assert_eq!(send(&mailer, "drop@example.com").await.outcome, Outcome::Taken);
    assert_eq!(send(&mailer, "slow@example.com").await.outcome, Outcome::Taken);
    let ids: Vec<Value> =
        server.took(4).await.iter().map(|mail| mail["headers"]["Message-ID"].clone()).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_says_nothing_or_is_not_there_is_given_up_in_time() {
    let name = "a_server_that_says_nothing_or_is_not_there_is_given_up_in_time";
    let Some(mut server) = Server::start(name, &["off"]).await else { return };
    let hasty = mailer(FROM, SmtpConfig { patience: Duration::from_millis(500), ..server.config() });
    let hung = send(&hasty, "hang@example.com").await;
    assert_eq!((hung.status, hung.outcome), (None, Outcome::NotNow(None)));
    assert!(hung.error.as_deref().unwrap().ends_with("no answer in time"), "{hung:?}");
    let mailer = server.mailer();
    assert_eq!(send(&mailer, "ann@example.com").await.outcome, Outcome::Taken);
    server.process.kill();
    let gone = send(&mailer, "ann@example.com").await;
    assert_eq!((gone.status, gone.outcome), (None, Outcome::NotNow(None)));
    assert!(gone.is_ours && gone.error.as_deref().unwrap().contains("can't be reached"), "{gone:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_goes_by_tls_or_not_at_all() {
    let folder = TempDir::new().unwrap();
    let (certificate, key, authority) = certificate(folder.path());
    for (mode, tls) in [("starttls", Tls::StartTls), ("implicit", Tls::Implicit)] {
        let arguments = [mode, &certificate, &key];
        let Some(server) = Server::start("a_mail_goes_by_tls_or_not_at_all", &arguments).await else {
            return;
        };
        let trusting = SmtpConfig { tls, authority: Some(authority.clone()), ..server.config() };
        let sent = send(&mailer(FROM, trusting), "ann@example.com").await;
        assert_eq!(sent.outcome, Outcome::Taken, "{mode}: {sent:?}");
        assert_eq!(server.took(1).await[0]["tls"], true);
        let strange = send(&mailer(FROM, SmtpConfig { tls, ..server.config() }), "ann@example.com").await;
        assert_eq!(strange.outcome, Outcome::NotNow(None), "{mode}: an authority that nobody trusts");
    }
    let Some(server) = Server::start("a_mail_goes_by_tls_or_not_at_all", &["off"]).await else { return };
    let plain =
        send(&mailer(FROM, SmtpConfig { tls: Tls::StartTls, ..server.config() }), "ann@example.com").await;
    assert_eq!(plain.outcome, Outcome::NotNow(None));
    assert!(plain.answer.contains("STARTTLS is not supported"), "{plain:?}");
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
    assert_eq!(send(&with("pa55word"), "ann@example.com").await.outcome, Outcome::Taken);
    let wrong = send(&with("wrong"), "ann@example.com").await;
    assert_eq!((wrong.status, wrong.outcome), (Some(535), Outcome::NotNow(None)));
    assert_eq!(wrong.error.as_deref(), Some("our side: the mail server refuses our login"));
    assert!(!format!("{wrong:?}").contains("wrong"), "no password in what is noted");
}

#[tokio::test]
async fn without_a_server_mails_lie_in_a_folder() {
    let folder = TempDir::new().unwrap();
    let to = folder.path().join("mail");
    let transport = Transport::Folder(to.clone());
    let config = MailConfig { transport, from: FROM.to_owned(), reply_to: None };
    let mailer = Mailer::new(&config).unwrap();
    for number in [1, 1, 2] {
        let sent = mailer.post(parcel(number, "ann@example.com", "Grüße")).await;
        assert_eq!((sent.outcome, sent.error), (Outcome::Taken, None));
    }
    let mut names: Vec<String> =
        std::fs::read_dir(&to).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let name = |number| format!("1772357400000-{}.eml", DeliveryId::from_u128(number));
    assert_eq!(names, [name(1), name(2)]);
    let held = std::fs::read_to_string(to.join(name(1))).unwrap();
    assert!(held.contains("To: ann@example.com\r\n") && held.contains("text/html"), "{held}");
    let off = Mailer::new(&MailConfig { transport: Transport::None, ..config }).unwrap();
    let sent = off.post(parcel(1, "ann@example.com", "x")).await;
    assert_eq!((off.is_set(), sent.outcome), (false, Outcome::NotNow(None)));
}

/// A mail's subject and plain text, as another implementation reads them.
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
    let coordinator = Coordinator::serve(([127, 0, 0, 1], 0).into(), &config).await;
    let account = coordinator.account("pro");
    let path = |rest: &str| format!("/pages/{}{rest}", account.page);
    let look = json!({ "name": "Lädchen", "language": "de", "timezone": "Europe/Berlin" });
    account.client.patch(&path(""), &look).await.is(200);

    let (visitor, page) = (Visitor::new(), format!("{}/p/{}", coordinator.ready.base_url, account.slug));
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
    let incident = account.client.post(&path("/incidents"), &incident).await.is(201)["incident"].take();
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

    account.client.patch(&path(""), &json!({ "language": "ja" })).await.is(200);
    let updates = path(&format!("/incidents/{}/updates", incident["id"].as_str().unwrap()));
    let update = json!({ "status": "resolved", "message": "レジは復旧しました。" });
    account.client.post(&updates, &update).await.is(201);
    let taken = server.took(3).await;
    let (subject, text) = read(&taken[2]);
    assert_eq!(subject, "[Lädchen] Störung an der Kasse", "one thread whatever the language");
    assert!(text.starts_with("【解決】Störung an der Kasse（Lädchen）"), "{text}");
    assert!(text.contains("レジは復旧しました。") && text.contains("登録を解除: http"), "{text}");
    assert_eq!((&taken[2]["ascii"], taken[2]["longest"].as_u64() <= Some(998)), (&true.into(), true));
}
