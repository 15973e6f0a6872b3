//! Whitespace of templates: takes out, at build time, what only lays out their source.
//!
//! The rules are those of JSX. A line break next to a tag or an expression vanishes with its indentation, one between
//! words is a space, and a space within a line stays. `{{ " " }}` is a space where a line must break next to a tag.

use std::mem::take;

/// Template syntax that writes one space.
const SPACE: &str = "{{ \" \" }}";
/// Elements whose content is kept byte for byte.
const VERBATIM: [&str; 4] = ["pre", "textarea", "script", "style"];
/// Delimiters of template syntax.
const DELIMITERS: [(&str, &str); 3] = [("{{", "}}"), ("{%", "%}"), ("{#", "#}")];
/// Characters after a delimiter that tell the template engine how to treat the whitespace before it.
const TRIM_MARKS: [char; 3] = ['-', '+', '~'];

/// Line breaks in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineBreaks {
    /// Line breaks are removed.
    Drop,
    /// Line breaks are kept, without indentation: a line of a mail has at most 998 bytes (RFC 5322, section 2.1.1).
    Keep,
}

/// Removes the layout from a template. Each template tag stays on its line, so that the compiler's messages name the
/// line of the source.
pub(crate) fn squeeze(template: &str, breaks: LineBreaks) -> Result<String, String> {
    let mut squeezer = Squeezer { rest: template, text: String::new(), out: String::new(), dropped: 0, breaks };
    squeezer.document().map_err(|fault| {
        let line = template[..template.len() - squeezer.rest.len()].matches('\n').count() + 1;
        format!("line {line}: {fault}")
    })?;
    Ok(squeezer.out)
}

/// Returns the paths of templates that this one extends, imports or includes.
pub(crate) fn references(template: &str) -> impl Iterator<Item = &str> {
    let statements = template.split("{%").skip(1).map(|after| after.trim_start_matches(TRIM_MARKS).trim_start());
    statements.filter_map(|statement| {
        let path = ["extends ", "import ", "include "].iter().find_map(|word| statement.strip_prefix(word))?;
        path.trim_start().strip_prefix('"')?.split('"').next()
    })
}

struct Squeezer<'a> {
    rest: &'a str,
    /// Text since the last tag or expression.
    text: String,
    out: String,
    /// Number of line breaks that were dropped, and not yet added back within a template tag.
    dropped: usize,
    breaks: LineBreaks,
}

impl Squeezer<'_> {
    fn document(&mut self) -> Result<(), String> {
        while let Some(next) = self.rest.chars().next() {
            if self.rest.starts_with("<!--") {
                let end = self.find("-->", "comment")?;
                self.flush();
                self.copy(end);
            } else if self.is_tag() {
                self.flush();
                self.tag()?;
            } else if let Some((opening, closing)) = self.delimiters() {
                self.flush();
                self.template_tag(opening, closing)?;
            } else {
                self.text.push(next);
                self.rest = &self.rest[next.len_utf8()..];
            }
        }
        self.flush();
        Ok(())
    }

    /// Returns whether a tag begins here; its name may be an expression.
    fn is_tag(&self) -> bool {
        let is_name = |rest: &str| rest.starts_with("{{") || rest.starts_with(|it: char| it.is_ascii_alphabetic());
        self.rest.strip_prefix('<').is_some_and(|after| {
            after.starts_with('!') || is_name(after) || after.strip_prefix('/').is_some_and(is_name)
        })
    }

    fn delimiters(&self) -> Option<(&'static str, &'static str)> {
        DELIMITERS.into_iter().find(|(opening, _)| self.rest.starts_with(opening))
    }

    /// Writes the text before a tag.
    fn flush(&mut self) {
        let text = take(&mut self.text);
        let squeezed = match self.breaks {
            LineBreaks::Drop => without_breaks(&text),
            LineBreaks::Keep => without_indentation(&text),
        };
        self.dropped += breaks_in(&text) - breaks_in(&squeezed);
        self.out.push_str(&squeezed);
    }

    /// Copies a tag. A line break between attributes is a space; before the end of the tag it vanishes.
    fn tag(&mut self) -> Result<(), String> {
        self.copy(1);
        let name: String = self.rest.chars().take_while(char::is_ascii_alphanumeric).collect();
        let mut quote = None;
        loop {
            let Some(next) = self.rest.chars().next() else { return Err(format!("<{name}> is not closed")) };
            if let Some((opening, closing)) = self.delimiters() {
                self.template_tag(opening, closing)?;
            } else if quote == Some(next) {
                quote = None;
                self.copy(1);
            } else if quote.is_some() {
                if next == '\n' {
                    return Err(format!("line break in an attribute of <{name}>"));
                }
                self.copy(next.len_utf8());
            } else if next.is_ascii_whitespace() {
                let after = self.rest.trim_ascii_start();
                let gap = &self.rest[..self.rest.len() - after.len()];
                if !gap.contains('\n') {
                    self.out.push_str(gap);
                } else if !after.starts_with('>') && !after.starts_with("/>") {
                    self.out.push(' ');
                }
                self.dropped += breaks_in(gap);
                self.rest = after;
            } else {
                self.copy(next.len_utf8());
                match next {
                    '"' | '\'' => quote = Some(next),
                    '>' => break,
                    _ => {}
                }
            }
        }
        if VERBATIM.contains(&name.as_str()) { self.verbatim(&format!("</{name}")) } else { Ok(()) }
    }

    /// Copies the content of an element byte for byte.
    fn verbatim(&mut self, end: &str) -> Result<(), String> {
        while !self.rest.starts_with(end) {
            let Some(next) = self.rest.chars().next() else { return Err(format!("{end}> is missing")) };
            match self.delimiters() {
                Some((opening, closing)) => self.template_tag(opening, closing)?,
                None => self.copy(next.len_utf8()),
            }
        }
        Ok(())
    }

    /// Copies an expression or a statement, and drops a comment.
    fn template_tag(&mut self, opening: &str, closing: &str) -> Result<(), String> {
        if let Some(after) = self.rest.strip_prefix(SPACE) {
            self.out.push(' ');
            self.rest = after;
            return Ok(());
        }
        let end = self.find(closing, opening)?;
        let tag = &self.rest[..end];
        if opening == "{#" {
            self.dropped += breaks_in(tag);
            self.rest = &self.rest[end..];
            return Ok(());
        }
        let marked = tag[opening.len()..].starts_with(TRIM_MARKS);
        self.copy(opening.len() + usize::from(marked));
        self.out.extend(std::iter::repeat_n('\n', take(&mut self.dropped)));
        self.copy(end - opening.len() - usize::from(marked));
        Ok(())
    }

    /// Returns the length up to the end of `closing`, which may not stand in a string.
    fn find(&self, closing: &str, what: &str) -> Result<usize, String> {
        let mut in_string = false;
        let is_code = what != "comment" && what != "{#";
        for (at, next) in self.rest.char_indices() {
            in_string ^= is_code && next == '"';
            if !in_string && self.rest[at..].starts_with(closing) {
                return Ok(at + closing.len());
            }
        }
        Err(format!("{what} is not closed"))
    }

    fn copy(&mut self, length: usize) {
        let (copied, rest) = self.rest.split_at(length);
        self.out.push_str(copied);
        self.rest = rest;
    }
}

fn breaks_in(text: &str) -> usize {
    text.matches('\n').count()
}

fn without_breaks(text: &str) -> String {
    if !text.contains('\n') {
        return text.to_owned();
    }
    let last = breaks_in(text);
    let words = text.split('\n').enumerate().map(|(no, line)| {
        let line = if no > 0 { line.trim_start() } else { line };
        if no < last { line.trim_end() } else { line }
    });
    words.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

fn without_indentation(text: &str) -> String {
    text.split('\n')
        .enumerate()
        .map(|(no, line)| if no > 0 { line.trim_start() } else { line })
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squeezed(template: &str) -> String {
        squeeze(template, LineBreaks::Drop).unwrap()
    }

    #[test]
    fn a_line_break_next_to_a_tag_or_an_expression_vanishes() {
        assert_eq!(squeezed("<ul>\n  <li>\n    one\n  </li>\n</ul>\n"), "<ul><li>one</li></ul>");
        assert_eq!(squeezed("<p>\n  {{ text }}\n  <b>x</b>\n</p>"), "<p>{{\n text }}<b>x</b></p>");
    }

    #[test]
    fn a_space_within_a_line_and_a_line_break_between_words_are_spaces() {
        assert_eq!(squeezed("<a>a</a> <a>b</a> · {{ c }} d"), "<a>a</a> <a>b</a> · {{ c }} d");
        assert_eq!(squeezed("<p>one\n   two\n\n  three</p>"), "<p>one two three</p>");
        assert_eq!(squeezed("<p>\n  a{{ \" \" }}\n  <b>c</b>\n</p>"), "<p>a <b>c</b></p>");
    }

    #[test]
    fn verbatim_elements_and_attributes_are_kept() {
        for kept in [
            "<pre>\n  a\n\n  b</pre>",
            "<pre tabindex=\"0\"><code>{\n  \"a\": 1\n}</code></pre>",
            "<textarea> a\n b </textarea>",
            "<script>\n  a();\n</script>",
            "<style>\n  a { b: c }\n</style>",
            "<a title=\"a  b > c\" class='x  y'>  </a>",
            "<!-- a\n  b -->",
        ] {
            assert_eq!(squeezed(kept), kept);
        }
        assert_eq!(squeezed("<p>\n  a</p>\n<pre>\n</pre>\n<b>\n</b>"), "<p>a</p><pre>\n</pre><b></b>");
    }

    #[test]
    fn attributes_on_lines_of_their_own_are_separated_by_a_space() {
        assert_eq!(squeezed("<input\n  id=\"a\"\n  hidden\n>"), "<input id=\"a\" hidden>");
        assert_eq!(squeezed("<path d=\"M0 4\"\n  fill=\"none\"\n/>"), "<path d=\"M0 4\" fill=\"none\"/>");
        assert_eq!(squeezed("<a\n  {%- if a %} b{% endif %}>"), "<a {%-\n if a %} b{% endif %}>");
        assert!(squeeze("<a>\n<a title=\"a\n b\">", LineBreaks::Drop).unwrap_err().starts_with("line 2: line break"));
    }

    #[test]
    fn template_tags_stay_on_their_lines_and_comments_go() {
        let template = "{% block a %}\n  <p>\n\n{# why\n #}{% if b == \"%}\" %}\n<pre>\n</pre>{{ c }}\n{% endif %}";
        let squeezed = squeezed(template);
        assert_eq!(squeezed, "{% block a %}<p>{%\n\n\n\n if b == \"%}\" %}<pre>\n</pre>{{\n c }}{%\n endif %}");
        for tag in ["block a", "if b", "{{", "endif"] {
            let line = |text: &str| text.split(tag).next().unwrap().matches('\n').count();
            let opening = usize::from(tag == "{{");
            assert_eq!(line(template), line(&squeezed) + opening, "{tag}");
        }
    }

    #[test]
    fn references_are_found() {
        let template = "{% extends \"a.html\" %}{%- import \"b/c.html\" as d -%}{% include \"e\" %}{% if \"f\" %}";
        assert_eq!(references(template).collect::<Vec<_>>(), ["a.html", "b/c.html", "e"]);
    }

    #[test]
    fn the_lines_of_a_mail_stay() {
        let mail = "<div>\n  <p>\n    {{ a }}\n  </p>\n  {%- for b in c %}\n    d\n  {%- endfor %}\n</div>\n";
        let kept = "<div>\n<p>\n{{ a }}\n</p>\n{%- for b in c %}\nd\n{%- endfor %}\n</div>\n";
        assert_eq!(squeeze(mail, LineBreaks::Keep).unwrap(), kept);
    }
}
