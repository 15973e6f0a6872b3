//! The coordinator's HTTP side: requests reach [`http`], which calls the service and answers with values, with
//! documents from [`page_cache`] that `views` rendered, over TLS by [`tls`].
//! It never reads the store or the engine itself. Begin with `http/routes.rs` and `http/dispatch.rs`.

pub mod http;
pub mod page_cache;
pub mod tls;
mod views;
