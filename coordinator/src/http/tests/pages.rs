//! Public pages: by which addresses they are found, and that a hidden one is like none.

use parallax_core::page::Page;

use super::*;

/// The paths of a page's routes, each with a method and parts that would be found on a page that anybody may see.
fn walked(slug: &str) -> Vec<(Method, String)> {
    let filled = |path: &str| {
        path.replace("{slug}", slug)
            .replace("{month}", "2026-11")
            .replace("{incident}", "inc_0000000000000000000000000a")
            .replace("{monitor}", "mon_0000000000000000000000000a")
    };
    let rows = public::rows().into_iter().filter(|(path, _)| path.starts_with("/p/{slug}"));
    rows.flat_map(|(path, methods)| {
        let path = filled(path);
        assert!(!path.contains('{'), "{path}");
        methods.into_iter().map(move |(method, _)| (method, path.clone()))
    })
    .collect()
}

#[tokio::test]
async fn a_hidden_page_is_like_none_through_every_route() {
    let client = Client::new().await;
    let shop = client.world.shop.clone();
    for hidden in [
        Page { private: true, ..shop.clone() },
        Page { password: Some("$argon2id$".to_owned()), ..shop.clone() },
    ] {
        client.world.put_page(hidden).await;
        let none = walked("none");
        assert!(none.len() >= 3);
        for ((method, path), (_, of_none)) in walked("shop").into_iter().zip(none) {
            for method in [method.as_str(), "HEAD", "DELETE"] {
                for headers in [&[][..], &[("if-none-match", "*")]] {
                    let seen = client.send(method, &path, headers, "").await;
                    let absent = client.send(method, &of_none, headers, "").await;
                    assert_eq!(
                        (seen.status, &seen.headers, &seen.body),
                        (absent.status, &absent.headers, &absent.body),
                        "{path}"
                    );
                    assert!(matches!(seen.status, 404 | 405), "{path}: {seen:?}");
                    assert_eq!(seen.headers["cache-control"], "no-store", "{path}");
                }
            }
        }
        let by_host = client.send("GET", "/status.json", &[("host", "shop.pages.example")], "").await;
        assert_eq!((by_host.status, by_host.headers["x-robots-tag"].to_str().unwrap()), (404, "noindex"));
    }
}

#[tokio::test]
async fn a_page_is_found_by_its_label_and_by_its_domain() {
    let client = Client::new().await;
    let name = async |host: &str, path: &str| {
        let seen = client.send("GET", path, &[("host", host)], "").await;
        (seen.status, seen.body["page"]["name"].clone())
    };
    for host in ["shop.pages.example", "SHOP.Pages.Example.:443"] {
        assert_eq!(name(host, "/status.json").await, (200, json!("Shop")), "{host}");
    }
    // The service's own address, and those that are nobody's, have no page at their root.
    for host in ["status.example", "shop.elsewhere.example", "pages.example", "127.0.0.1:8080"] {
        assert_eq!(name(host, "/status.json").await.0, 404, "{host}");
        assert_eq!(name(host, "/p/shop/status.json").await, (200, json!("Shop")), "{host}");
    }
    for host in ["none.pages.example", "a.shop.pages.example", ".pages.example"] {
        for path in ["/status.json", "/p/shop/status.json", "/api/v1/me", "/"] {
            assert_eq!(name(host, path).await.0, 404, "{host}{path}");
        }
    }
    let domain = Some("status.shop.example".to_owned());
    client.world.put_page(Page { custom_domain: domain, ..client.world.shop.clone() }).await;
    client.world.service.forget_domains();
    assert_eq!(name("Status.shop.example:8443", "/status.json").await, (200, json!("Shop")));
    assert_eq!(name("status.shop.example", "/p/journal/status.json").await.0, 404, "another's page");
    client.world.put_page(client.world.shop.clone()).await;
    assert_eq!(name("status.shop.example", "/status.json").await.0, 404, "it is not its domain any more");
}
