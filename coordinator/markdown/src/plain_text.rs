//! Markdown to plain text for readers without markup: keeps lines and lists, writes out links, and aligns tables in
//! columns.

use pulldown_cmark::{Event, Tag, TagEnd};
use unicode_width::UnicodeWidthStr;

use super::parse;

/// Maximum width of a table in characters; wider tables are written row by row.
const MAX_TABLE_WIDTH: usize = 76;

/// Maximum nesting depth of lists and quotations that is indented.
const MAX_DEPTH: usize = 8;
/// Maximum characters of a label before a cell of a wide table.
const MAX_LABEL: usize = 40;

/// Renders Markdown as plain text without a trailing line break. Stops after about `max_bytes` bytes.
pub fn plain_text(markdown: &str, max_bytes: usize) -> String {
    let mut writer = Writer::default();
    for event in parse(markdown) {
        if writer.output.len() > max_bytes {
            break;
        }
        writer.handle(event);
    }
    writer.end_line();
    writer.output.truncate(writer.output.trim_end().len());
    writer.output
}

/// Converts Markdown to one line of plain text.
pub fn plain_line(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for event in parse(text) {
        match event {
            Event::Text(text) | Event::Code(text) | Event::Html(text) | Event::InlineHtml(text) => {
                plain += &text;
            }
            Event::End(TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link | TagEnd::Image) => {}
            Event::SoftBreak | Event::HardBreak | Event::Rule | Event::End(_) if !plain.ends_with(' ') => {
                plain.push(' ');
            }
            _ => {}
        }
    }
    plain.trim_end().to_owned()
}

/// Prefix of the lines of a list item or quotation: of the first line, and of the others.
#[derive(Debug)]
struct Margin {
    first: Option<String>,
    rest: String,
}

#[derive(Debug, Default)]
struct Writer {
    output: String,
    /// The current block, which may span several lines.
    line: String,
    /// True if a blank line separates the next line from the previous ones.
    blank_line_before: bool,
    margins: Vec<Margin>,
    /// Next number of each open list; `None` for an unordered list.
    lists: Vec<Option<u64>>,
    /// Start and URL of each open link.
    links: Vec<(usize, String)>,
    /// Depth of open strikethrough, whose text is dropped: the author marked it as no longer valid.
    strikethrough_depth: usize,
    table: Option<Vec<Vec<String>>>,
}

impl Writer {
    fn handle(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(&tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Code(text) | Event::Html(text) | Event::InlineHtml(text) => {
                self.write(&text);
            }
            Event::SoftBreak | Event::HardBreak => {
                self.write(if self.table.is_some() { " " } else { "\n" });
            }
            Event::Rule => self.start_block(),
            _ => {}
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::Heading { .. } | Tag::HtmlBlock => self.start_block(),
            Tag::BlockQuote(_) => {
                self.start_block();
                self.margins.push(Margin { first: None, rest: "> ".to_owned() });
            }
            Tag::CodeBlock(_) => {
                self.start_block();
                self.margins.push(Margin { first: None, rest: "    ".to_owned() });
            }
            Tag::List(first) => {
                self.end_line();
                self.blank_line_before |= self.lists.is_empty();
                self.lists.push(*first);
            }
            Tag::Item => {
                self.end_line();
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let mark = format!("{number}. ");
                        *number = number.saturating_add(1);
                        mark
                    }
                    _ => "- ".to_owned(),
                };
                let others = " ".repeat(mark.len());
                self.margins.push(Margin { first: Some(mark), rest: others });
            }
            Tag::Table(_) => {
                self.start_block();
                self.table = Some(Vec::new());
            }
            Tag::TableHead | Tag::TableRow => self.table.iter_mut().for_each(|rows| rows.push(Vec::new())),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push((self.line.len(), dest_url.to_string()));
            }
            Tag::Strikethrough => self.strikethrough_depth += 1,
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::HtmlBlock => {
                self.end_line();
                self.blank_line_before = true;
            }
            TagEnd::BlockQuote(_) | TagEnd::CodeBlock => {
                self.end_line();
                self.margins.pop();
                self.blank_line_before = true;
            }
            TagEnd::Item => {
                self.end_line();
                self.margins.pop();
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.blank_line_before |= self.lists.is_empty();
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.line);
                if let Some(row) = self.table.as_mut().and_then(|rows| rows.last_mut()) {
                    row.push(cell.trim().to_owned());
                }
            }
            TagEnd::Table => {
                self.line = format_table(&self.table.take().unwrap_or_default());
                self.end_line();
                self.blank_line_before = true;
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::Strikethrough => self.strikethrough_depth = self.strikethrough_depth.saturating_sub(1),
            _ => {}
        }
    }

    fn write(&mut self, text: &str) {
        if self.strikethrough_depth == 0 {
            self.line.push_str(text);
        }
    }

    /// Appends the link's URL unless the link text already is that URL.
    fn end_link(&mut self) {
        let Some((start, address)) = self.links.pop() else { return };
        let is_open = ["http://", "https://", "mailto:"].iter().any(|scheme| address.starts_with(scheme));
        let label = self.line.get(start..).unwrap_or_default();
        let is_in_label = label == address || address.strip_prefix("mailto:") == Some(label);
        if is_open && !is_in_label && self.strikethrough_depth == 0 {
            self.line.push_str(&format!(" ({address})"));
        }
    }

    /// Starts a new block, separated from the one above.
    fn start_block(&mut self) {
        self.end_line();
        // The first block of a list item follows its marker on the same line.
        self.blank_line_before |= self.margins.last().is_none_or(|margin| margin.first.is_none());
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if line.trim().is_empty() {
            return;
        }
        if std::mem::take(&mut self.blank_line_before) && !self.output.is_empty() {
            self.output.push('\n');
        }
        for line in line.trim_end().split('\n') {
            let start = self.output.len();
            for margin in self.margins.iter_mut().take(MAX_DEPTH) {
                let text = margin.first.take();
                self.output.push_str(text.as_deref().unwrap_or(&margin.rest));
            }
            self.output.push_str(line);
            self.output.truncate(start + self.output.get(start..).unwrap_or_default().trim_end().len());
            self.output.push('\n');
        }
    }
}

/// Formats a table in columns under its header row; a table that is too wide is written row by row with the header
/// cells as labels.
fn format_table(rows: &[Vec<String>]) -> String {
    let Some((head, body)) = rows.split_first() else { return String::new() };
    let width =
        |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.width()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let total = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
    if total > MAX_TABLE_WIDTH {
        let labelled = |row: &Vec<String>| {
            let cells = head.iter().zip(row).filter(|(_, cell)| !cell.is_empty());
            let lines = cells.map(|(label, cell)| {
                let label: String = label.chars().take(MAX_LABEL).collect();
                if label.is_empty() { cell.clone() } else { format!("{label}: {cell}") }
            });
            lines.collect::<Vec<_>>().join("\n")
        };
        return body.iter().map(labelled).collect::<Vec<_>>().join("\n\n");
    }
    let line = |row: &[String]| {
        let cells = row.iter().zip(&widths);
        let padded = cells.map(|(cell, width)| format!("{cell}{}", " ".repeat(width.saturating_sub(cell.width()))));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let underline: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let lines = [line(head), line(&underline)].into_iter().chain(body.iter().map(|row| line(row)));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_removed_and_its_text_kept() {
        for (markdown, text) in [
            ("plain", "plain"),
            ("**Bold** *it* `code_x` \\[a\\] a\\_b", "Bold it code_x [a] a_b"),
            ("# Head\nline\nline  \nline", "Head\n\nline\nline\nline"),
            ("[us](https://a.example/) <https://b.example> https://c.example", {
                "us (https://a.example/) https://b.example https://c.example"
            }),
            ("[x](javascript:alert(1)) ![shot](https://a.example/s.png)", "x shot (https://a.example/s.png)"),
            ("<mail@a.example>", "mail@a.example"),
            ("before\n\n- a\n- b *c*\n  - d\n\n1. e\n2. f", "before\n\n- a\n- b c\n  - d\n\n1. e\n2. f"),
            ("- a\n\n  b\n\n- c", "- a\n\n  b\n\n- c"),
            ("> said\n> so\n\nthen", "> said\n> so\n\nthen"),
            ("```\nlet x = 1;\n  y\n```\nend", "    let x = 1;\n      y\n\nend"),
            ("At ~~10:00~~ 11:00", "At  11:00"),
            ("a\n\n---\n\nb", "a\n\nb"),
            ("1 < 2 & <b>3</b>", "1 < 2 & <b>3</b>"),
            ("", ""),
        ] {
            assert_eq!(plain_text(markdown, 9_999), text, "{markdown:?}");
        }
    }

    #[test]
    fn a_plain_line_has_no_marks_and_no_breaks() {
        for (text, line) in [
            ("**We move** to [another](https://example.com/).\n\n- `one`\n- two", "We move to another. one two"),
            ("# Title\nline\nline", "Title line line"),
            ("", ""),
        ] {
            assert_eq!(plain_line(text), line);
        }
    }

    #[test]
    fn a_table_is_written_in_columns_and_a_wide_one_row_by_row() {
        let table = "Now:\n\n| Region | State |\n|---|--:|\n| Europe | **up** |\n| 東京 | down |\n| | |\n\nend";
        assert_eq!(plain_text(table, 9_999), "Now:\n\nRegion  State\n------  -----\nEurope  up\n東京    down\n\nend");
        let long = "x".repeat(80);
        let wide = format!("| Name | Note |\n|---|---|\n| a | {long} |\n| b | |\n| c | {long} |");
        assert_eq!(plain_text(&wide, 9_999), format!("Name: a\nNote: {long}\n\nName: b\n\nName: c\nNote: {long}"));
    }

    #[test]
    fn plain_text_is_bounded() {
        for markdown in [
            format!("|{}|\n|-|\n{}", "h".repeat(3_000), "|a|\n".repeat(300)),
            "a|".repeat(50) + "\n" + &"-|".repeat(50) + "\n" + &"a\n".repeat(150),
            "> ".repeat(2_000) + "a",
            "- ".repeat(1_000) + "a\n" + &"b\n".repeat(1_000),
        ] {
            let text = plain_text(&markdown, 16_000);
            assert!(text.len() < 16_000 + 20 * markdown.len(), "{} of {}", text.len(), markdown.len());
        }
    }
}
