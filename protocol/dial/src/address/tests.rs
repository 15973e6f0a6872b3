//! Tests of the table against all known vectors, and against random addresses inside each block.

use super::*;
use proptest::prelude::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn every_known_private_address_is_refused_with_its_class() {
    let table = [
        ("0.0.0.0", BlockedClass::Unspecified),
        ("0.1.2.3", BlockedClass::Unspecified),
        ("10.0.0.1", BlockedClass::Private),
        ("100.64.0.1", BlockedClass::Cgnat),
        ("100.100.100.200", BlockedClass::Cgnat),
        ("100.127.255.255", BlockedClass::Cgnat),
        ("127.0.0.1", BlockedClass::Loopback),
        ("127.255.255.255", BlockedClass::Loopback),
        ("168.63.129.16", BlockedClass::Platform),
        ("169.254.169.254", BlockedClass::LinkLocal),
        ("172.16.0.0", BlockedClass::Private),
        ("172.31.255.255", BlockedClass::Private),
        ("192.0.0.8", BlockedClass::Reserved),
        ("192.0.2.1", BlockedClass::Documentation),
        ("192.88.99.1", BlockedClass::Translated),
        ("192.168.1.1", BlockedClass::Private),
        ("198.18.0.1", BlockedClass::Benchmark),
        ("198.19.255.255", BlockedClass::Benchmark),
        ("198.51.100.7", BlockedClass::Documentation),
        ("203.0.113.7", BlockedClass::Documentation),
        ("224.0.0.1", BlockedClass::Multicast),
        ("239.255.255.255", BlockedClass::Multicast),
        ("240.0.0.1", BlockedClass::Reserved),
        ("255.255.255.255", BlockedClass::Reserved),
        ("::", BlockedClass::Unspecified),
        ("::1", BlockedClass::Loopback),
        ("::ffff:127.0.0.1", BlockedClass::Loopback),
        ("::ffff:7f00:1", BlockedClass::Loopback),
        ("::ffff:a9fe:a9fe", BlockedClass::LinkLocal),
        ("::ffff:10.1.2.3", BlockedClass::Private),
        ("::127.0.0.1", BlockedClass::Translated),
        ("::7f00:1", BlockedClass::Translated),
        ("::ffff:0:127.0.0.1", BlockedClass::Translated),
        ("::ffff:0:7f00:1", BlockedClass::Translated),
        ("64:ff9b::7f00:1", BlockedClass::Translated),
        ("64:ff9b::8.8.8.8", BlockedClass::Translated),
        ("64:ff9b:1::a9fe:a9fe", BlockedClass::Translated),
        ("64:ff9b:1::7f00:1", BlockedClass::Translated),
        ("64:ff9b:2::1", BlockedClass::Reserved),
        ("2002:7f00:1::", BlockedClass::Translated),
        ("2001:0:7f00:1::", BlockedClass::Translated),
        ("2001:2::1", BlockedClass::Reserved),
        ("2001:1ff:ffff::1", BlockedClass::Reserved),
        ("2001:db8::1", BlockedClass::Documentation),
        ("3fff::1", BlockedClass::Documentation),
        ("5f00::1", BlockedClass::Reserved),
        ("100::1", BlockedClass::Reserved),
        ("4000::1", BlockedClass::Reserved),
        ("fd00:ec2::254", BlockedClass::Private),
        ("fe80::1", BlockedClass::LinkLocal),
        ("fec0::1", BlockedClass::Private),
        ("ff02::1", BlockedClass::Multicast),
        ("2606:4700::5efe:127.0.0.1", BlockedClass::Translated),
        ("2606:4700::200:5efe:10.0.0.1", BlockedClass::Translated),
    ];
    for (text, class) in table {
        assert_eq!(blocked_class(ip(text)), Some(class), "{text}");
    }
}

#[test]
fn public_addresses_pass_up_to_the_edges_of_the_blocks() {
    for text in [
        "1.0.0.0",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "168.63.129.15",
        "168.63.129.17",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.0.3.0",
        "192.88.98.255",
        "192.88.100.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "::ffff:8.8.8.8",
        "2001:200::1",
        "2001:db7:ffff::1",
        "2001:db9::1",
        "2001:4860:4860::8888",
        "2003::1",
        "2606:4700:4700::1111",
        "3ffe::1",
        "3fff:1000::1",
    ] {
        assert_eq!(blocked_class(ip(text)), None, "{text}");
    }
}

#[test]
fn nat64_yields_the_embedded_address() {
    assert_eq!(nat64_embedded("64:ff9b::7f00:1".parse().unwrap()), Some(Ipv4Addr::LOCALHOST));
    assert_eq!(nat64_embedded("64:ff9b:1::7f00:1".parse().unwrap()), None);
}

fn inside(block: &Block, width: u8, noise: u128) -> u128 {
    let host_bits = u32::from(width - block.len);
    let mask = if host_bits == 128 { u128::MAX } else { (1u128 << host_bits) - 1 };
    block.base | (noise & mask)
}

proptest! {
    #[test]
    fn nothing_inside_a_blocked_ipv4_prefix_passes(line in 0..V4.len(), noise: u128) {
        let bits = inside(&V4[line], 32, noise);
        let v4 = Ipv4Addr::from_bits(bits as u32);
        prop_assert!(blocked_class(IpAddr::V4(v4)).is_some(), "{v4}");
        prop_assert!(blocked_class(IpAddr::V6(v4.to_ipv6_mapped())).is_some(), "mapped {v4}");
    }

    #[test]
    fn nothing_inside_a_blocked_ipv6_prefix_passes(line in 0..V6.len(), noise: u128) {
        let v6 = Ipv6Addr::from_bits(inside(&V6[line], 128, noise));
        // The whole of ::/96 is a block and ::ffff:0:0/96 is not part of it.
        prop_assert!(blocked_class(IpAddr::V6(v6)).is_some(), "{v6}");
    }

    #[test]
    fn no_form_that_carries_an_ipv4_address_passes(v4: u32, head in 0x2003u16..0x3fff) {
        let (high, low) = ((v4 >> 16) as u16, v4 as u16);
        for carrier in [
            Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low),
            Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, high, low),
            Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
            Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, high, low),
            Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
            Ipv6Addr::new(0x2001, 0, high, low, 0, 0, 0, 0),
            Ipv6Addr::new(head, 0, 0, 0, 0, 0x5efe, high, low),
            Ipv6Addr::new(head, 0, 0, 0, 0x200, 0x5efe, high, low),
        ] {
            prop_assert!(blocked_class(IpAddr::V6(carrier)).is_some(), "{carrier}");
        }
    }

    #[test]
    fn only_global_unicast_ipv6_ever_passes(bits: u128) {
        let v6 = Ipv6Addr::from_bits(bits);
        if blocked_class(IpAddr::V6(v6)).is_none() && v6.to_ipv4_mapped().is_none() {
            prop_assert_eq!(bits >> 125, 1);
        }
    }
}
