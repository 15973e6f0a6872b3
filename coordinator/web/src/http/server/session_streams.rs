//! Limit on the event streams that one signed-in browser holds at the same time.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use parallax_core::login_session::LoginSessionId;
use parallax_core::rate_limit::RateLimitStatus;

/// Streams of one session: a browser without shared workers opens one for each tab.
const MAX_STREAMS: u32 = 8;
/// Answer to one more.
const TOO_MANY: RateLimitStatus =
    RateLimitStatus { allowed: false, limit: MAX_STREAMS, remaining: 0, reset_seconds: 10 };

/// Number of open streams by session.
#[derive(Debug, Default)]
pub(in crate::http) struct SessionStreams(Mutex<HashMap<LoginSessionId, u32>>);

impl SessionStreams {
    /// Takes one of a session's streams.
    ///
    /// # Errors
    /// The limit, if the session has too many.
    pub(in crate::http) fn open(self: &Arc<Self>, session: LoginSessionId) -> Result<OpenStream, RateLimitStatus> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(session).or_default();
        if *count >= MAX_STREAMS {
            return Err(TOO_MANY);
        }
        *count += 1;
        Ok(OpenStream { session, streams: Arc::clone(self) })
    }
}

/// An open stream, which counts until it is dropped.
#[derive(Debug)]
pub(in crate::http) struct OpenStream {
    session: LoginSessionId,
    streams: Arc<SessionStreams>,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut open = self.streams.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut count) = open.entry(self.session) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_eight_streams_at_a_time() {
        let streams = Arc::new(SessionStreams::default());
        let (own, other) = (LoginSessionId([1; 32]), LoginSessionId([2; 32]));
        let mut open: Vec<_> = (0..MAX_STREAMS).map(|_| streams.open(own).unwrap()).collect();
        assert!(streams.open(own).is_err() && streams.open(other).is_ok());
        open.pop();
        assert!(streams.open(own).is_ok(), "one was closed");
        open.clear();
        assert!(streams.0.lock().unwrap().is_empty(), "nothing is kept of closed streams");
    }
}
