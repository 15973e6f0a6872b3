//! Networks of clients: an IPv4 /24 or an IPv6 /48, which one party may control. They are stored instead of addresses.

use std::net::IpAddr;

/// Returns the network of an address as text, such as `192.0.2.0/24`.
pub(crate) fn network_text(address: IpAddr) -> String {
    let (block, length) = network_of(address);
    format!("{block}/{length}")
}

/// Returns the network of an address, with the length of its prefix.
pub(crate) fn network_of(address: IpAddr) -> (IpAddr, u32) {
    match address.to_canonical() {
        IpAddr::V4(address) => (IpAddr::V4((u32::from(address) & !0xff).into()), 24),
        IpAddr::V6(address) => (IpAddr::V6((u128::from(address) & !(u128::MAX >> 48)).into()), 48),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_a_24_or_a_48() {
        for (address, expected) in [
            ("192.0.2.77", "192.0.2.0/24"),
            ("::ffff:192.0.2.77", "192.0.2.0/24"),
            ("2001:db8:1:2::3", "2001:db8:1::/48"),
        ] {
            assert_eq!(network_text(address.parse().unwrap()), expected);
        }
    }
}
