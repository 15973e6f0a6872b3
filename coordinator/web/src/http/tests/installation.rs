//! The operator's screens over HTTP: the mesh, agents and accounts, and that they don't exist for others.

use parallax_core::id::AgentId;
use parallax_core::operator_alert::OperatorProblem;
use parallax_core::plan::Plan;
use parallax_core::role::Role;
use parallax_core::vantage::Region;
use parallax_service::mesh::{MeshAgent, MeshState};
use parallax_service::test_world::START;

use super::signed_in_browser::location;
use super::{SignedInBrowser, TestClient};

fn agent(no: u128, name: &str, region: Region, network: &str) -> MeshAgent {
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
        is_fit: true,
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
            MeshAgent { connected_since: None, ..agent(4, "<b>lag1</b>", Region::Africa, "AS64502") },
            MeshAgent {
                is_quarantined: true,
                contradicted: Some("2 others".to_owned()),
                ..agent(5, "dal1", Region::NorthAmerica, "AS64503")
            },
        ],
        invitations: Vec::new(),
        problems: vec![OperatorProblem::SingleNetwork(Some(Region::Africa))],
    });
    client
}

/// An owner who operates the installation, too.
async fn operator(client: &TestClient) -> SignedInBrowser {
    let session = client.world.signed_in(Role::Owner).await;
    let people = &client.world.service.people;
    let members = people.members(client.world.owner.id).await.unwrap();
    let (person, _) = members.last().unwrap();
    people.set_operator(&person.email, true).await.unwrap();
    SignedInBrowser::of(client, &session)
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
    let one = client.open(&operator, "/app/mesh/agents/%3Cb%3Elag1%3C%2Fb%3E").await;
    assert!(one.status == 200 && one.text.contains("Not connected"), "{}", one.text);
    assert_eq!(client.open(&operator, "/app/mesh/agents/none").await.status, 404);
}

#[tokio::test]
async fn an_agent_is_revoked_by_its_name_and_then_forgotten() {
    let client = client().await;
    let operator = operator(&client).await;
    let path = "/app/mesh/agents/fra1";
    let refused = client.submit(&operator, path, &[("name", "fra2")]).await;
    assert!(refused.status == 400 && refused.text.contains("Must be the name of the agent."), "{}", refused.text);
    let revoked = client.submit(&operator, path, &[("name", "fra1")]).await;
    assert_eq!((revoked.status, location(&revoked)), (303, "/app/mesh?done=agent-revoked&count=1"), "{}", revoked.text);
    assert!(client.open(&operator, path).await.text.contains("Forget fra1?"));
    let forgotten = client.submit(&operator, path, &[("name", "fra1")]).await;
    assert_eq!(location(&forgotten), "/app/mesh?done=agent-forgotten&count=1");
    assert_eq!(client.open(&operator, path).await.status, 404);
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
    let waiting = client.open(&operator, "/app/mesh/agents/cpt1").await.text;
    assert!(waiting.contains("Waiting for cpt1") && !waiting.contains("secret"), "{waiting}");
    let revoke = waiting.split("action=\"").find(|it| it.starts_with("/app/mesh/invitations/")).unwrap();
    let revoke = revoke.split('"').next().unwrap().to_owned();
    assert_eq!(location(&client.submit(&operator, &revoke, &[]).await), "/app/mesh?done=invitation-revoked&count=1");
    assert_eq!(client.open(&operator, "/app/mesh/agents/cpt1").await.status, 404);
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
    for path in ["/app/mesh", "/app/mesh/agents/new", "/app/mesh/agents/fra1", "/app/accounts"] {
        assert_eq!(client.open(&owner, path).await.status, 404, "{path}");
    }
    for path in [
        "/app/mesh/agents/new".to_owned(),
        "/app/mesh/agents/fra1".to_owned(),
        format!("/app/mesh/invitations/{}/revoke", parallax_core::id::InvitationId::from_u128(1)),
        format!("/app/accounts/{account}/plan"),
        format!("/app/accounts/{account}/set-up-link"),
    ] {
        let fields = [("name", "fra1"), ("region", "africa"), ("network", "a"), ("plan", "pro")];
        assert_eq!(client.submit(&owner, &path, &fields).await.status, 404, "{path}");
    }
}
