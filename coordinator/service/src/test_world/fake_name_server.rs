//! A fake name server whose source of TXT records is set by the test.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parallax_core::page::domain_verification::LookupFailure;

use crate::hosts::domains::{NoTxtLookup, TxtLookup};

/// Passes look-ups on to the source that was set last; without one each look-up fails.
#[derive(Debug, Clone, Default)]
pub struct FakeNameServer(Arc<Mutex<Option<Arc<dyn TxtLookup>>>>);

impl FakeNameServer {
    pub fn set(&self, source: Arc<dyn TxtLookup>) {
        *self.0.lock().unwrap() = Some(source);
    }
}

impl TxtLookup for FakeNameServer {
    fn texts<'a>(&'a self, name: &'a str) -> BoxFuture<'a, std::result::Result<Vec<String>, LookupFailure>> {
        let source = self.0.lock().unwrap().clone();
        async move { source.unwrap_or_else(|| Arc::new(NoTxtLookup)).texts(name).await }.boxed()
    }
}
