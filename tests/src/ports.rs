//! Ports that the host gives to nobody by itself: one that is let go for a while is free when it is taken again.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};

/// Above the ports of services, and below those that the host gives out (`net.ipv4.ip_local_port_range`, from 32768 on).
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// Puts such a port in place of each zero that an argument of a command ends with.
pub fn fill_in(arguments: &mut [String]) {
    for argument in arguments {
        if let Some(host) = argument.strip_suffix(":0") {
            *argument = format!("{host}:{}", port());
        }
    }
}

/// Several of them.
pub fn ports<const N: usize>() -> [u16; N] {
    [(); N].map(|()| port())
}

/// A port of loopback that nobody has, for TCP and UDP: another one at each call.
pub fn port() -> u16 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    // Another process of tests begins elsewhere.
    let begin = std::process::id().wrapping_mul(263) % u32::from(COUNT);
    for _ in 0..COUNT {
        let taken = u32::from(TAKEN.fetch_add(1, Ordering::Relaxed));
        let number = u16::try_from((begin + taken) % u32::from(COUNT)).expect("a remainder of a port");
        let address = (Ipv4Addr::LOCALHOST, FIRST + number);
        if TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok() {
            return address.1;
        }
    }
    panic!("no port is free from {FIRST} on");
}
