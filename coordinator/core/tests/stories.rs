//! Plays every `stories/*.story`: readable scenarios with actions and their expected outputs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure may panic")]

mod story;

use std::fs;
use std::path::{Path, PathBuf};

use story::mesh;
use story::script::{self, StoryLine};
use story::stage::MachineStage;
use story::text::{self, StoryResult, VantageNames};
use story::world;

#[test]
fn every_story_comes_out_as_it_is_told() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stories");
    let mut stories: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "story"))
        .collect();
    stories.sort();
    let failure = |path: &PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        tell(&fs::read_to_string(path).unwrap()).err().map(|error| format!("{name}: {error}"))
    };
    let wrong: Vec<String> = stories.iter().filter_map(failure).collect();
    assert!(wrong.is_empty(), "{} of {} stories:\n{}", wrong.len(), stories.len(), wrong.join("\n"));
    assert!(stories.len() >= 40, "only {} stories", stories.len());
}

#[test]
fn outages_are_announced_in_time_at_every_point_of_the_interval() {
    let vantages: String = (1..)
        .zip(["europe", "north-america", "south-america", "africa", "asia", "oceania"])
        .map(|(no, region)| format!("place a{no} {region} A\nplace b{no} {region} B\n"))
        .collect();
    let wrong: Vec<String> = (0..60)
        .flat_map(|second| [("refuses", 20, second), ("hangs", 35, second)])
        .filter_map(|(mood, within, second)| {
            let story = format!(
                "world http every 60s\n{vantages}00:00 the world begins\n-> UP within 5s\n\
                 02:{second:02} it {mood} everywhere\n-> DOWN went-down within {within}s\n\
                 04:{second:02} it is well everywhere\n-> scope changes\n-> UP recovered within 12s\n\
                 05:59 the world ends\n"
            );
            tell(&story).err().map(|error| format!("{mood} at {second} s: {error}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Measures the delays of alerts for outages everywhere, over all moments of the interval at which they may begin.
/// The limits promised for real hosts leave room for their work above these.
#[test]
fn outages_are_announced_within_the_promised_mean_and_worst_times() {
    let regions = ["europe", "north-america", "south-america", "africa", "asia", "oceania"];
    let stage = || {
        let mut cast = VantageNames::default();
        let vantages = regions.into_iter().flat_map(|region| {
            ["A", "B"].map(|network| cast.vantage(&[&format!("{region}-{network}"), region, network]).unwrap())
        });
        let vantages = vantages.collect();
        let settings = text::monitor(&["http", "every", "60s"]).unwrap();
        let (stage, first) = MachineStage::new(settings, vantages, text::time("00:00").unwrap());
        (stage, first, cast)
    };
    let promised = [("503", true, (11_000, 16_000)), ("black hole", false, (23_000, 28_000))];
    for (name, refuses, (mean_down, worst_down)) in promised {
        let delays: Vec<world::AlertDelays> = (0..60_000)
            .step_by(500)
            .map(|after| {
                let (stage, first, cast) = stage();
                let failure = world::measure(stage, first, &cast, refuses, after);
                failure.unwrap_or_else(|error| panic!("{name} {after} ms after 02:00: {error}"))
            })
            .collect();
        let figures = |of: fn(&world::AlertDelays) -> i64| {
            let all: Vec<i64> = delays.iter().map(of).collect();
            (all.iter().sum::<i64>() / delays.len() as i64, all.into_iter().max().unwrap_or(0))
        };
        let (down, up) = (figures(|delays| delays.down), figures(|delays| delays.up));
        println!("{name}: down after {} ms on average, {} at most; up after {} and {}", down.0, down.1, up.0, up.1);
        assert!(down.0 <= mean_down && down.1 <= worst_down, "{name}: down after {down:?} ms");
        assert!(up.0 <= 6_000 && up.1 <= 12_000, "{name}: up after {up:?} ms");
    }
}

/// Parses and plays one story.
fn tell(story: &str) -> StoryResult<()> {
    let mut settings = None;
    let mut cast = VantageNames::default();
    let mut vantages = Vec::new();
    let mut lines: Vec<StoryLine<'_>> = Vec::new();
    let (mut is_world, mut is_mesh) = (false, false);
    for (number, line) in (1..).zip(story.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = |error: String| format!("line {number}: {error}");
        match words.as_slice() {
            [] => {}
            [kind @ ("monitor" | "world"), options @ ..] => {
                is_world = *kind == "world";
                settings = Some(text::monitor(options).map_err(at)?);
            }
            ["mesh"] => is_mesh = true,
            ["place", vantage @ ..] => vantages.push(cast.vantage(vantage).map_err(at)?),
            ["->", ..] => {
                let expected = line.trim_start_matches("->").trim();
                lines.last_mut().ok_or("an expectation before any line")?.expected.push(expected);
            }
            _ => lines.push(StoryLine { number, words, expected: Vec::new() }),
        }
    }
    if is_mesh {
        return mesh::play(&vantages, &cast, &lines);
    }
    let settings = settings.ok_or("no monitor")?;
    let (stage, first) = MachineStage::new(settings, vantages, text::time("00:00")?);
    if is_world { world::play(stage, first, &cast, &lines) } else { script::play(stage, first, cast, &lines) }
}
