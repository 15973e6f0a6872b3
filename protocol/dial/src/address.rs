//! Classification of public and blocked addresses: one numeric table, used by everything that dials.
//!
//! Sources: the IANA special-purpose address registries (RFC 6890), RFC 4291, 6052, 8215, 5214, 3056, 4380,
//! 9637 and 9602. The table is deliberately stricter than "globally reachable": a form that embeds another
//! address (NAT64, 6to4, ISATAP ...) is refused whatever it embeds.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// Reason why an address is not public.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlockedClass {
    /// "This host" and its network: `0/8`, `::`.
    Unspecified,
    /// `127/8`, `::1`.
    Loopback,
    /// `10/8`, `172.16/12`, `192.168/16`, `fc00::/7`, `fec0::/10`.
    Private,
    /// `169.254/16`, `fe80::/10`: also the metadata services of clouds.
    LinkLocal,
    /// Shared between a carrier and its customers: `100.64/10`.
    Cgnat,
    /// `224/4`, `ff00::/8`.
    Multicast,
    /// Reserved for examples: `192.0.2/24`, `198.51.100/24`, `203.0.113/24`, `2001:db8::/32`, `3fff::/20`.
    Documentation,
    /// For network benchmarks: `198.18/15`.
    Benchmark,
    /// Embeds another address: NAT64, 6to4, Teredo, ISATAP, compatible and translatable forms.
    Translated,
    /// Looks public but reaches the cloud platform below the host: `168.63.129.16`.
    Platform,
    /// Reserved for protocols or for future use.
    Reserved,
    /// Denied by the operator of this host.
    Denied,
    /// An address of this host itself, or of its coordinator.
    OwnHost,
    /// A name rather than an address: one that only private networks use.
    PrivateName,
}

impl BlockedClass {
    /// Name of the class, for error texts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unspecified => "unspecified",
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::LinkLocal => "link-local",
            Self::Cgnat => "carrier-shared",
            Self::Multicast => "multicast",
            Self::Documentation => "documentation",
            Self::Benchmark => "benchmark",
            Self::Translated => "translated",
            Self::Platform => "platform",
            Self::Reserved => "reserved",
            Self::Denied => "denied here",
            Self::OwnHost => "own host",
            Self::PrivateName => "name of private networks",
        }
    }

    /// Returns true if an operator who allows private targets means this class too. The others are never
    /// hosts of one's own network.
    #[must_use]
    pub fn is_own_network(self) -> bool {
        match self {
            Self::Loopback | Self::Private | Self::LinkLocal | Self::Cgnat | Self::Benchmark => true,
            Self::Unspecified
            | Self::Multicast
            | Self::Documentation
            | Self::Translated
            | Self::Platform
            | Self::Reserved
            | Self::Denied
            | Self::OwnHost
            | Self::PrivateName => false,
        }
    }
}

impl fmt::Display for BlockedClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Returns the class of `ip` if it is not a public address. A mapped address (`::ffff:a.b.c.d`) is judged as
/// the IPv4 address that it maps.
#[must_use]
pub fn blocked_class(ip: IpAddr) -> Option<BlockedClass> {
    match unmapped(ip) {
        IpAddr::V4(v4) => first_match(V4, u128::from(u32::from(v4)), 32),
        IpAddr::V6(v6) => blocked_class_v6(v6),
    }
}

/// Returns the IPv4 address of a mapped IPv6 address; any other address unchanged.
#[must_use]
pub fn unmapped(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(ip, IpAddr::V4),
        IpAddr::V4(_) => ip,
    }
}

/// Returns the IPv4 address embedded in the well-known NAT64 prefix `64:ff9b::/96` (RFC 6052), if `ip` is in
/// it.
#[must_use]
pub fn nat64_embedded(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let bits = u128::from(ip);
    (bits >> 32 == NAT64 >> 32).then(|| Ipv4Addr::from_bits(low_32(bits)))
}

/// A row of the table: every address whose first `len` bits are those of `base`.
struct Block {
    base: u128,
    len: u8,
    class: BlockedClass,
}

const fn v4(a: u8, b: u8, c: u8, d: u8, len: u8, class: BlockedClass) -> Block {
    Block { base: Ipv4Addr::new(a, b, c, d).to_bits() as u128, len, class }
}

const fn v6(head: [u16; 6], tail: [u16; 2], len: u8, class: BlockedClass) -> Block {
    let [a, b, c, d, e, f] = head;
    let [g, h] = tail;
    Block { base: Ipv6Addr::new(a, b, c, d, e, f, g, h).to_bits(), len, class }
}

const NAT64: u128 = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0).to_bits();

/// Blocked IPv4 prefixes; the first match counts.
const V4: &[Block] = &[
    v4(0, 0, 0, 0, 8, BlockedClass::Unspecified),
    v4(10, 0, 0, 0, 8, BlockedClass::Private),
    v4(100, 64, 0, 0, 10, BlockedClass::Cgnat),
    v4(127, 0, 0, 0, 8, BlockedClass::Loopback),
    v4(168, 63, 129, 16, 32, BlockedClass::Platform),
    v4(169, 254, 0, 0, 16, BlockedClass::LinkLocal),
    v4(172, 16, 0, 0, 12, BlockedClass::Private),
    v4(192, 0, 0, 0, 24, BlockedClass::Reserved),
    v4(192, 0, 2, 0, 24, BlockedClass::Documentation),
    v4(192, 88, 99, 0, 24, BlockedClass::Translated),
    v4(192, 168, 0, 0, 16, BlockedClass::Private),
    v4(198, 18, 0, 0, 15, BlockedClass::Benchmark),
    v4(198, 51, 100, 0, 24, BlockedClass::Documentation),
    v4(203, 0, 113, 0, 24, BlockedClass::Documentation),
    v4(224, 0, 0, 0, 4, BlockedClass::Multicast),
    v4(240, 0, 0, 0, 4, BlockedClass::Reserved),
];

/// Blocked IPv6 prefixes; the first match counts. An address in no row and outside [`GLOBAL`] is blocked as
/// well.
const V6: &[Block] = &[
    v6([0, 0, 0, 0, 0, 0], [0, 0], 128, BlockedClass::Unspecified),
    v6([0, 0, 0, 0, 0, 0], [0, 1], 128, BlockedClass::Loopback),
    v6([0, 0, 0, 0, 0, 0], [0, 0], 96, BlockedClass::Translated),
    v6([0, 0, 0, 0, 0xffff, 0], [0, 0], 96, BlockedClass::Translated),
    v6([0x64, 0xff9b, 0, 0, 0, 0], [0, 0], 96, BlockedClass::Translated),
    v6([0x64, 0xff9b, 1, 0, 0, 0], [0, 0], 48, BlockedClass::Translated),
    v6([0x100, 0, 0, 0, 0, 0], [0, 0], 64, BlockedClass::Reserved),
    v6([0x2001, 0, 0, 0, 0, 0], [0, 0], 32, BlockedClass::Translated),
    v6([0x2001, 0, 0, 0, 0, 0], [0, 0], 23, BlockedClass::Reserved),
    v6([0x2001, 0xdb8, 0, 0, 0, 0], [0, 0], 32, BlockedClass::Documentation),
    v6([0x2002, 0, 0, 0, 0, 0], [0, 0], 16, BlockedClass::Translated),
    v6([0x3fff, 0, 0, 0, 0, 0], [0, 0], 20, BlockedClass::Documentation),
    v6([0x5f00, 0, 0, 0, 0, 0], [0, 0], 16, BlockedClass::Reserved),
    v6([0xfc00, 0, 0, 0, 0, 0], [0, 0], 7, BlockedClass::Private),
    v6([0xfe80, 0, 0, 0, 0, 0], [0, 0], 10, BlockedClass::LinkLocal),
    v6([0xfec0, 0, 0, 0, 0, 0], [0, 0], 10, BlockedClass::Private),
    v6([0xff00, 0, 0, 0, 0, 0], [0, 0], 8, BlockedClass::Multicast),
];

/// `2000::/3`: the only IPv6 space assigned so far (RFC 4291, section 2.4).
const GLOBAL: Block = v6([0x2000, 0, 0, 0, 0, 0], [0, 0], 3, BlockedClass::Reserved);

fn blocked_class_v6(ip: Ipv6Addr) -> Option<BlockedClass> {
    let bits = u128::from(ip);
    if let Some(class) = first_match(V6, bits, 128) {
        return Some(class);
    }
    if !matches(&GLOBAL, bits, 128) {
        return Some(BlockedClass::Reserved);
    }
    is_isatap(bits).then_some(BlockedClass::Translated)
}

fn first_match(table: &[Block], bits: u128, width: u8) -> Option<BlockedClass> {
    table.iter().find(|block| matches(block, bits, width)).map(|block| block.class)
}

fn matches(block: &Block, bits: u128, width: u8) -> bool {
    let host_bits = u32::from(width - block.len);
    bits.checked_shr(host_bits) == block.base.checked_shr(host_bits)
}

/// Interface id `0:5efe:a.b.c.d`, or `200:5efe:a.b.c.d` with the universal bit (RFC 5214, section 6.1).
fn is_isatap(bits: u128) -> bool {
    let id = low_32(bits >> 32);
    id == 0x0000_5efe || id == 0x0200_5efe
}

fn low_32(bits: u128) -> u32 {
    // Masked to 32 bits first, so the cast is lossless.
    (bits & 0xffff_ffff) as u32
}

#[cfg(test)]
mod tests;
