//! Ports outside the host's ephemeral range, so that a port that is closed for a while is free when it is reopened.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};

/// Above well-known ports, and below the ephemeral range (`net.ipv4.ip_local_port_range`, from 32768 on).
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;
/// Ports for each slot of the test runner.
const SPAN: u32 = 1_000;

/// Replaces a zero port at the end of each argument by a free port.
pub fn replace_zero_ports(arguments: &mut [String]) {
    for argument in arguments {
        if let Some(host) = argument.strip_suffix(":0") {
            *argument = format!("{host}:{}", free_port());
        }
    }
}

/// Returns several free ports.
pub fn free_ports<const N: usize>() -> [u16; N] {
    [(); N].map(|()| free_port())
}

/// Returns a port of loopback that is free for TCP and UDP, another one at each call.
pub fn free_port() -> u16 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let begin = first_candidate();
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

/// Returns the offset at which this process begins to look, so that processes that run at the same time look at
/// different ports: each of the test runner's slots has a span of its own; without the runner the process id decides.
fn first_candidate() -> u32 {
    let slot = std::env::var("NEXTEST_TEST_GLOBAL_SLOT").ok().and_then(|slot| slot.parse::<u32>().ok());
    slot.map_or_else(|| std::process::id().wrapping_mul(263), |slot| slot.wrapping_mul(SPAN)) % u32::from(COUNT)
}
