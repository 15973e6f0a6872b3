//! Stored excerpts of responses: short, so that the log can't be used to read internal services.

use parallax_core::delivery::EXCERPT_CHARACTERS;

use super::*;

#[tokio::test]
async fn a_short_excerpt_of_a_response_is_stored() {
    let body = format!("a\r\n\u{1b}[2J {}", "x".repeat(2000));
    let receiver = TestReceiver::start(move |_, _| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n", body.len());
        TestReply::Bytes([head.as_bytes(), body.as_bytes()].concat())
    })
    .await;
    let bench = DeliveryBench::new().await;
    bench.add_webhook(1, &receiver.url()).await;
    let id = bench.send(1, 1, 4, "went-down").await;
    let stored = bench.wait_for_state(id, is_delivered).await;
    let excerpt = stored.attempt_log[0].response.as_str();
    assert_eq!(excerpt.chars().count(), EXCERPT_CHARACTERS);
    assert!(excerpt.starts_with("a  \u{fffd}[2J xxx"), "{excerpt}");
    bench.stop().await;
}

#[tokio::test]
async fn a_challenge_is_checked_against_the_whole_response_of_any_media_type() {
    let (event, value) = ("subscription.challenge", "v".repeat(32));
    let long = format!("{{{}\"challenge\":\"{value}\"}}", " ".repeat(500));
    for (n, (body, expected)) in
        [(value.clone(), value.as_str()), (long, &value), ("secret".to_owned(), "")].into_iter().enumerate()
    {
        let receiver = TestReceiver::start(move |_, _| {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: ";
            TestReply::Bytes(format!("{head}{}\r\n\r\n{body}", body.len()).into_bytes())
        })
        .await;
        let bench = DeliveryBench::new().await;
        bench.add_webhook(1, &receiver.url()).await;
        let to = Recipient::Destination(DestinationId::from_u128(1));
        let body_sent = format!("{{\"event\":\"{event}\",\"challenge\":\"{value}\"}}").into_bytes();
        let challenge = Delivery { message: DeliveryMessage::Json(body_sent), ..bench.delivery(to, 4, event) };
        let id = challenge.id;
        bench.put(challenge).await;
        assert_eq!(bench.wait_for_state(id, is_delivered).await.attempt_log[0].response, expected, "{n}");
        bench.stop().await;
    }
}
