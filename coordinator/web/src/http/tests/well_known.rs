//! Tests of well-known URLs such as robots.txt: on the base host, on page hosts, and for pages with noindex.

use super::*;

const OWN: (&str, &str) = ("host", "shop.pages.example");
const BASE: &str = "https://status.example";
const PAGE: &str = "https://shop.pages.example";

impl TestClient {
    async fn get_own_host(&self, path: &str) -> TestResponse {
        self.send("GET", path, &[OWN], "").await
    }

    /// Fetches a URL of the service or of the page.
    async fn at(&self, address: &str) -> TestResponse {
        match address.strip_prefix(PAGE) {
            Some(path) => self.get_own_host(path).await,
            None => {
                let path = address.strip_prefix(BASE).unwrap_or_else(|| panic!("{address}"));
                self.send("GET", path, &[("host", "status.example")], "").await
            }
        }
    }
}

#[tokio::test]
async fn crawlers_get_robots_txt_and_a_sitemap() {
    let client = TestClient::new().await;
    let monitor = client.create_monitor(json!({ "url": "a.example" })).await["id"].as_str().unwrap().to_owned();
    let base = client.at(&format!("{BASE}/robots.txt")).await;
    assert_eq!(base.text, "User-agent: *\nDisallow: /api/\nDisallow: /ping/\nDisallow: /p/*/events\n");
    let robots = client.get_own_host("/robots.txt").await;
    assert_eq!(robots.text, format!("User-agent: *\nDisallow: /events\n\nSitemap: {PAGE}/sitemap.xml\n"));
    assert_eq!(robots.headers["content-type"], "text/plain; charset=utf-8");
    let below = client.at(&format!("{BASE}/p/shop/robots.txt")).await;
    assert!(below.text.contains("Disallow: /p/shop/events\n"), "{}", below.text);
    let incident = json!({ "title": "Slow & late" });
    client.call(&client.write_key, "POST", &client.shop_path("/incidents"), incident).await;
    let sitemap = client.get_own_host("/sitemap.xml").await;
    assert_eq!(sitemap.headers["content-type"], "application/xml");
    let urls: Vec<_> = sitemap.text.split("<loc>").skip(1).filter_map(|it| it.split('<').next()).collect();
    assert_eq!(urls[..3], [PAGE, &format!("{PAGE}/history"), &format!("{PAGE}/monitors/{monitor}")]);
    assert!(urls.len() == 4 && sitemap.text.matches("<lastmod>").count() == 1, "{}", sitemap.text);
    for address in urls {
        assert_eq!(client.at(address).await.status, 200, "{address}");
    }
    client.call(&client.write_key, "PATCH", &client.shop_path(""), json!({ "noindex": true })).await;
    assert_eq!(client.get_own_host("/robots.txt").await.text, "User-agent: *\nDisallow: /events\n");
    assert_eq!(client.get_own_host("/sitemap.xml").await.status, 404);
    let page = client.get_own_host("/").await;
    assert_eq!((page.status, &page.headers["x-robots-tag"]), (200, &"noindex".parse().unwrap()));
}

#[tokio::test]
async fn browsers_find_an_icon_at_its_usual_path() {
    let client = TestClient::new().await;
    for host in [BASE, PAGE, &format!("{BASE}/p/shop")] {
        let redirect = client.at(&format!("{host}/favicon.ico")).await;
        assert_eq!(redirect.status, 302, "{host}");
        let to = redirect.headers["location"].to_str().unwrap();
        let icon = client.at(&format!("{}{to}", if host == PAGE { PAGE } else { BASE })).await;
        assert_eq!((icon.status, &icon.headers["content-type"]), (200, &"image/svg+xml".parse().unwrap()));
    }
    let favicon =
        json!({ "favicon": "data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4=" });
    let set = client.call(&client.write_key, "PATCH", &client.shop_path(""), favicon).await;
    assert_eq!(set.status, 200, "{set:?}");
    let redirect = client.get_own_host("/favicon.ico").await;
    let to = redirect.headers["location"].to_str().unwrap();
    assert!(to.starts_with("/favicon/") && client.get_own_host(to).await.status == 200, "{to}");
}

#[tokio::test]
async fn the_api_catalog_links_every_description() {
    let client = TestClient::new().await;
    for (host, relations) in
        [(BASE, &["service-desc", "service-doc"][..]), (PAGE, &["service-desc", "service-doc", "status"])]
    {
        let catalog = client.at(&format!("{host}/.well-known/api-catalog")).await;
        assert_eq!(catalog.status, 200);
        let media = catalog.headers["content-type"].to_str().unwrap();
        assert!(media.starts_with("application/linkset+json; profile="), "{media}");
        assert_eq!(catalog.headers["link"], format!("<{host}/.well-known/api-catalog>; rel=\"api-catalog\""));
        assert_eq!(catalog.headers["access-control-allow-origin"], "*");
        let links = catalog.body["linkset"].as_array().unwrap();
        assert!(links.iter().all(|link| link["anchor"].as_str().unwrap().starts_with(host)), "{links:?}");
        for target in links.iter().flat_map(|link| relations.iter().map(move |it| &link[*it][0])) {
            let response = client.at(target["href"].as_str().unwrap()).await;
            let media = response.headers["content-type"].to_str().unwrap();
            assert!(response.status == 200 && media.starts_with(target["type"].as_str().unwrap()), "{target}");
        }
    }
    let page = client.get_own_host("/").await;
    let links_header = page.headers["link"].to_str().unwrap().split(", ");
    for link in links_header {
        let to = link.split(['<', '>']).nth(1).unwrap();
        let to = if to.starts_with('/') { format!("{PAGE}{to}") } else { to.to_owned() };
        assert_eq!(client.at(&to).await.status, 200, "{link}");
    }
}
