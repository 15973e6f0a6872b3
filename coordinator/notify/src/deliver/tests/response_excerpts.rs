//! Stored excerpts of responses: short, so that the log can't be used to read internal services.

use parallax_core::delivery::EXCERPT_CHARACTERS;

use super::*;

#[tokio::test]
async fn a_short_excerpt_of_an_answer_is_kept() {
    let body = format!("a\r\n\u{1b}[2J {}", "x".repeat(2000));
    let receiver = TestReceiver::start(move |_, _| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n", body.len());
        TestReply::Bytes([head.as_bytes(), body.as_bytes()].concat())
    })
    .await;
    let world = DeliveryWorld::new().await;
    world.hook(1, &receiver.url()).await;
    let id = world.send(1, 1, 4, "went-down").await;
    let noted = world.wait_for_stage(id, delivered).await;
    let answer = noted.attempt_log[0].response.as_str();
    assert_eq!(answer.chars().count(), EXCERPT_CHARACTERS);
    assert!(answer.starts_with("a  [2J xxx"), "{answer}");
    world.stop().await;
}

#[tokio::test]
async fn a_challenge_is_judged_by_the_whole_answer_of_whatever_media_type() {
    let (event, value) = ("subscription.challenge", "v".repeat(32));
    let long = format!("{{{}\"challenge\":\"{value}\"}}", " ".repeat(500));
    for (n, (body, kept)) in
        [(value.clone(), value.as_str()), (long, &value), ("secret".to_owned(), "")].into_iter().enumerate()
    {
        let receiver = TestReceiver::start(move |_, _| {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: ";
            TestReply::Bytes(format!("{head}{}\r\n\r\n{body}", body.len()).into_bytes())
        })
        .await;
        let world = DeliveryWorld::new().await;
        world.hook(1, &receiver.url()).await;
        let to = Recipient::Destination(DestinationId::from_u128(1));
        let sent = format!("{{\"event\":\"{event}\",\"challenge\":\"{value}\"}}").into_bytes();
        let question = Delivery { message: DeliveryMessage::Json(sent), ..world.delivery(to, 4, event) };
        let id = question.id;
        world.put(question).await;
        assert_eq!(world.wait_for_stage(id, delivered).await.attempt_log[0].response, kept, "{n}");
        world.stop().await;
    }
}
