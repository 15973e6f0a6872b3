//! Name servers of checks. The host's own know internal zones, and a `dns` monitor shows their answers to the
//! customer: so `dns` monitors use public ones, unless the operator decides otherwise.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::str::FromStr;

use parallax_dial::{DnsResolver, ResolverSetupError};

/// The setting `resolvers`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum NameServers {
    /// Unset: checks use the host's name servers; `dns` monitors use public ones unless private targets are allowed.
    #[default]
    Unset,
    /// [`PUBLIC_V4`] or [`PUBLIC_V6`], for all checks.
    Public,
    /// Servers of the host (`/etc/resolv.conf`), for all checks.
    System,
    /// These, for all checks.
    Servers(Vec<SocketAddr>),
}

/// Public resolvers without filters: Cloudflare, Google, Quad9 without its block list.
pub const PUBLIC_V4: [Ipv4Addr; 3] = [Ipv4Addr::new(1, 1, 1, 1), Ipv4Addr::new(8, 8, 8, 8), Ipv4Addr::new(9, 9, 9, 10)];
/// The same over IPv6.
pub const PUBLIC_V6: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0x2606, 0x4700, 0x4700, 0, 0, 0, 0, 0x1111),
    Ipv6Addr::new(0x2001, 0x4860, 0x4860, 0, 0, 0, 0, 0x8888),
    Ipv6Addr::new(0x2620, 0xfe, 0, 0, 0, 0, 0, 0x10),
];

/// The port of name servers.
const PORT: u16 = 53;

/// Creates a resolver for the public servers, over IPv4 if this host has a route for it: with both, a host
/// without IPv6 would retry it constantly.
///
/// # Errors
/// [`ResolverSetupError`], never expected here.
pub(crate) fn public_resolver() -> Result<DnsResolver, ResolverSetupError> {
    let v4 = PUBLIC_V4.map(|ip| SocketAddr::from((ip, PORT)));
    // Connecting a UDP socket looks the route up but sends nothing.
    let has_route = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| socket.connect(v4[0])).is_ok();
    let v6 = PUBLIC_V6.iter().filter(|_| !has_route).map(|ip| SocketAddr::from((*ip, PORT)));
    DnsResolver::with_servers(&v4.into_iter().chain(v6).collect::<Vec<_>>())
}

impl FromStr for NameServers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "public" => return Ok(Self::Public),
            "system" => return Ok(Self::System),
            _ => {}
        }
        let servers = super::list(text, |entry| {
            let bare = |entry: &str| entry.parse().map(|ip: IpAddr| SocketAddr::new(ip, PORT));
            entry
                .parse()
                .or_else(|_| bare(entry))
                .map_err(|_| format!("{entry} is not an address of a name server, \"public\", or \"system\""))
        })?;
        // An empty list meant the system's servers before the value `system` existed.
        Ok(if servers.is_empty() { Self::Unset } else { Self::Servers(servers) })
    }
}
