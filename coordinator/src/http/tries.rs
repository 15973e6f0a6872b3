//! Tries of pages' passwords: how many may be wrong within a minute, of one place, of its network, and of one page.
//!
//! A try counts before it is judged, so that many at once are no way around the limits, and is taken back once it was
//! right.

use std::net::IpAddr;

use parallax_core::time::Timestamp;

use super::auth::{network_of, place_of};
use super::limit::Limiter;
use super::visitor::Visitor;

/// Wrong tries of one place in a minute.
const OF_PLACE: u32 = 10;
/// Of one network: as many as its places could have among them costs whoever holds it nothing.
const OF_NETWORK: u32 = 40;
/// Of one page, from those who were wrong already, or whose network was: a stranger elsewhere can't lock others out of
/// it, but by the last of these.
const OF_PAGE: u32 = 60;
/// Of one page, from all that proxies on this host told of: one that passes on what its visitors say of themselves would
/// make each of their tries a stranger's.
const OF_TOLD: u32 = 240;

/// Who has tried how often.
#[derive(Debug)]
pub(super) struct Tries {
    places: Limiter<u128>,
    networks: Limiter<u128>,
    pages: Limiter<u128>,
    told: Limiter<u128>,
}

/// One try, which was counted.
#[derive(Debug)]
#[must_use]
pub(super) struct Try {
    address: Option<IpAddr>,
    /// Whether a proxy told it.
    is_told: bool,
    page: u128,
    at: Timestamp,
}

impl Tries {
    pub(super) const fn new() -> Self {
        Self {
            places: Limiter::new(OF_PLACE),
            networks: Limiter::new(OF_NETWORK),
            pages: Limiter::new(OF_PAGE),
            told: Limiter::new(OF_TOLD),
        }
    }

    /// Counts a try at a page's password by a visitor. Where a proxy on this host does not say whose it is, it counts for
    /// the page alone.
    ///
    /// # Errors
    /// Seconds until another may be made.
    pub(super) fn begin(&self, visitor: Option<Visitor>, page: u128, now: Timestamp) -> Result<Try, u32> {
        let address = visitor.map(|visitor| visitor.address);
        let is_told = visitor.is_some_and(|visitor| visitor.is_told);
        let of_page = self.pages.look(page, now);
        let is_fresh = match address {
            None => false,
            Some(address) => {
                let own = self.places.look(place_of(address), now);
                let of_network = self.networks.look(network_of(address), now);
                if let Some(found) = [own, of_network].into_iter().find(|found| !found.allowed) {
                    return Err(found.reset_seconds);
                }
                own.remaining == own.limit && of_network.remaining == of_network.limit
            }
        };
        if !of_page.allowed && !is_fresh {
            return Err(of_page.reset_seconds);
        }
        if is_told {
            self.told.admit_all(page, 1, now).map_err(|found| found.reset_seconds)?;
        }
        if let Some(address) = address {
            for found in [
                self.places.admit_all(place_of(address), 1, now),
                self.networks.admit_all(network_of(address), 1, now),
            ] {
                found.map_err(|found| found.reset_seconds)?;
            }
        }
        // One too many of the page by whoever is fresh is one too many, and is let go on.
        let _ = self.pages.admit_all(page, 1, now);
        Ok(Try { address, is_told, page, at: now })
    }

    /// Takes a try back: it was right, or was never judged.
    pub(super) fn forgive(&self, tried: Try) {
        if let Some(address) = tried.address {
            self.places.give_back(place_of(address), tried.at);
            self.networks.give_back(network_of(address), tried.at);
        }
        if tried.is_told {
            self.told.give_back(tried.page, tried.at);
        }
        self.pages.give_back(tried.page, tried.at);
    }
}

#[cfg(test)]
mod tests {
    use parallax_core::time::MINUTE;

    use super::*;

    fn peer(text: &str) -> Option<Visitor> {
        Some(Visitor { address: text.parse().unwrap(), is_told: false })
    }

    const NOW: Timestamp = Timestamp::from_millis(5000);

    #[test]
    fn a_place_has_ten_and_a_right_one_does_not_count() {
        let tries = Tries::new();
        for _ in 0..30 {
            let tried = tries.begin(peer("192.0.2.1"), 1, NOW).unwrap();
            tries.forgive(tried);
        }
        for _ in 0..OF_PLACE - 1 {
            tries.begin(peer("192.0.2.1"), 1, NOW).map(drop).unwrap();
        }
        tries.begin(peer("192.0.2.1"), 1, NOW).map(drop).unwrap();
        assert_eq!(tries.begin(peer("192.0.2.1"), 1, NOW + 1).map(drop), Err(60));
        assert_eq!(tries.begin(peer("192.0.2.1"), 2, NOW + 30_000).map(drop), Err(30));
        tries.begin(peer("192.0.2.1"), 1, NOW + MINUTE).map(drop).unwrap();
    }

    #[test]
    fn a_network_has_forty_whatever_page_they_are_for() {
        for (place, other) in [("2001:db8:0:{}::1", "2001:db8:1::1"), ("192.0.2.{}", "192.0.3.1")] {
            let tries = Tries::new();
            for n in 0..OF_NETWORK {
                tries
                    .begin(peer(&place.replace("{}", &n.to_string())), u128::from(n), NOW)
                    .map(drop)
                    .unwrap();
            }
            let more = peer(&place.replace("{}", "99"));
            assert_eq!(tries.begin(more, 99, NOW).map(drop), Err(60), "{place}");
            tries.begin(peer(other), 99, NOW).map(drop).unwrap();
        }
    }

    #[test]
    fn a_page_has_sixty_of_those_who_were_wrong_and_locks_out_nobody_else() {
        let tries = Tries::new();
        let stranger = |n: u32| peer(&format!("198.51.{n}.1"));
        for n in 0..OF_PAGE {
            tries.begin(stranger(n), 1, NOW).map(drop).unwrap();
        }
        assert_eq!(tries.begin(stranger(0), 1, NOW).map(drop), Err(60));
        tries.begin(stranger(0), 2, NOW).map(drop).unwrap();
        tries.begin(stranger(100), 1, NOW).map(drop).unwrap();
        assert_eq!(tries.begin(stranger(100), 1, NOW).map(drop), Err(60), "who was wrong is fresh no more");
        assert_eq!(
            tries.begin(None, 1, NOW).map(drop),
            Err(60),
            "a proxy that says nothing brings everybody's"
        );
        tries.begin(None, 2, NOW).map(drop).unwrap();
    }

    #[test]
    fn one_behind_a_proxy_holds_up_nobody_and_many_made_up_ones_are_bounded() {
        let told =
            |n: u32| Some(Visitor { address: IpAddr::from([10, (n >> 8) as u8, n as u8, 1]), is_told: true });
        let tries = Tries::new();
        for _ in 0..OF_PLACE {
            tries.begin(told(0), 1, NOW).map(drop).unwrap();
        }
        assert_eq!(tries.begin(told(0), 1, NOW).map(drop), Err(60));
        for n in 1..=OF_TOLD - OF_PLACE {
            tries.begin(told(n), 1, NOW).map(drop).unwrap();
        }
        assert_eq!(tries.begin(told(999), 1, NOW).map(drop), Err(60));
        tries.begin(told(999), 2, NOW).map(drop).unwrap();
        tries.begin(peer("198.51.100.1"), 1, NOW).map(drop).unwrap();
        let right = tries.begin(told(998), 3, NOW).unwrap();
        tries.forgive(right);
        assert_eq!(tries.told.look(3, NOW).remaining, OF_TOLD);
    }
}
