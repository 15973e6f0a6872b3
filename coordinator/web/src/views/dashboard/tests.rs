//! Tests of the frame and of the parts that all screens share.

use std::io::Write as _;

use parallax_core::id::PageId;
use parallax_core::role::Role;
use parallax_core::time::Timestamp;
use parallax_template::template_file;

use super::*;
use crate::views::assets;

/// Text with everything that markup must not let through.
pub(super) const HOSTILE: &str = "</title></textarea></pre><script>alert(1)</script>\" onx='1'<!--icons-->&{{7*7}}";
/// Now, in all samples.
pub(super) const NOW: Timestamp = Timestamp::from_millis(1_795_953_500_000);

/// All parts with one text in every place.
#[template_file("dashboard/components.html")]
struct Components {
    frame: Frame,
    text: String,
    actions: Vec<(&'static str, &'static str)>,
    facts: Vec<(String, &'static str, &'static str)>,
    links: Vec<(&'static str, String, bool)>,
    options: Vec<(String, String)>,
    faults: Vec<(&'static str, &'static str)>,
}

impl Components {
    fn with(text: &str) -> Self {
        Self {
            frame: frame(Role::Owner, Section::Overview, text),
            text: text.to_owned(),
            actions: vec![("/app", "Post update"), ("/app", "See why")],
            facts: vec![(text.to_owned(), "in 30 days", "Uptime"), ("88".to_owned(), "ms", "Response")],
            links: vec![("/app", text.to_owned(), true), ("/app", "7 d".to_owned(), false)],
            options: vec![(text.to_owned(), text.to_owned())],
            faults: vec![("name", "Name"), ("limit", "Slow above")],
        }
    }
}

/// A frame of two pages, on the first of which one monitor is down.
pub(super) fn frame(role: Role, section: Section, name: &str) -> Frame {
    let entry = |no, name: &str, class, down| PageEntry {
        id: PageId::from_u128(no),
        name: name.to_owned(),
        address: "status.northwind.example".to_owned(),
        class,
        down,
        open_incidents: down,
        failing_destinations: 0,
    };
    Frame {
        person: SignedInPerson {
            name: name.to_owned(),
            email: "owner@northwind.example".to_owned(),
            role,
            is_operator: role == Role::Owner,
            form_token: "token".to_owned(),
        },
        pages: vec![entry(1, name, "part", 3), entry(2, "Northwind internal", "up", 0)],
        page: Some(PageId::from_u128(1)),
        section,
        toast: Toast::of("monitors-paused", 3),
        accounts: 1,
        factor_due: None,
        loaded_at: words::clock(NOW),
    }
}

/// Writes a screen to `target/tmp/dashboard`, where it can be looked at in a browser, if `DASHBOARD_SCREENS` is set.
pub(super) fn keep(name: &str, document: &str) {
    if std::env::var_os("DASHBOARD_SCREENS").is_none() {
        return;
    }
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tmp/dashboard");
    std::fs::create_dir_all(folder.join("assets")).unwrap();
    for asset in assets::all() {
        std::fs::write(folder.join("assets").join(&asset.name), asset.text).unwrap();
    }
    let document = document.replace("\"/assets/", "\"assets/");
    std::fs::write(folder.join(format!("{name}.html")), document).unwrap();
}

#[test]
fn no_part_lets_markup_through() {
    let screen = render(&Components::with(HOSTILE)).unwrap();
    for bad in ["<script>alert", "onx='1'<", "</title></textarea>", "\" onx"] {
        assert!(!screen.contains(bad), "{bad} in {screen}");
    }
    assert_eq!(screen.matches("<svg class=\"sprite\"").count(), 1);
    assert!(screen.matches("alert(1)").count() > 20, "the text is in every part");
}

#[test]
fn the_frame_shows_the_person_what_they_may_do() {
    let screen = |role| {
        let components = Components { frame: frame(role, Section::Overview, "Northwind"), ..Components::with("x") };
        render(&components).unwrap()
    };
    let (owner, viewer) = (screen(Role::Owner), screen(Role::Viewer));
    keep("components", &owner);
    assert!(owner.contains("<title>(3) Components · Northwind</title>"), "{owner}");
    assert!(owner.contains("3 monitors paused"));
    for only_for_operators in ["/app/mesh", "/app/accounts", "New page"] {
        assert!(owner.contains(only_for_operators), "{only_for_operators}");
        assert!(!viewer.contains(only_for_operators), "{only_for_operators}");
    }
    assert_eq!(owner.matches("aria-current=\"page\"").count(), 3, "side bar, tab bar and a tab");
}

#[test]
fn style_sheet_and_scripts_are_within_their_budgets() {
    let transferred = |name: &str| {
        let asset = assets::all().into_iter().find(|asset| asset.name == name).unwrap();
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(asset.text.as_bytes()).unwrap();
        packed.finish().unwrap().len()
    };
    let style = transferred(assets::dashboard_style());
    assert!((1..=9 * 1024).contains(&style), "style sheet: {style} bytes after gzip");
    let scripts = transferred(assets::theme()) + transferred(assets::dashboard_script());
    assert!((1..=12 * 1000).contains(&scripts), "scripts: {scripts} bytes after gzip");
    // Instead of the dashboard's script, where persons sign in.
    let passkeys = transferred(assets::passkey_script());
    assert!((1..=3 * 1000).contains(&passkeys), "script for passkeys: {passkeys} bytes after gzip");
}

#[test]
fn questions_and_search_results_are_escaped() {
    use parallax_core::id::MonitorId;
    let id = MonitorId::from_u128(7);
    let owner = || frame(Role::Owner, Section::Monitors, "Northwind");
    let hit = SearchHit {
        class: "up",
        icon: "up",
        href: "/app".to_owned(),
        text: HOSTILE.to_owned(),
        meta: HOSTILE.to_owned(),
    };
    let delete = BulkScreen::ask(owner(), vec![(id, HOSTILE.to_owned())], true, "key".to_owned());
    let pause = BulkScreen::ask_to_pause(owner(), vec![id], vec![HOSTILE.to_owned()], "key".to_owned());
    let refused = BulkScreen::refused(owner(), 1, vec![(HOSTILE.to_owned(), HOSTILE.to_owned())]);
    let search = SearchScreen::new(owner(), HOSTILE.to_owned(), vec![hit]);
    let screens = [render(&delete), render(&pause), render(&refused), render(&search)].map(Result::unwrap);
    for screen in &screens {
        assert!(screen.contains("alert(1)") && !screen.contains("<script>alert"), "{screen}");
    }
    assert!(screens[0].contains("Type delete 1 to delete them."), "{}", screens[0]);
    assert!(screens[1].contains("Start maintenance instead"), "{}", screens[1]);
    assert!(screens[2].contains("1 of 2 changed"), "{}", screens[2]);
}

#[test]
fn search_finds_pages_and_sections_by_their_words() {
    let found = |query: &str| {
        let owner = frame(Role::Owner, Section::Search, "Northwind");
        render(&SearchScreen::new(owner, query.to_owned(), Vec::new())).unwrap()
    };
    let results = |query: &str| {
        let screen = found(query);
        let (_, after) = screen.split_once("id=\"results\"").unwrap();
        after.split_once("<nav class=\"tabs\"").unwrap().0.matches("<li>").count()
    };
    assert_eq!([results("northwind"), results("MESH"), results("zebra")], [2, 1, 0]);
    assert!(found("zebra").contains("Nothing matches."));
}

#[test]
fn screens_with_live_parts_follow_the_stream_and_others_do_not() {
    let templates = concat!(env!("CARGO_MANIFEST_DIR"), "/templates/dashboard");
    let mut count = 0;
    for entry in std::fs::read_dir(templates).unwrap() {
        let path = entry.unwrap().path();
        // The parts are inserted into screens; the other file shows them all.
        if path.is_dir() || path.ends_with("components.html") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let has_parts = text.contains("data-part");
        let is_live = text.contains("ui::live(frame)") || text.contains("mon::head(");
        assert_eq!(has_parts, is_live, "{}", path.display());
        count += usize::from(is_live);
    }
    assert!(count > 8, "{count}");
}
