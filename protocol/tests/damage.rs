//! Round trips of every sample; random and damaged bytes never panic and never read past their frame.

#![allow(clippy::unwrap_used, reason = "the whole file is a test")]

mod common;

use parallax_protocol::batch::ResultFrame;
use parallax_protocol::frame::{FrameReader, MAX_FRAME, PREFIX_BYTES, decode, encode};
use parallax_protocol::id::WireMonitorId;
use parallax_protocol::join::{JoinRequest, JoinResponse};
use parallax_protocol::message::{ToAgent, ToCoordinator, WireCheckNow, WireCheckNowResponse};
use proptest::prelude::*;
use serde::{Serialize, de::DeserializeOwned};

/// Decodes as every wire type; unpacks a body that decodes as a batch.
fn read_as_everything(body: &[u8]) {
    let _ = decode::<ToAgent>(body);
    let _ = decode::<ToCoordinator>(body);
    let _ = decode::<WireCheckNow>(body);
    let _ = decode::<WireCheckNowResponse>(body);
    let _ = decode::<JoinRequest>(body);
    let _ = decode::<JoinResponse>(body);
    if let Ok(ResultFrame::Batch(batch)) = decode::<ResultFrame>(body) {
        let _ = batch.unpack(|slot| Some(WireMonitorId(u128::from(slot))));
    }
}

fn comes_back<T: Serialize + DeserializeOwned>(frame: &[u8]) {
    let value: T = decode(&frame[PREFIX_BYTES..]).unwrap();
    assert_eq!(encode(&value, MAX_FRAME).unwrap(), frame);
}

fn bodies() -> Vec<Vec<u8>> {
    [common::to_agent(), common::to_coordinator(), common::results(), common::check_now(), common::join()]
        .concat()
        .into_iter()
        .map(|(_, frame)| frame[PREFIX_BYTES..].to_vec())
        .collect()
}

#[test]
fn every_sample_encodes_to_the_bytes_it_came_from() {
    common::to_agent().iter().for_each(|(_, frame)| comes_back::<ToAgent>(frame));
    common::to_coordinator().iter().for_each(|(_, frame)| comes_back::<ToCoordinator>(frame));
    common::results().iter().for_each(|(_, frame)| comes_back::<ResultFrame>(frame));
    for (name, frame) in common::check_now() {
        match name.as_str() {
            "pending" | "done" => comes_back::<WireCheckNowResponse>(&frame),
            _ => comes_back::<WireCheckNow>(&frame),
        }
    }
    let join = common::join();
    comes_back::<JoinRequest>(&join[0].1);
    comes_back::<JoinResponse>(&join[1].1);
    comes_back::<JoinResponse>(&join[2].1);
}

#[test]
fn every_sample_cut_anywhere_is_refused_or_read_without_panic() {
    for body in bodies() {
        for end in 0..body.len() {
            read_as_everything(&body[..end]);
        }
    }
}

#[test]
fn a_list_with_an_excessive_length_is_refused() {
    // A snapshot whose `put` announces 2^32 entries and contains none.
    let body = [1, 77, 0, 12, 0xff, 0xff, 0xff, 0xff, 0x0f];
    assert!(decode::<ToAgent>(&body).is_err());
}

proptest! {
    // PROPTEST_CASES can only raise the number of cases.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(2000), ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_never_panic(body in prop::collection::vec(any::<u8>(), 0..300)) {
        read_as_everything(&body);
    }

    #[test]
    fn flipped_bytes_never_panic(
        pick in any::<prop::sample::Index>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let bodies = bodies();
        let mut body = pick.get(&bodies).clone();
        if !body.is_empty() {
            for (at, value) in flips {
                let at = at.index(body.len());
                body[at] = value;
            }
        }
        read_as_everything(&body);
    }

    #[test]
    fn a_reader_fed_in_any_pieces_gives_the_same_frames(cuts in prop::collection::vec(1usize..200, 1..20)) {
        let frames: Vec<Vec<u8>> = common::to_coordinator().into_iter().map(|(_, frame)| frame).collect();
        let stream = frames.concat();
        let mut reader = FrameReader::new(MAX_FRAME);
        let mut received = Vec::new();
        let mut rest = stream.as_slice();
        for size in cuts.into_iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, later) = rest.split_at(size.min(rest.len()));
            rest = later;
            reader.feed(piece);
            while let Some(body) = reader.next_frame().unwrap() {
                received.push(body.to_vec());
            }
        }
        let bodies: Vec<Vec<u8>> = frames.iter().map(|frame| frame[PREFIX_BYTES..].to_vec()).collect();
        prop_assert_eq!(received, bodies);
        prop_assert!(!reader.is_mid_frame());
    }

    #[test]
    fn a_reader_never_panics_and_holds_no_more_than_it_was_fed(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut reader = FrameReader::new(64);
        reader.feed(&bytes);
        while let Ok(Some(body)) = reader.next_frame() {
            prop_assert!(body.len() <= 64);
        }
    }
}
