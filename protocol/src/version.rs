//! Protocol versions and their ALPN names.

/// ALPN name of the mesh connection, version 1.
pub const MESH_V1: &[u8] = b"parallax/1";

/// ALPN name of the mesh connection, version 2: the coordinator sends [`crate::message::ToAgent::ExternalAddress`],
/// and schedules include accounts ([`crate::message::ToAgent::ScheduleByAccount`]).
pub const MESH_V2: &[u8] = b"parallax/2";

/// ALPN name of the join connection, version 1.
pub const JOIN_V1: &[u8] = b"parallax-join/1";

/// Mesh versions that this build supports, newest first: offered by agents and accepted by the coordinator.
pub const SUPPORTED_MESH_VERSIONS: &[&[u8]] = &[MESH_V2, MESH_V1];

/// Meaning of a negotiated ALPN name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionPurpose {
    /// A mesh session of an enrolled agent, with its protocol version.
    Mesh(u16),
    /// An enrolment, with its protocol version.
    Join(u16),
}

/// Returns the meaning of a negotiated ALPN name; `None` for an unsupported name.
pub fn connection_purpose(alpn: &[u8]) -> Option<ConnectionPurpose> {
    match alpn {
        MESH_V1 => Some(ConnectionPurpose::Mesh(1)),
        MESH_V2 => Some(ConnectionPurpose::Mesh(2)),
        JOIN_V1 => Some(ConnectionPurpose::Join(1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_map_to_purposes_and_strangers_to_none() {
        assert_eq!(connection_purpose(b"parallax/1"), Some(ConnectionPurpose::Mesh(1)));
        assert_eq!(connection_purpose(b"parallax-join/1"), Some(ConnectionPurpose::Join(1)));
        assert_eq!(connection_purpose(b"parallax/2"), Some(ConnectionPurpose::Mesh(2)));
        assert_eq!(connection_purpose(b"parallax/3"), None);
        assert_eq!(connection_purpose(b""), None);
    }
}
