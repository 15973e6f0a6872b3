//! The operator's screens over HTTP: the mesh, agents and accounts, and that they don't exist for others.

use parallax_core::confirmation::ConfirmingNetworks;
use parallax_core::effective::ConfirmationPolicy;
use parallax_core::id::{AgentId, InvitationId};
use parallax_core::operator_alert::OperatorProblem;
use parallax_core::plan::Plan;
use parallax_core::role::Role;
use parallax_core::time::MINUTE;
use parallax_core::vantage::Region;
use parallax_service::mesh::{InstallationFigures, MeshAdministration, MeshAgent, MeshState};
use parallax_service::test_world::START;

use super::signed_in_browser::location;
use super::{SignedInBrowser, TestClient};

pub(super) fn agent(no: u128, name: &str, region: Region, network: &str) -> MeshAgent {
    MeshAgent {
        id: AgentId::from_u128(no),
        name: name.to_owned(),
        region,
        network: network.to_owned(),
        joined_at: START,
        revoked_at: None,
        connected_since: Some(START),
        address: Some("203.0.113.7:4000".to_owned()),
        software: Some("1.4.0".to_owned()),
        clock_skew_ms: Some(2),
        is_clock_off: false,
        is_quarantined: false,
        contradicted: None,
        is_shared: false,
        faults: Vec::new(),
        can_confirm: true,
        results: 12_345,
        dropped: 0,
        certificate_until: None,
    }
}

/// A client whose mesh has two networks in Europe and one in Africa, where one agent is not connected.
async fn client() -> TestClient {
    let client = TestClient::new().await;
    client.world.members.set(MeshState {
        agents: vec![
            agent(1, "fra1", Region::Europe, "AS64496"),
            agent(2, "lhr1", Region::Europe, "AS64497"),
            agent(3, "jnb1", Region::Africa, "AS64501"),
            MeshAgent {
                connected_since: None,
                can_confirm: false,
                ..agent(4, "<b>lag1</b>", Region::Africa, "AS64502")
            },
            MeshAgent {
                is_quarantined: true,
                can_confirm: false,
                contradicted: Some("2 others".to_owned()),
                ..agent(5, "dal1", Region::NorthAmerica, "AS64503")
            },
        ],
        invitations: Vec::new(),
        problems: vec![OperatorProblem::SingleNetwork(Some(Region::Africa))],
        confirming: ConfirmingNetworks {
            policy: ConfirmationPolicy::OtherNetwork,
            total: 3,
            by_region: [(Region::Europe, 2), (Region::Africa, 1)].into(),
        },
    });
    client
}

fn agent_path(no: u128) -> String {
    format!("/app/mesh/agents/{}", AgentId::from_u128(no))
}

/// An owner who operates the installation, too.
pub(super) async fn operator(client: &TestClient) -> SignedInBrowser {
    let person = client.world.signed_in(Role::Owner).await.session.person;
    let people = &client.world.service.people;
    let members = people.members(client.world.owner.id).await.unwrap();
    people.set_operator(&members.last().unwrap().0.email, true).await.unwrap();
    SignedInBrowser::of(client, &people.test_session(client.world.owner.id, person).await)
}

#[tokio::test]
async fn the_mesh_says_what_is_wrong_and_what_to_do() {
    let client = client().await;
    let operator = operator(&client).await;
    let shown = client.open(&operator, "/app/mesh").await;
    assert_eq!(shown.status, 200, "{}", shown.text);
    for text in [
        "Africa has only one network.",
        "Add an agent on another network there.",
        "dal1 is in quarantine.",
        "4 of 5 agents connected",
        "Can’t confirm",
        "Can confirm",
        "12,345",
        "&#60;b&#62;lag1",
    ] {
        assert!(shown.text.contains(text), "{text} in {}", shown.text);
    }
    assert!(!shown.text.contains("<b>lag1"), "{}", shown.text);
    let by_name = client.open(&operator, "/app/mesh/agents/%3Cb%3Elag1%3C%2Fb%3E").await;
    assert_eq!((by_name.status, location(&by_name)), (303, agent_path(4).as_str()));
    let one = client.open(&operator, location(&by_name)).await;
    assert!(one.status == 200 && one.text.contains("Not connected"), "{}", one.text);
    for unknown in ["/app/mesh/agents/none".to_owned(), agent_path(9)] {
        assert_eq!(client.open(&operator, &unknown).await.status, 404, "{unknown}");
    }
}

#[tokio::test]
async fn an_agent_with_a_host_fault_says_the_fault() {
    let client = client().await;
    let operator = operator(&client).await;
    let faulty = |no, can_confirm| {
        let faults = vec!["this host's resolver does not answer".to_owned()];
        MeshAgent { faults, can_confirm, ..agent(no, &format!("fra{no}"), Region::Europe, "AS64496") }
    };
    for (can_confirm, state) in [(true, "Host fault"), (false, "Confirms nothing")] {
        let agents = (1..=5).map(|no| faulty(no, can_confirm)).collect();
        client.world.members.set(MeshState { agents, ..MeshState::default() });
        let shown = client.open(&operator, &agent_path(2)).await.text;
        assert!(shown.contains(state) && shown.contains("The host of fra2 has a fault."), "{shown}");
        let mesh = client.open(&operator, "/app/mesh").await.text;
        assert!(mesh.contains("5 agents: this host&#39;s resolver does not answer."), "{mesh}");
        assert!(mesh.contains("Repair the hosts of fra1, fra2, fra3 and 2 more."), "{mesh}");
    }
    let agents = (1..=25).map(|no| MeshAgent { is_shared: true, ..faulty(no, true) }).collect();
    client.world.members.set(MeshState { agents, ..MeshState::default() });
    let mesh = client.open(&operator, "/app/mesh").await.text;
    assert!(mesh.contains("6 more: see the agents."), "{mesh}");
}

#[tokio::test]
async fn an_agent_is_revoked_by_its_name_and_then_forgotten() {
    let client = client().await;
    let operator = operator(&client).await;
    let path = agent_path(1);
    let submit = async |name: &str, act: &str| client.submit(&operator, &path, &[("name", name), ("act", act)]).await;
    let refused = submit("fra2", "revoke").await;
    assert!(refused.status == 400 && refused.text.contains("Must be the name of the agent."), "{}", refused.text);
    for early in [submit("fra1", "forget").await, submit("fra1", "").await] {
        assert_eq!((early.status, location(&early)), (303, path.as_str()), "still in service");
    }
    let again = agent(6, "fra1", Region::Europe, "AS64496");
    for click in 1..=2 {
        let revoked = submit("fra1", "revoke").await;
        let expected = (303, "/app/mesh?done=agent-revoked&count=1");
        assert_eq!((revoked.status, location(&revoked)), expected, "click {click}: {}", revoked.text);
        // A new agent of that name must not be revoked by the second click.
        let mut state = client.world.members.state().await.unwrap();
        state.agents.retain(|it| it.id != again.id);
        state.agents.push(again.clone());
        client.world.members.set(state);
    }
    assert!(client.open(&operator, &path).await.text.contains("Forget fra1?"), "a second click does not forget");
    assert!(client.open(&operator, &agent_path(6)).await.text.contains("Revoke fra1?"));
    for click in 1..=2 {
        let forgotten = submit("fra1", "forget").await;
        assert_eq!(location(&forgotten), "/app/mesh?done=agent-forgotten&count=1", "click {click}");
    }
    assert_eq!(client.open(&operator, &path).await.status, 404);
    assert!(client.open(&operator, &agent_path(6)).await.text.contains("Revoke fra1?"));
}

#[tokio::test]
async fn revocations_need_a_fresh_confirmation_of_the_password() {
    let client = client().await;
    let operator = operator(&client).await;
    let fields = [("name", "new"), ("region", "africa"), ("network", "AS64508")];
    client.submit(&operator, "/app/mesh/agents/new", &fields).await;
    client.world.clock.set(client.world.service.now() + 11 * MINUTE);
    let invitation = format!("/app/mesh/invitations/{}", InvitationId::from_u128(1));
    for (path, next) in [(agent_path(4), agent_path(4)), (format!("{invitation}/revoke"), invitation)] {
        let asked = client.submit(&operator, &path, &[("name", "<b>lag1</b>"), ("act", "revoke")]).await;
        assert_eq!(asked.status, 303, "{}", asked.text);
        let form = client.open(&operator, location(&asked)).await.text;
        assert!(form.contains(&format!("\"{next}\"")), "it leads back to {next}: {form}");
    }
    let state = client.world.members.state().await.unwrap();
    assert!(state.invitations.len() == 1 && state.agents.iter().all(|it| it.revoked_at.is_none()));
}

#[tokio::test]
async fn an_invitation_shows_its_command_once() {
    let client = client().await;
    let operator = operator(&client).await;
    let path = "/app/mesh/agents/new";
    assert!(client.open(&operator, path).await.text.contains("AS64496, AS64497"));
    let refused = client.submit(&operator, path, &[("name", ""), ("region", "mars"), ("network", "x")]).await;
    assert!(refused.status == 400 && refused.text.contains("region-fault"), "{}", refused.text);
    let fields = [("name", "cpt1"), ("region", "africa"), ("network", "AS64508")];
    let made = client.submit(&operator, path, &fields).await;
    let command = "parallax-agent join --coordinator status.example:7443 --token secret";
    assert!(made.status == 200 && made.text.contains(command), "{}", made.text);
    let by_name = client.open(&operator, "/app/mesh/agents/cpt1").await;
    let href = location(&by_name).to_owned();
    let waiting = client.open(&operator, &href).await.text;
    assert!(waiting.contains("Waiting for cpt1") && !waiting.contains("secret"), "{waiting}");
    let revoke = waiting.split("action=\"").find(|it| it.starts_with("/app/mesh/invitations/")).unwrap();
    let revoke = revoke.split('"').next().unwrap().to_owned();
    for click in 1..=2 {
        let revoked = client.submit(&operator, &revoke, &[]).await;
        let expected = (303, "/app/mesh?done=invitation-revoked&count=1");
        assert_eq!((revoked.status, location(&revoked)), expected, "click {click}");
    }
    assert_eq!(client.open(&operator, &href).await.status, 404);
}

#[tokio::test]
async fn an_agent_called_new_has_its_screens() {
    let client = client().await;
    let operator = operator(&client).await;
    let fields = [("name", "new"), ("region", "africa"), ("network", "AS64508")];
    client.submit(&operator, "/app/mesh/agents/new", &fields).await;
    let href = format!("/app/mesh/invitations/{}?name=new", InvitationId::from_u128(1));
    let mesh = client.open(&operator, "/app/mesh").await.text;
    assert!(mesh.contains(&format!("href=\"{href}\"")), "{mesh}");
    assert!(client.open(&operator, &href).await.text.contains("Waiting for new"));
    client
        .world
        .members
        .set(MeshState { agents: vec![agent(7, "new", Region::Africa, "AS64508")], ..MeshState::default() });
    let joined = client.open(&operator, &href).await;
    assert_eq!((joined.status, location(&joined)), (303, agent_path(7).as_str()));
    assert!(client.open(&operator, &agent_path(7)).await.text.contains("Revoke new?"));
}

#[tokio::test]
async fn an_operator_changes_plans_and_makes_set_up_links() {
    let client = client().await;
    let operator = operator(&client).await;
    let shown = client.open(&operator, "/app/accounts").await;
    assert!(shown.status == 200 && shown.text.contains("stranger@example.com"), "{}", shown.text);
    let id = client.world.foreign.account;
    let changed = client.submit(&operator, &format!("/app/accounts/{id}/plan"), &[("plan", "hobby")]).await;
    assert_eq!((changed.status, location(&changed)), (303, "/app/accounts?done=plan-changed&count=1"));
    let accounts = client.world.service.accounts.list().await.unwrap();
    assert_eq!(accounts.iter().find(|it| it.id == id).unwrap().plan, Plan::Hobby);
    let linked = client.submit(&operator, &format!("/app/accounts/{id}/set-up-link"), &[]).await;
    assert!(linked.text.contains("https://status.example/setup/"), "{}", linked.text);
    assert!(!client.open(&operator, "/app/accounts").await.text.contains("/setup/"), "shown once");
}

#[tokio::test]
async fn these_screens_do_not_exist_for_others() {
    let client = client().await;
    let owner = client.sign_in(Role::Owner).await;
    let account = client.world.owner.id;
    for path in ["/app/mesh", "/app/mesh/agents/new", "/app/mesh/agents/fra1", &agent_path(1), "/app/accounts"] {
        assert_eq!(client.open(&owner, path).await.status, 404, "{path}");
    }
    for path in [
        "/app/mesh/agents/new".to_owned(),
        "/app/mesh/agents/fra1".to_owned(),
        agent_path(1),
        format!("/app/mesh/invitations/{}/revoke", InvitationId::from_u128(1)),
        format!("/app/accounts/{account}/plan"),
        format!("/app/accounts/{account}/set-up-link"),
    ] {
        let fields = [("name", "fra1"), ("act", "revoke"), ("region", "africa"), ("network", "a"), ("plan", "pro")];
        assert_eq!(client.submit(&owner, &path, &fields).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn the_mesh_shows_the_figures_of_the_installation_that_are_known() {
    let client = client().await;
    let operator = operator(&client).await;
    assert!(!client.open(&operator, "/app/mesh").await.text.contains("id=\"installation\""), "nothing is known");
    client.world.members.set_installation(InstallationFigures {
        version: Some("1.4.0".to_owned()),
        disk: Some((1_000_000_000, 40_000_000_000)),
        snapshot_at: Some(client.world.service.now() - 40 * MINUTE),
        ..InstallationFigures::default()
    });
    let shown = client.open(&operator, "/app/mesh").await.text;
    for words in ["40 min ago, read back and verified", "1.0 GB of 40.0 GB free (2 %)", "1.4.0"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    for unknown in ["Results a minute", "Certificate authority"] {
        assert!(!shown.contains(unknown), "{unknown}: {shown}");
    }
    for role in [Role::Owner, Role::Editor, Role::Viewer] {
        let browser = client.sign_in(role).await;
        assert_eq!(client.open(&browser, "/app/mesh").await.status, 404, "{role:?}");
    }
}
