//! kill -9 while people sign in and out, pause, and undo: what was answered holds afterwards, and nothing is half done.

use std::net::SocketAddr;
use std::time::Duration;

use parallax_tests::dashboard_browser::DashboardBrowser;
use parallax_tests::eventually::print_note;
use parallax_tests::installation::{CoordinatorProcess, TestAccount};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::timeout;

const EMAIL: &str = "olga@example.com";
const PASSWORD: &str = "correct horse battery";
/// Kills; each comes after another number of answers.
const KILLS: usize = 5;
/// Answers before the first kill, and further ones before each next.
const ANSWERS: usize = 9;
const FURTHER: usize = 7;
/// Longest wait for an answer.
const LIMIT: Duration = Duration::from_secs(60);

/// An answer, or a request that is about to be sent.
enum DashboardProgress {
    SignedIn(DashboardBrowser),
    SigningOut(DashboardBrowser),
    SignedOut(DashboardBrowser),
    Pausing,
    Paused { undo: String },
    Undoing,
    Undone,
}

/// The monitor's pause, as far as it was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PauseState {
    Active,
    Pausing,
    Paused { undo: String },
    Undoing { undo: String },
}

/// Sign-ins without end; every second signs out again, since a person has a bounded number of sessions.
async fn sign_in_and_out(base: String, told: mpsc::UnboundedSender<DashboardProgress>) {
    for turn in 1.. {
        let Some(mut browser) = sign_in(&base).await else { return };
        let _ = told.send(DashboardProgress::SignedIn(browser.clone()));
        if turn % 2 > 0 {
            continue;
        }
        if browser.open("/app").await.is_none() {
            return;
        }
        let _ = told.send(DashboardProgress::SigningOut(browser.clone()));
        let Some(answer) = browser.submit("/sign-out", &[]).await else { return };
        assert_eq!(answer.status, 303, "{}", answer.text);
        let _ = told.send(DashboardProgress::SignedOut(browser));
    }
}

/// Pauses the monitor and undoes it, without end.
async fn pause_and_undo(
    mut browser: DashboardBrowser,
    monitor: String,
    told: mpsc::UnboundedSender<DashboardProgress>,
) {
    if browser.open(&monitor).await.is_none() {
        return;
    }
    loop {
        let _ = told.send(DashboardProgress::Pausing);
        let Some(paused) = browser.submit(&format!("{monitor}/pause"), &[]).await else { return };
        assert_eq!(paused.status, 303, "{}", paused.text);
        let undo = undo_address(&paused.location);
        let _ = told.send(DashboardProgress::Paused { undo: undo.clone() });
        let _ = told.send(DashboardProgress::Undoing);
        let Some(undone) = browser.submit(&undo, &[("next", &monitor)]).await else { return };
        assert_eq!(undone.status, 303, "{}", undone.text);
        let _ = told.send(DashboardProgress::Undone);
    }
}

async fn sign_in(base: &str) -> Option<DashboardBrowser> {
    let fields = [("email", EMAIL), ("password", PASSWORD)];
    DashboardBrowser::new(base).sign_in("/sign-in", &fields).await
}

/// The address of the form of the toast's button.
fn undo_address(location: &str) -> String {
    let token = location.split_once("undo=").expect("an undo is offered").1;
    format!("/app/undo/{}", token.split('&').next().unwrap_or_default())
}

/// Answers before the kill.
#[derive(Default)]
struct DashboardLedger {
    signed_in: Vec<DashboardBrowser>,
    signed_out: Vec<DashboardBrowser>,
    answers: usize,
}

impl DashboardLedger {
    fn note(&mut self, progress: DashboardProgress, pause: &mut PauseState) {
        let is_request = matches!(
            progress,
            DashboardProgress::SigningOut(_) | DashboardProgress::Pausing | DashboardProgress::Undoing
        );
        self.answers += usize::from(!is_request);
        match progress {
            DashboardProgress::SignedIn(browser) => self.signed_in.push(browser),
            // Without an answer it may have ended or not.
            DashboardProgress::SigningOut(browser) => self.signed_in.retain(|it| it.cookie() != browser.cookie()),
            DashboardProgress::SignedOut(browser) => self.signed_out.push(browser),
            DashboardProgress::Pausing => *pause = PauseState::Pausing,
            DashboardProgress::Paused { undo } => *pause = PauseState::Paused { undo },
            DashboardProgress::Undoing => {
                if let PauseState::Paused { undo } = pause.clone() {
                    *pause = PauseState::Undoing { undo };
                }
            }
            DashboardProgress::Undone => *pause = PauseState::Active,
        }
    }
}

/// A coordinator with an owner who is signed in, and a monitor.
struct DashboardScene {
    coordinator: CoordinatorProcess,
    account: TestAccount,
    owner: DashboardBrowser,
    id: serde_json::Value,
}

impl DashboardScene {
    async fn new() -> Self {
        let coordinator = CoordinatorProcess::serve(SocketAddr::from(([127, 0, 0, 1], 0)), "").await;
        let account = coordinator.create_account_of(EMAIL, "pro");
        let monitor = json!({ "name": "Queue", "url": "http://site.test/" });
        let id = account.client.create_monitor(&account.page, &monitor).await["id"].take();
        let (_, owner) = DashboardBrowser::set_up(&coordinator, EMAIL, PASSWORD).await;
        Self { coordinator, account, owner, id }
    }

    fn monitor_path(&self) -> String {
        format!("/app/pages/{}/monitors/{}", self.account.page, self.id.as_str().unwrap_or_default())
    }

    async fn is_paused(&self) -> bool {
        let path = format!("/pages/{}/monitors/{}", self.account.page, self.id.as_str().unwrap_or_default());
        let monitor = self.account.client.get(&path).await.expect_status(200)["monitor"].take();
        monitor["paused"].as_bool().expect("a flag")
    }

    /// Lets them work, and kills the coordinator after that many answers.
    async fn kill_after(&mut self, answers: usize) -> (DashboardLedger, PauseState) {
        let base = self.coordinator.ready.base_url.clone();
        let (told, mut progress) = mpsc::unbounded_channel();
        let tasks = [
            tokio::spawn(sign_in_and_out(base.clone(), told.clone())),
            tokio::spawn(sign_in_and_out(base, told.clone())),
            tokio::spawn(pause_and_undo(self.owner.clone(), self.monitor_path(), told)),
        ];
        let (mut ledger, mut pause) = (DashboardLedger::default(), PauseState::Active);
        while ledger.answers < answers {
            let next = timeout(LIMIT, progress.recv()).await.expect("an answer in time");
            ledger.note(next.expect("they go on"), &mut pause);
        }
        self.coordinator.process.kill();
        for task in tasks {
            task.await.expect("each answer is as expected");
        }
        // What was answered before the kill, and is noted only now.
        while let Some(next) = progress.recv().await {
            ledger.note(next, &mut pause);
        }
        (ledger, pause)
    }

    /// Sends the undo again, as somebody does who got no answer.
    async fn undo_again(&mut self, undo: &str) {
        let (was_paused, next) = (self.is_paused().await, self.monitor_path());
        let answer = self.owner.submit(undo, &[("next", &next)]).await.expect("it is up");
        if was_paused {
            assert_eq!(answer.status, 303, "{}", answer.text);
        } else {
            assert!(answer.status == 409 && answer.text.contains("This change was undone already."), "{}", answer.text);
        }
        assert!(!self.is_paused().await, "undone by the first or the second");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_dashboard_answered_holds_after_kills() {
    let mut scene = DashboardScene::new().await;
    for kill in 0..KILLS {
        let (ledger, pause) = scene.kill_after(ANSWERS + FURTHER * kill).await;
        scene.coordinator.restart().await;
        // With the token of the session's forms.
        assert_eq!(scene.owner.open("/app").await.expect("it is up").status, 200);
        for mut browser in ledger.signed_in {
            assert_eq!(browser.open("/app").await.expect("it is up").status, 200, "kill {kill}: a session is lost");
        }
        for mut browser in ledger.signed_out {
            assert_eq!(browser.open("/app").await.expect("it is up").status, 303, "kill {kill}: a session is back");
        }
        print_note(&format!("kill {kill}: {} answers, {pause:?}", ledger.answers));
        match pause {
            PauseState::Active => assert!(!scene.is_paused().await, "kill {kill}: the undo is lost"),
            PauseState::Paused { undo } => {
                assert!(scene.is_paused().await, "kill {kill}: the pause is lost");
                scene.undo_again(&undo).await;
            }
            PauseState::Undoing { undo } => scene.undo_again(&undo).await,
            // Paused or not, and then the monitor works as before.
            PauseState::Pausing => {
                let path = format!("{}/resume", scene.monitor_path());
                if scene.is_paused().await {
                    assert_eq!(scene.owner.submit(&path, &[]).await.expect("it is up").status, 303);
                }
                assert!(!scene.is_paused().await);
            }
        }
    }
}
