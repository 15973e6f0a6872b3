//! Rendering of the settings and of the operator's screens: every text is escaped, and texts say what they should.

use parallax_core::confirmation::ConfirmingNetworks;
use parallax_core::effective::ConfirmationPolicy;
use parallax_core::operator_alert::OperatorProblem;
use parallax_core::role::Role;
use parallax_core::vantage::Region;

use super::*;
use crate::views::dashboard::form::FieldFault;
use crate::views::dashboard::mesh::{
    AgentRow, AgentTrouble, InvitationLine, MeshScreen, agent_notices, problem_notices, region_lines,
};
use crate::views::dashboard::tests::{HOSTILE, NOW, frame, keep};
use crate::views::dashboard::{Section, render, words};

fn head(section: SettingsSection, name: &str) -> SettingsHead {
    SettingsHead {
        section,
        base: "/app/pages/pg_1".to_owned(),
        name: name.to_owned(),
        url: "https://status.northwind.example".to_owned(),
        address: "status.northwind.example".to_owned(),
        access: VisitorAccess::Public,
        may_change: true,
        tabs: SettingsHead::tabs("/app/pages/pg_1", section, true),
    }
}

fn form(values: &[(&str, &str)]) -> FormView {
    let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    FormView::new("token".to_owned(), "once".to_owned(), String::new(), values)
}

fn check(name: &str, screen: &str) {
    keep(name, screen);
    for bad in ["<script>alert", "onx='1'<", "</title></textarea>", "\" onx"] {
        assert!(!screen.contains(bad), "{name}: {bad} in {screen}");
    }
}

#[test]
fn no_text_of_the_look_gets_out_of_its_place() {
    for (name, text) in [("settings-look-hostile", HOSTILE), ("settings-look", "Northwind")] {
        let values = [
            ("name", text),
            ("description", "Shops, warehouses and everything between"),
            ("supportUrl", text),
            ("accentColor", "#1d5c8f"),
            ("theme", "auto"),
            ("showLocations", "true"),
        ];
        let mut form = form(&values);
        if text == HOSTILE {
            form.faults = vec![FieldFault { field: "name".to_owned(), text: text.to_owned() }];
            form.problem = Some(text.to_owned());
        }
        let frame = frame(Role::Owner, Section::StatusPage, "Northwind");
        let look = LookForm { frame, head: head(SettingsSection::Look, text), form, logo: None, icon: None };
        let screen = render(&look).unwrap();
        check(name, &screen);
        assert!(screen.contains("40 of 200") && screen.contains("fill=\"#1d5c8f\""), "{screen}");
        assert!(screen.contains("sandbox"), "the preview runs nothing");
    }
}

#[test]
fn the_other_sections_escape_their_texts() {
    let owner = || frame(Role::Owner, Section::StatusPage, "Northwind");
    let access = VisitorAccessForm {
        frame: owner(),
        head: SettingsHead {
            access: VisitorAccess::Private { people: 3, domains: 1 },
            ..head(SettingsSection::Access, HOSTILE)
        },
        form: form(&[("access", "private"), ("allowedPeople", HOSTILE), ("password", HOSTILE)]),
        has_password: true,
        feed: Some(HOSTILE.to_owned()),
        asks_to_confirm: true,
    };
    check("settings-access", &render(&access).unwrap());
    let record = |kind, found| DomainRecord { kind, name: HOSTILE.to_owned(), value: "plx".to_owned(), found };
    let address = AddressForm {
        frame: owner(),
        head: head(SettingsSection::Address, "Northwind"),
        form: form(&[("slug", "northwind"), ("customDomain", HOSTILE)]),
        around: (String::new(), ".parallax.example".to_owned()),
        domains: vec![DomainStatus {
            host: HOSTILE.to_owned(),
            state: ("slow", "Waiting for DNS"),
            records: vec![record("TXT", ("up", "Found")), record("CNAME", ("slow", "Not found"))],
            is_pending: true,
            checked_at: Some(words::time(NOW, NOW)),
            problem: Some(HOSTILE.to_owned()),
        }],
        problem: Some(HOSTILE.to_owned()),
    };
    check("settings-address", &render(&address).unwrap());
    let uptime = UptimeForm {
        frame: owner(),
        head: head(SettingsSection::Uptime, "Northwind"),
        form: form(&[("uptimeTarget", "99.9"), ("uptimeRegions", "europe"), ("latencyLocations", "europe")]),
    };
    check("settings-uptime", &render(&uptime).unwrap());
    let delete = DeleteForm {
        frame: owner(),
        head: head(SettingsSection::Delete, HOSTILE),
        form: form(&[("name", HOSTILE)]),
        monitors: 38,
    };
    check("settings-delete", &render(&delete).unwrap());
}

#[test]
fn targets_and_access_are_explained() {
    for (target, expected) in [
        (99.9, "99.9 % allows 43 min of downtime in 30 days."),
        (99.99, "99.99 % allows 4 min 19 s of downtime in 30 days."),
        (99.999, "99.999 % allows 25 s of downtime in 30 days."),
        (99.0, "99 % allows 7 h 12 min of downtime in 30 days."),
        (90.0, "90 % allows 3 days of downtime in 30 days."),
    ] {
        assert_eq!(target_meaning(target), expected);
    }
    for (access, expected) in [
        (VisitorAccess::Private { people: 0, domains: 0 }, "Nobody can see the page yet"),
        (VisitorAccess::Private { people: 1, domains: 0 }, "1 person can see the page; everyone else"),
        (VisitorAccess::Private { people: 3, domains: 2 }, "3 people and 2 email domains can see"),
    ] {
        assert!(access.sentence().starts_with(expected), "{}", access.sentence());
    }
}

fn agent(name: &str, region: Region, network: &str) -> AgentRow {
    AgentRow {
        href: "/app/mesh/agents/a".to_owned(),
        name: name.to_owned(),
        region,
        network: network.to_owned(),
        state: ("up", "Connected", "since 09:51 UTC".to_owned()),
        version: "1.4.0".to_owned(),
        clock: "+2 ms".to_owned(),
        is_clock_off: false,
        results: 1_234_567,
        dropped: 0,
        certificate: ("", "24 days".to_owned()),
        is_connected: true,
        is_revoked: false,
    }
}

#[test]
fn the_mesh_escapes_what_agents_are_called() {
    for (name, text) in [("mesh-hostile", HOSTILE), ("mesh", "AS64503")] {
        let mut agents = vec![
            agent("fra1", Region::Europe, "AS64496"),
            agent("lhr1", Region::Europe, "AS64497"),
            agent("sin1", Region::Asia, text),
        ];
        let away = ("down", "Not connected", String::new());
        agents.push(AgentRow { state: away, is_connected: false, ..agent("lag1", Region::Africa, text) });
        let by_region = [(Region::Europe, 2), (Region::Asia, 1)].into();
        let confirming = ConfirmingNetworks { total: 3, by_region, ..ConfirmingNetworks::default() };
        let mut notices = problem_notices(&[OperatorProblem::SingleNetwork(Some(Region::Asia))], &confirming);
        let trouble = AgentTrouble { is_quarantined: true, contradicted: Some(text), ..AgentTrouble::default() };
        notices.extend(agent_notices(&agents[2], trouble));
        let regions = region_lines(&agents, &confirming);
        let states: Vec<&str> = regions.iter().map(|region| region.state.1).collect();
        let (unchecked, cannot) = ("Not checked from", "Can’t confirm");
        assert_eq!(states, ["Can confirm", unchecked, unchecked, unchecked, cannot, unchecked]);
        let screen = MeshScreen {
            installation: vec![("Version", "", "1.4.0".to_owned())],
            frame: frame(Role::Owner, Section::Mesh, "Northwind"),
            notices,
            more: 0,
            regions,
            agents,
            revoked: Vec::new(),
            invitations: vec![InvitationLine {
                revoke: "/app/mesh/invitations/i/revoke".to_owned(),
                name: text.to_owned(),
                href: "/app/mesh/agents/b".to_owned(),
                about: text.to_owned(),
                expires_at: words::time(NOW, NOW),
            }],
            once: "once".to_owned(),
        };
        let screen = render(&screen).unwrap();
        check(name, &screen);
        assert!(screen.contains("3 of 4 agents connected, from 2 regions and 3 networks"), "{screen}");
    }
}

#[test]
fn a_mesh_that_repeats_checks_does_not_say_that_outages_cannot_be_confirmed() {
    let agents = [agent("fra1", Region::Europe, "AS64496"), agent("sin1", Region::Asia, "AS64496")];
    let described = |policy, total| {
        let by_region = [(Region::Europe, total), (Region::Asia, 1)].into();
        let confirming = ConfirmingNetworks { policy, total, by_region };
        let problems = [OperatorProblem::SingleNetwork(None)];
        let [notice] = <[_; 1]>::try_from(problem_notices(&problems, &confirming)).unwrap();
        let states = region_lines(&agents, &confirming).into_iter().map(|region| region.state.1);
        (notice.class, notice.what, states.filter(|state| *state != "Not checked from").collect::<Vec<_>>())
    };
    let (repeats, cannot) = ("Repeats failed checks", "Can’t confirm");
    for (policy, total, class, what, states) in [
        (ConfirmationPolicy::OtherNetwork, 1, "down", "Outages can’t be confirmed.", [cannot, cannot]),
        (ConfirmationPolicy::Repeat, 1, "slow", "Only one network has working agents.", [repeats, repeats]),
        (ConfirmationPolicy::Repeat, 2, "slow", "Only one network has working agents.", ["Can confirm", cannot]),
    ] {
        assert_eq!(described(policy, total), (class, what.to_owned(), states.to_vec()));
    }
}
