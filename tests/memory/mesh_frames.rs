//! Mesh frames, before and after authentication.

use std::path::Path;

use parallax_protocol::batch::ResultFrame;
use parallax_protocol::frame::{FrameReader, MAX_FRAME, MAX_JOIN_FRAME, PREFIX_BYTES, decode};
use parallax_protocol::id::WireMonitorId;
use parallax_protocol::join::{JoinRequest, JoinResponse};
use parallax_protocol::message::{ToAgent, ToCoordinator, WireCheckNow, WireCheckNowResponse};
use serde::de::DeserializeOwned;

use crate::hostile_bytes::{typeless_bytes, variants};
use crate::{PeakMemory, alone};

/// Bodies of frames of released versions, from the protocol's own tests.
fn released(file: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../protocol/tests/golden").join(format!("{file}.hex"));
    let text = std::fs::read_to_string(path).expect("the protocol's samples are there");
    let digits = text.lines().filter_map(|line| line.split_once(": ")).map(|(_, hex)| hex.as_bytes());
    let frames = digits.map(|hex| {
        let pairs = hex.chunks(2).map(|pair| std::str::from_utf8(pair).expect("it is ASCII"));
        pairs.map(|pair| u8::from_str_radix(pair, 16).expect("two digits")).collect::<Vec<u8>>()
    });
    frames.map(|frame| frame[PREFIX_BYTES..].to_vec()).collect()
}

fn frames_of(file: &str, name: &str, read: impl Fn(&[u8])) {
    alone(|| {
        let mut worst = PeakMemory::default();
        for good in released(file) {
            for bytes in variants(&good).filter(|bytes| bytes.len() <= MAX_FRAME) {
                worst.read(name, &bytes, &read);
            }
        }
        for bytes in typeless_bytes() {
            worst.read(name, &bytes, &read);
        }
        worst.print(name);
    });
}

fn plain<T: DeserializeOwned>(bytes: &[u8]) {
    drop(decode::<T>(bytes));
}

#[test]
fn join_frames_take_no_more_than_so_many_times_their_length() {
    frames_of("join", "join requests", plain::<JoinRequest>);
    frames_of("join", "join answers", plain::<JoinResponse>);
}

#[test]
fn control_frames_take_no_more_than_so_many_times_their_length() {
    frames_of("to-coordinator", "frames to the coordinator", plain::<ToCoordinator>);
    frames_of("to-agent", "frames to an agent", plain::<ToAgent>);
}

#[test]
fn questions_and_answers_take_no_more_than_so_many_times_their_length() {
    frames_of("check-now", "questions", plain::<WireCheckNow>);
    frames_of("check-now", "answers", plain::<WireCheckNowResponse>);
}

#[test]
fn result_frames_take_no_more_than_so_many_times_their_length_packed_and_unpacked() {
    frames_of("results", "results", |bytes| {
        if let Ok(ResultFrame::Batch(batch)) = decode::<ResultFrame>(bytes) {
            drop(batch.unpack(|slot| Some(WireMonitorId(u128::from(slot)))));
        }
    });
}

#[test]
fn a_prefix_that_claims_a_long_frame_is_given_nothing_before_its_bytes_come() {
    alone(|| {
        for limit in [MAX_JOIN_FRAME, MAX_FRAME] {
            for claim in [limit, limit + 1, u32::MAX as usize] {
                let mut worst = PeakMemory::default();
                let prefix = u32::try_from(claim).expect("it fits").to_le_bytes();
                worst.read("a prefix", &prefix, |bytes| {
                    let mut reader = FrameReader::new(limit);
                    reader.feed(bytes);
                    let found = reader.next_frame();
                    assert_eq!(found.is_err(), claim > limit);
                    assert!(!matches!(found, Ok(Some(_))));
                });
                assert!(worst.ahead <= 1 << 10, "{} bytes for a prefix", worst.ahead);
            }
        }
    });
}
