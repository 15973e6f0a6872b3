//! Tests of the judgement of addresses.

use super::*;

fn guard(policy: DialPolicy) -> DialGuard {
    DialGuard::new(DnsResolver::with_servers(&["127.0.0.1:9".parse().unwrap()]).unwrap(), policy)
}

fn ips(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn a_check_goes_to_the_public_addresses_only() {
    let found = ips(&["10.0.0.1", "8.8.8.8", "::1"]);
    let left = guard(DialPolicy::default()).judge(&found, 80, BlockedAddressMode::DropBlocked).unwrap();
    assert_eq!(left, ["8.8.8.8:80".parse().unwrap()]);
}

#[test]
fn a_delivery_is_refused_if_any_address_is_blocked() {
    let found = ips(&["8.8.8.8", "169.254.169.254"]);
    let refused = guard(DialPolicy::default()).judge(&found, 80, BlockedAddressMode::RefuseAny);
    assert_eq!(refused, Err(DialError::AddressNotAllowed(BlockedClass::LinkLocal)));
}

#[test]
fn nothing_left_is_a_refusal_that_names_the_class() {
    let refused = guard(DialPolicy::default()).judge(&ips(&["10.0.0.1"]), 80, BlockedAddressMode::DropBlocked);
    assert_eq!(refused, Err(DialError::AddressNotAllowed(BlockedClass::Private)));
}

#[test]
fn private_targets_pass_where_the_operator_allows_them_unless_denied() {
    let deny = vec!["10.0.0.0/8".parse().unwrap()];
    let policy = DialPolicy { allow_private: true, deny, ..DialPolicy::default() };
    assert_eq!(policy.blocked_class("127.0.0.1".parse().unwrap()), None);
    assert_eq!(policy.blocked_class("::ffff:10.1.1.1".parse().unwrap()), Some(BlockedClass::Denied));
    assert_eq!(policy.blocked_class("224.0.0.1".parse().unwrap()), Some(BlockedClass::Multicast));
    assert_eq!(policy.blocked_class("168.63.129.16".parse().unwrap()), Some(BlockedClass::Platform));
}

fn owning(policy: DialPolicy, own: &'static [&'static str]) -> DialGuard {
    guard(policy).with_own_addresses(OwnAddresses::from_reader(|| Ok(ips(own))))
}

#[test]
fn this_host_is_refused_in_every_form_and_allowed_by_its_own_setting_alone() {
    const OWN: &[&str] = &["127.0.0.1", "5.9.9.9", "10.0.0.5", "2600::5", "fd00::5"];
    let closed = Some(BlockedClass::OwnHost);
    let (own, private) = (Some(BlockedClass::Loopback), Some(BlockedClass::Private));
    // Results under: neither, `allow_private`, `allow_own_host`, both.
    for (ip, class) in [
        ("5.9.9.9", [closed, closed, None, None]),
        ("::ffff:5.9.9.9", [closed, closed, None, None]),
        ("64:ff9b::5.9.9.9", [closed, closed, None, None]),
        ("2600::5", [closed, closed, None, None]),
        ("10.0.0.5", [private, closed, private, None]),
        ("fd00::5", [private, closed, private, None]),
        ("127.0.0.1", [own, closed, own, None]),
        ("127.9.9.9", [own, closed, own, None]),
        ("::1", [own, closed, own, None]),
        ("5.9.9.8", [None; 4]),
        ("10.0.0.6", [private, None, private, None]),
    ] {
        let policies = [(false, false), (true, false), (false, true), (true, true)];
        for ((allow_private, allow_own_host), class) in policies.into_iter().zip(class) {
            let policy = DialPolicy { allow_private, allow_own_host, nat64: true, ..DialPolicy::default() };
            let refused = owning(policy, OWN).blocked_class(ip.parse().unwrap());
            assert_eq!(refused, Ok(class), "{ip}, {allow_private}, {allow_own_host}");
        }
    }
}

#[test]
fn learned_addresses_are_refused_as_well() {
    let guard = owning(DialPolicy::default(), &["10.0.0.5"]);
    assert_eq!(guard.blocked_class("5.9.9.9".parse().unwrap()), Ok(None));
    guard.own_addresses().add_nat("::ffff:5.9.9.9".parse().unwrap());
    guard.own_addresses().add_coordinator(ips(&["2600::7"]));
    for ip in ips(&["5.9.9.9", "2600::7"]) {
        assert_eq!(guard.blocked_class(ip), Ok(Some(BlockedClass::OwnHost)), "{ip}");
    }
}

#[test]
fn without_the_own_addresses_nothing_public_is_dialled() {
    let unreadable = || OwnAddresses::from_reader(|| Err(std::io::Error::from_raw_os_error(97)));
    let judge = |policy: DialPolicy, ip: &str| {
        guard(policy).with_own_addresses(unreadable()).judge(&ips(&[ip]), 80, BlockedAddressMode::DropBlocked)
    };
    assert_eq!(judge(DialPolicy::default(), "8.8.8.8"), Err(DialError::OwnAddressesUnreadable));
    let loopback = Err(DialError::AddressNotAllowed(BlockedClass::Loopback));
    assert_eq!(judge(DialPolicy::default(), "127.0.0.1"), loopback);
    assert!(judge(DialPolicy { allow_own_host: true, ..DialPolicy::default() }, "8.8.8.8").is_ok());
}

#[test]
fn nat64_is_judged_by_its_embedded_address_if_enabled() {
    let policy = DialPolicy { nat64: true, ..DialPolicy::default() };
    assert_eq!(policy.blocked_class("64:ff9b::8.8.8.8".parse().unwrap()), None);
    assert_eq!(policy.blocked_class("64:ff9b::127.0.0.1".parse().unwrap()), Some(BlockedClass::Loopback));
    assert_eq!(policy.blocked_class("64:ff9b:1::8.8.8.8".parse().unwrap()), Some(BlockedClass::Translated));
}

#[test]
fn the_families_alternate_and_ipv6_is_first() {
    let found =
        ResolvedAddresses { v6: vec![Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED], v4: vec![Ipv4Addr::LOCALHOST] };
    assert_eq!(interleaved(&found), ips(&["::1", "127.0.0.1", "::"]));
}

#[test]
fn prefixes_are_read_strictly() {
    assert!("10.0.0.0/8".parse::<AddressPrefix>().unwrap().contains("10.255.0.1".parse().unwrap()));
    assert!("0.0.0.0/0".parse::<AddressPrefix>().unwrap().contains("8.8.8.8".parse().unwrap()));
    assert!(!"::/0".parse::<AddressPrefix>().unwrap().contains("8.8.8.8".parse().unwrap()));
    assert!("2001:db8::/32".parse::<AddressPrefix>().unwrap().contains("2001:db8::1".parse().unwrap()));
    assert_eq!("10.0.0.0/33".parse::<AddressPrefix>(), Err(AddressPrefixError::Length));
    assert_eq!("ten/8".parse::<AddressPrefix>(), Err(AddressPrefixError::Address));
    assert_eq!("192.0.2.1".parse::<AddressPrefix>().unwrap().to_string(), "192.0.2.1/32");
}
