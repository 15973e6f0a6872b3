//! A damaged store is either healthy or detected at start, and the command in the message repairs it.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use parallax_tests::eventually::{eventually, print_note, skip_test};
use parallax_tests::installation::{CoordinatorProcess, StartFailure, TestAccount};
use parallax_tests::process::{binary, output};
use parallax_tests::test_disk::Tmpfs;
use serde_json::{Value, json};

/// Exit status for a store that must be restored first.
const RESCUE: Option<i32> = Some(3);
/// Takes a snapshot whenever something has changed.
const CONFIG: &str = "[store]\nsnapshot_seconds = 1\n";

/// A stopped coordinator with monitors, all in its newest snapshot, and an undamaged copy of its data.
struct DamagedStoreScene {
    coordinator: CoordinatorProcess,
    account: TestAccount,
    monitors: Vec<Value>,
    sound: PathBuf,
    seed: u64,
}

impl DamagedStoreScene {
    async fn set() -> Self {
        let mut coordinator = CoordinatorProcess::serve(SocketAddr::from(([127, 0, 0, 1], 0)), CONFIG).await;
        let account = coordinator.create_account("pro");
        for number in 0..60 {
            let body =
                json!({"name": format!("m{number}"), "url": format!("http://site{number}.test/{}", "x".repeat(900))});
            account.client.create_monitor(&account.page, &body).await;
        }
        let monitors = account.client.monitors(&account.page).await;
        let before = snapshots(&coordinator.data());
        eventually("a snapshot has everything", Duration::from_secs(20), async || {
            // The first new snapshot may have begun before the last write.
            (snapshots(&coordinator.data()).iter().filter(|name| !before.contains(name)).count() >= 2).then_some(())
        })
        .await;
        coordinator.process.terminate();
        coordinator.process.wait_for_exit(Duration::from_secs(20)).await;
        let sound = coordinator.data().with_file_name("sound");
        copy(&coordinator.data(), &sound);
        Self { coordinator, account, monitors, sound, seed: 7 }
    }

    /// Returns the path of the engine's file.
    fn file(&self) -> PathBuf {
        self.coordinator.data().join("store/sled/db")
    }

    /// Damages a copy of the store and starts it. Returns true if the damage was detected, and repaired.
    async fn damage_and_start(&mut self, what: &str, damage: impl FnOnce(&mut Vec<u8>)) -> bool {
        self.coordinator.process.kill();
        fs::remove_dir_all(self.coordinator.data()).unwrap();
        copy(&self.sound, &self.coordinator.data());
        let mut bytes = fs::read(self.file()).unwrap();
        damage(&mut bytes);
        fs::write(self.file(), bytes).unwrap();
        let found = match self.coordinator.try_restart().await {
            Ok(()) => false,
            Err(refusal) => {
                self.run_suggested_command(what, &refusal);
                self.coordinator.restart().await;
                true
            }
        };
        let there = self.account.client.monitors(&self.account.page).await;
        assert_eq!(names(&there), names(&self.monitors), "{what}: nothing is lost silently");
        found
    }

    /// Runs the command named in the message.
    fn run_suggested_command(&self, what: &str, refusal: &StartFailure) {
        assert_eq!(refusal.code, RESCUE, "{what}: {}", refusal.output);
        let command = refusal.output.lines().rev().find_map(|line| line.strip_prefix("  "));
        let command = command.unwrap_or_else(|| panic!("{what}: no command in {}", refusal.output));
        let folder = binary("parallax").parent().unwrap().display().to_string();
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).env("PATH", format!("{folder}:{}", std::env::var("PATH").unwrap_or_default()));
        output(shell).unwrap_or_else(|fault| panic!("{what}: {fault}"));
    }

    /// Returns a pseudo-random offset in the used part of the engine's file.
    fn random_offset(&mut self, within: usize) -> usize {
        // Knuth's multiplier for a 64-bit linear congruential generator.
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) as usize % within
    }

    async fn round(&mut self, flips: usize, cuts: usize) {
        let used = fs::read(self.file()).unwrap().iter().rposition(|byte| *byte != 0).unwrap();
        let mut found = 0;
        for number in 0..flips {
            let at = self.random_offset(used - 4);
            let flip = |bytes: &mut Vec<u8>| bytes[at..at + 4].iter_mut().for_each(|byte| *byte = !*byte);
            found += usize::from(self.damage_and_start(&format!("flip {number} at {at}"), flip).await);
        }
        for number in 0..cuts {
            let end = self.random_offset(used);
            found += usize::from(
                self.damage_and_start(&format!("cut {number} at {end}"), |bytes| bytes.truncate(end)).await,
            );
        }
        let at = self.random_offset(used) / 4096 * 4096;
        let zeros = |bytes: &mut Vec<u8>| bytes.iter_mut().skip(at).take(4096).for_each(|byte| *byte = 0);
        let zeroed = self.damage_and_start("a page of zeros", zeros).await;
        assert!(self.damage_and_start("an empty file", Vec::clear).await, "an empty file is no store");
        assert!(found > 0, "no damage reached the data");
        let of = flips + cuts;
        print_note(&format!(
            "{found} of {of} flips and cuts were found and put right, {} healthy; a page of zeros: {}",
            of - found,
            if zeroed { "found" } else { "healthy" }
        ));
    }
}

fn names(monitors: &[Value]) -> Vec<(&Value, &Value)> {
    monitors.iter().map(|monitor| (&monitor["id"], &monitor["name"])).collect()
}

fn snapshots(data: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(data.join("snapshots")).into_iter().flatten();
    entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "snapshot"))
        .collect()
}

fn copy(from: &Path, to: &Path) {
    let mut copy = Command::new("cp");
    copy.arg("-a").arg(from).arg(to);
    output(copy).unwrap_or_else(|fault| panic!("{fault}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_store_is_healthy_or_put_right_by_the_command_it_names() {
    DamagedStoreScene::set().await.round(12, 6).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: `cargo test -p parallax-tests --test it damage -- --ignored`"]
async fn fifty_flips_and_twenty_cuts_are_healthy_or_put_right() {
    DamagedStoreScene::set().await.round(50, 20).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_snapshot_is_passed_over_for_an_older_one() {
    let mut ward = DamagedStoreScene::set().await;
    let newest = snapshots(&ward.sound).into_iter().max().unwrap();
    let bytes = fs::read(&newest).unwrap();
    fs::write(&newest, &bytes[..bytes.len() / 2]).unwrap();
    assert!(ward.damage_and_start("an empty file", Vec::clear).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_another_user_are_told_with_the_command_that_gives_them_back() {
    if !rustix::process::geteuid().is_root() {
        skip_test("files_of_another_user", "only root can give files away", "not root");
        return;
    }
    let mut ward = DamagedStoreScene::set().await;
    ward.coordinator.run_as(65_534);
    ward.coordinator.restart().await;
    ward.coordinator.process.kill();
    let data = ward.coordinator.data();
    for path in [ward.file(), data.join("store/WATERMARK"), data.join("store"), data.clone()] {
        let mut chown = Command::new("chown");
        chown.arg("0").arg(&path);
        let mut chmod = Command::new("chmod");
        chmod.arg("go-rwx").arg(&path);
        output(chown).and_then(|_| output(chmod)).unwrap();
        let refusal = ward.coordinator.try_restart().await.unwrap_err();
        assert!(refusal.output.contains("belongs to user 0"), "{}: {}", path.display(), refusal.output);
        ward.run_suggested_command(&path.display().to_string(), &refusal);
        ward.coordinator.restart().await;
        let there = ward.account.client.monitors(&ward.account.page).await;
        assert_eq!(names(&there), names(&ward.monitors));
        ward.coordinator.process.kill();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_lets_nothing_be_written_is_told_and_loses_nothing() {
    let folder = tempfile::TempDir::new().unwrap();
    let test = "a_disk_that_lets_nothing_be_written_is_told_and_loses_nothing";
    let Some(disk) = Tmpfs::mount(test, &folder.path().join("data"), 320) else { return };
    let mut coordinator = CoordinatorProcess::serve_in(folder, SocketAddr::from(([127, 0, 0, 1], 0)), CONFIG).await;
    let account = coordinator.create_account("pro");
    account.client.create_monitor(&account.page, &json!({"name": "kept", "url": "http://site.test/"})).await;
    let monitors = account.client.monitors(&account.page).await;
    for kill in [true, false] {
        if kill {
            coordinator.process.kill();
        } else {
            coordinator.process.terminate();
            coordinator.process.wait_for_exit(Duration::from_secs(20)).await;
        }
        disk.set_read_only(true);
        let refusal = coordinator.try_restart().await.unwrap_err();
        assert!(refusal.code.is_some_and(|code| code != 0), "{refusal:?}");
        let data = coordinator.data().display().to_string();
        assert!(
            refusal.output.contains("Read-only file system") && refusal.output.contains(&data),
            "{}",
            refusal.output
        );
        disk.set_read_only(false);
        coordinator.restart().await;
        assert_eq!(names(&account.client.monitors(&account.page).await), names(&monitors));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_a_running_coordinator_is_put_back_elsewhere() {
    let mut coordinator = CoordinatorProcess::serve(SocketAddr::from(([127, 0, 0, 1], 0)), "").await;
    let account = coordinator.create_account("pro");
    account.client.create_monitor(&account.page, &json!({"name": "kept", "url": "http://site.test/"})).await;
    let monitors = account.client.monitors(&account.page).await;
    let file = coordinator.data().with_file_name("backup");
    let file = file.to_str().unwrap();
    let backup = coordinator.run_command(&["backup", file]).unwrap();
    let whole = coordinator.run_command(&["verify"]).unwrap();
    assert!(whole["records"].as_u64() >= backup["records"].as_u64() && whole["healthy"] == true, "{whole}");
    assert_eq!(coordinator.run_command(&["verify", file]).unwrap()["records"], backup["records"]);
    let refused = coordinator.run_command(&["backup", file]).unwrap_err();
    assert!(refused.contains("already exists"), "{refused}");
    for command in [&["restore", file][..], &["compact"]] {
        let refused = coordinator.run_command(command).unwrap_err();
        assert!(refused.contains("in use by another process"), "{refused}");
    }
    account.client.create_monitor(&account.page, &json!({"name": "later", "url": "http://site.test/"})).await;

    coordinator.process.kill();
    coordinator.run_command(&["compact"]).unwrap();
    assert_eq!(coordinator.run_command(&["verify"]).unwrap()["healthy"], true);
    coordinator.restart().await;
    assert_eq!(account.client.monitors(&account.page).await.len(), 2);

    // A new host: only the backup file is left.
    coordinator.process.kill();
    let authority = fs::read(coordinator.data().join("authority.pem")).unwrap();
    fs::remove_dir_all(coordinator.data()).unwrap();
    coordinator.run_command(&["restore", file]).unwrap();
    assert_eq!(fs::read(coordinator.data().join("authority.pem")).unwrap(), authority, "agents know it again");
    coordinator.restart().await;
    assert_eq!(names(&account.client.monitors(&account.page).await), names(&monitors));
}
