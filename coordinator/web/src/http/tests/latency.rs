//! Tests of a monitor's response times by region over HTTP.

use parallax_core::time::DAY;

use super::*;

#[tokio::test]
async fn response_times_have_a_line_for_each_region_with_the_requested_points() {
    let client = TestClient::new().await;
    let monitor = client.create_monitor(json!({ "url": "a.example" })).await;
    let path = client.shop_path(&format!("/monitors/{}/latency", monitor["id"].as_str().unwrap()));
    for (query, range, days, points) in [
        ("", "24h", 1, 96),
        ("?range=24h&points=720", "24h", 1, 720),
        ("?range=7d&points=720", "7d", 7, 168),
        ("?range=30d&points=12", "30d", 30, 12),
        ("?range=90d&points=720", "90d", 90, 720),
    ] {
        let answer = client.get(&format!("{path}{query}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let latency = &answer.body["latency"];
        let now = client.world.service.now();
        assert_eq!((&latency["range"], &latency["to"]), (&json!(range), &json!(now.to_string())), "{query}");
        assert_eq!(latency["from"], json!((now - days * DAY).to_string()), "{query}");
        assert_eq!(latency["bucketMs"], days * DAY / points, "{query}");
        let [europe, asia] = latency["regions"].as_array().unwrap().as_slice() else { panic!("{latency}") };
        let named = |line: &Value| (line["region"].clone(), line["counted"].clone(), line["thresholdMs"].clone());
        assert_eq!(named(europe), (json!("europe"), json!(true), json!(400)));
        assert_eq!(named(asia), (json!("asia"), json!(false), Value::Null));
        for (name, second) in [("medianMs", 100), ("minMs", 90), ("maxMs", 110)] {
            let line = europe[name].as_array().unwrap();
            assert_eq!(i64::try_from(line.len()).unwrap(), points, "{name} {query}");
            assert_eq!((&line[0], &line[1]), (&Value::Null, &json!(second)), "{name}");
        }
    }
}

#[tokio::test]
async fn a_range_or_number_of_points_out_of_bounds_is_refused() {
    let client = TestClient::new().await;
    let monitor = client.create_monitor(json!({ "url": "a.example" })).await;
    let path = client.shop_path(&format!("/monitors/{}/latency", monitor["id"].as_str().unwrap()));
    for (query, field) in
        [("range=1y", "range"), ("points=0", "points"), ("points=721", "points"), ("points=x", "points")]
    {
        let answer = client.get(&format!("{path}?{query}")).await;
        assert_eq!((answer.status, &answer.body["error"]["fields"][0]["field"]), (400, &json!(field)), "{answer:?}");
    }
}
