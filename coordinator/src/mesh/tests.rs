//! The mesh over real QUIC on loopback.
