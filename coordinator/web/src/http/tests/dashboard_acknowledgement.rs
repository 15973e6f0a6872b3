//! "I have it" on a monitor that is down, over HTTP: the button, who has it, and who may take it back.

use parallax_core::machine::MachineView;
use parallax_core::role::Role;

use super::dashboard_monitors::down_view;
use super::signed_in_browser::location;
use super::*;

#[tokio::test]
async fn an_owner_or_editor_takes_an_outage_with_one_tap_and_takes_it_back() {
    for role in [Role::Owner, Role::Editor] {
        let client = TestClient::new().await;
        let browser = client.sign_in(role).await;
        let id = client.monitor("Payments").await;
        let path = client.app_path(&format!("/{id}"));
        let screen = async || client.open(&browser, &path).await.text;
        assert!(!screen().await.contains("I have it"), "it is not down");
        client.set_view(&id, down_view());
        assert!(screen().await.contains(&format!("action=\"{path}/acknowledge\"")), "{}", screen().await);
        let done = client.submit(&browser, &format!("{path}/acknowledge"), &[("idempotency_key", "a")]).await;
        assert_eq!((done.status, location(&done)), (303, &*format!("{path}?done=acknowledged&count=1")));
        let shown = screen().await;
        for words in ["has it since", "Still-down alerts are off for this outage.", "Take back"] {
            assert!(shown.contains(words), "{words}: {shown}");
        }
        assert!(!shown.contains("I have it"), "{shown}");
        let overview = client.open(&browser, "/app").await.text;
        assert!(overview.contains("has it since"), "{overview}");
        // A double click is one act.
        let again = client.submit(&browser, &format!("{path}/acknowledge"), &[("idempotency_key", "a")]).await;
        assert_eq!((again.status, location(&again)), (303, location(&done)));
        let back = client.submit(&browser, &format!("{path}/take-back"), &[]).await;
        assert_eq!((back.status, location(&back)), (303, &*format!("{path}?done=taken-back&count=1")));
        assert!(screen().await.contains("I have it") && !screen().await.contains("has it since"));
        assert!(!client.open(&browser, "/app").await.text.contains("has it since"));
    }
}

#[tokio::test]
async fn the_first_who_takes_an_outage_keeps_it_and_one_that_is_over_is_no_error() {
    let client = TestClient::new().await;
    let (ann, bob) = (client.sign_in(Role::Owner).await, client.sign_in(Role::Editor).await);
    let id = client.monitor("Payments").await;
    let path = client.app_path(&format!("/{id}"));
    client.set_view(&id, down_view());
    client.submit(&ann, &format!("{path}/acknowledge"), &[]).await;
    let by = client.stored(&id).await["acknowledged"]["by"].clone();
    let second = client.submit(&bob, &format!("{path}/acknowledge"), &[]).await;
    assert_eq!((second.status, location(&second)), (303, &*format!("{path}?done=acknowledged-before&count=1")));
    assert_eq!(client.stored(&id).await["acknowledged"]["by"], by);
    client.set_view(&id, MachineView::default());
    for rest in ["acknowledge", "take-back"] {
        let late = client.submit(&bob, &format!("{path}/{rest}"), &[]).await;
        assert_eq!(late.status, 303, "{rest}: {}", late.text);
    }
    let late = client.submit(&bob, &format!("{path}/acknowledge"), &[]).await;
    assert!(client.open(&bob, location(&late)).await.text.contains("The outage is over"));
}

#[tokio::test]
async fn a_viewer_sees_who_has_an_outage_and_takes_none() {
    let client = TestClient::new().await;
    let (editor, viewer) = (client.sign_in(Role::Editor).await, client.sign_in(Role::Viewer).await);
    let id = client.monitor("Payments").await;
    let path = client.app_path(&format!("/{id}"));
    client.set_view(&id, down_view());
    assert!(!client.open(&viewer, &path).await.text.contains("I have it"));
    client.submit(&editor, &format!("{path}/acknowledge"), &[]).await;
    let shown = client.open(&viewer, &path).await.text;
    assert!(shown.contains("has it since") && !shown.contains("Take back"), "{shown}");
    let foreign = format!("/app/pages/{}/monitors/{id}", client.world.foreign.id);
    for rest in ["acknowledge", "take-back"] {
        assert_eq!(client.submit(&viewer, &format!("{path}/{rest}"), &[]).await.status, 403, "{rest}");
        assert_eq!(client.submit(&editor, &format!("{foreign}/{rest}"), &[]).await.status, 404, "{rest}");
        let signed_out = client.send_form(&format!("{path}/{rest}"), &[], "").await;
        assert_eq!(signed_out.status, 403, "{rest}");
    }
    assert_ne!(client.stored(&id).await["acknowledged"], Value::Null);
}
