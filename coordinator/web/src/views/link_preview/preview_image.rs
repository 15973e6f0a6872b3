//! Preview image of a shared link: the page's name, the status icon and headline, and the days as bars.
//! Without text if the typeface lacks a letter.

use parallax_core::page_view::HISTORY_DAYS;
use tiny_skia::{Color, FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, Rect, Stroke, Transform};

use super::PreviewContent;
use super::font::PreviewFont;
use crate::views::uptime_bars::BarState;

/// Size in pixels, as recommended for link previews.
const WIDTH: u16 = 1200;
const HEIGHT: u16 = 630;
/// Center and half width of the icon: alone, and next to text.
const ICON: (f32, f32, f32) = (600.0, 220.0, 110.0);
const ICON_NEXT_TO_TEXT: (f32, f32, f32) = (146.0, 278.0, 60.0);
/// Position, font size and width of the name and of the headline's first line; below, the line height.
const NAME: (f32, f32, f32, f32) = (86.0, 132.0, 50.0, 1028.0);
const HEADLINE: (f32, f32, f32, f32) = (246.0, 262.0, 60.0, 868.0);
const LINE_HEIGHT: f32 = 72.0;
/// Maximum number of lines of the headline.
const MAX_LINES: usize = 2;
/// Left edge, spacing and width of the bars.
const BARS: (f32, f32, f32) = (86.0, 11.45, 8.0);
/// Top and height of the bars.
const BARS_EXTENT: (f32, f32) = (440.0, 110.0);

/// The image could not be drawn.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PreviewError {
    /// Not enough memory for the pixels, or a shape without size.
    #[error("can't lay out a preview image")]
    Shape,
    /// The PNG encoder failed.
    #[error("can't encode a preview image: {0}")]
    Png(#[from] png::EncodingError),
}

/// Draws the image as PNG.
///
/// # Errors
/// If there is no memory for its 3 MB.
pub(crate) fn render_png(content: &PreviewContent) -> Result<Vec<u8>, PreviewError> {
    let mut pixmap = Pixmap::new(u32::from(WIDTH), u32::from(HEIGHT)).ok_or(PreviewError::Shape)?;
    pixmap.fill(Color::from_rgba8(0x0e, 0x10, 0x13, 0xff));
    let status_paint = paint(class_color(content.class));
    bar(&mut pixmap, (0.0, 0.0, f32::from(WIDTH), 14.0), &status_paint)?;
    let [name, headline] = &content.texts;
    let fonts = PreviewFont::regular().zip(PreviewFont::bold());
    let fonts = fonts.filter(|(regular, bold)| regular.covers(name) && bold.covers(headline));
    if let Some((regular, bold)) = &fonts {
        draw_lines(&mut pixmap, regular, &regular.wrap(name, NAME.2, NAME.3, 1), NAME, [0x9c, 0xa4, 0xb0]);
        let lines = bold.wrap(headline, HEADLINE.2, HEADLINE.3, MAX_LINES);
        // A single line is centered next to the icon.
        let offset = if lines.len() > 1 { 0.0 } else { LINE_HEIGHT / 2.0 };
        let (x, y, size, width) = HEADLINE;
        draw_lines(&mut pixmap, bold, &lines, (x, y + offset, size, width), [0xec, 0xee, 0xf1]);
    }
    let (x, y, half) = if fonts.is_some() { ICON_NEXT_TO_TEXT } else { ICON };
    let circle = PathBuilder::from_circle(x, y, half).ok_or(PreviewError::Shape)?;
    pixmap.fill_path(&circle, &status_paint, FillRule::Winding, Transform::identity(), None);
    let pen = Stroke { width: 1.7, line_cap: LineCap::Round, line_join: LineJoin::Round, ..Stroke::default() };
    // Icons are drawn in a square of sixteen units, as on the page.
    let scale = half / 10.5;
    let to = Transform::from_row(scale, 0.0, 0.0, scale, x - 8.0 * scale, y - 8.0 * scale);
    pixmap.stroke_path(&icon_path(content.class)?, &paint([0xff, 0xff, 0xff]), &pen, to, None);
    let (left, step, bar_width) = BARS;
    // Fewer bars are wider: the total width is always the same.
    let days = u16::try_from(content.days.len().max(1)).unwrap_or(u16::MAX);
    let scale = f32::from(u16::try_from(HISTORY_DAYS).unwrap_or(u16::MAX)) / f32::from(days);
    let (step, bar_width) = (step * scale, bar_width * scale);
    let (top, max_height) = BARS_EXTENT;
    for (at, day) in (0_u16..).zip(&content.days) {
        let (color, height_fraction) = bar_style(*day);
        let x = f32::from(at).mul_add(step, left);
        let bar_height = max_height * height_fraction;
        bar(&mut pixmap, (x, top + max_height - bar_height, bar_width, bar_height), &paint(color))?;
    }
    encode_png(&pixmap)
}

/// Draws lines of text below each other.
fn draw_lines(
    pixmap: &mut Pixmap,
    font: &PreviewFont,
    lines: &[String],
    (x, y, size, _): (f32, f32, f32, f32),
    color: [u8; 3],
) {
    let text_paint = paint(color);
    for (at, line) in (0_u8..).zip(lines) {
        let line_y = f32::from(at).mul_add(LINE_HEIGHT, y);
        // A line of spaces has no outline.
        let Some(path) = font.outline(line, size, (x, line_y)) else { continue };
        pixmap.fill_path(&path, &text_paint, FillRule::Winding, Transform::identity(), None);
    }
}

/// Encodes PNG without an alpha channel. Most rows equal the one above, hence the filter.
fn encode_png(pixmap: &Pixmap) -> Result<Vec<u8>, PreviewError> {
    let rgb: Vec<u8> = pixmap.pixels().iter().flat_map(|pixel| [pixel.red(), pixel.green(), pixel.blue()]).collect();
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, pixmap.width(), pixmap.height());
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Best);
    encoder.set_filter(png::FilterType::Up);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&rgb)?;
    writer.finish()?;
    Ok(bytes)
}

fn bar(
    pixmap: &mut Pixmap,
    (x, y, width, height): (f32, f32, f32, f32),
    paint: &Paint<'_>,
) -> Result<(), PreviewError> {
    let bar = Rect::from_xywh(x, y, width, height).ok_or(PreviewError::Shape)?;
    pixmap.fill_rect(bar, paint, Transform::identity(), None);
    Ok(())
}

fn paint([red, green, blue]: [u8; 3]) -> Paint<'static> {
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color_rgba8(red, green, blue, 0xff);
    paint
}

/// Fill colors of the page.
fn class_color(class: &str) -> [u8; 3] {
    match class {
        "up" => [0x0f, 0x7a, 0x56],
        "slow" => [0x8f, 0x5c, 0x00],
        "part" => [0xb2, 0x46, 0x1a],
        "down" => [0xb8, 0x2a, 0x1b],
        "maint" => [0x35, 0x57, 0xbb],
        _ => [0x59, 0x60, 0x6b],
    }
}

/// Color and relative height of a day's bar: states never differ by color alone.
const fn bar_style(day: BarState) -> ([u8; 3], f32) {
    match day {
        BarState::NoData => ([0x41, 0x48, 0x53], 0.12),
        BarState::Up => ([0x2f, 0x9e, 0x77], 1.0),
        BarState::Slow => ([0xd9, 0x99, 0x1c], 0.65),
        BarState::BriefOutage => ([0xdd, 0x6d, 0x34], 0.45),
        BarState::LongOutage => ([0xe0, 0x53, 0x3f], 0.3),
        BarState::Maintenance => ([0x6d, 0x8b, 0xe0], 0.85),
    }
}

/// Icon of a status.
fn icon_path(class: &str) -> Result<Path, PreviewError> {
    let mut path = PathBuilder::new();
    let mut line = |points: &[(f32, f32)]| {
        for (at, (x, y)) in points.iter().enumerate() {
            if at == 0 { path.move_to(*x, *y) } else { path.line_to(*x, *y) }
        }
    };
    match class {
        "up" => line(&[(2.5, 8.5), (6.2, 12.0), (13.5, 4.0)]),
        "slow" => {
            line(&[(8.0, 2.2), (14.6, 13.8), (1.4, 13.8), (8.0, 2.2), (14.6, 13.8)]);
            line(&[(8.0, 6.6), (8.0, 9.8)]);
            line(&[(8.0, 11.6), (8.0, 11.8)]);
        }
        "part" => {
            line(&[(8.0, 2.6), (8.0, 9.4)]);
            line(&[(8.0, 12.9), (8.0, 13.1)]);
        }
        "down" => {
            line(&[(3.4, 3.4), (12.6, 12.6)]);
            line(&[(12.6, 3.4), (3.4, 12.6)]);
        }
        "maint" => {
            line(&[(8.0, 3.0), (8.0, 8.4), (11.6, 10.8)]);
        }
        _ => line(&[(3.4, 8.0), (12.6, 8.0)]),
    }
    path.finish().ok_or(PreviewError::Shape)
}
