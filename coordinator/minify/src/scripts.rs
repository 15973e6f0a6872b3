//! Minified scripts: without comments and layout, and with short names for what a script declares for itself.

use std::collections::{HashMap, HashSet};

use minifier::js::{Keyword, Operation, ReservedChar as Char, Token, clean_tokens, tokenize};

/// Minifies a script. Two files that are served as one script are minified apart, since names are shortened per file.
pub(crate) fn minify(source: &str) -> Result<String, String> {
    let tokens = tokenize(source)?.apply(clean_tokens);
    if let Some(sign) = tokens.windows(2).find_map(doubled_sign) {
        return Err(format!(
            "`{sign}{sign}` and `{sign} {sign}` can't be told apart: write `{sign}= 1`, or parentheses"
        ));
    }
    let uses = Uses::of(&tokens);
    let mut fresh = fresh_names(&uses.words);
    let short: HashMap<&str, String> =
        uses.own.iter().filter_map(|name| Some((*name, fresh.next().filter(|it| it.len() < name.len())?))).collect();
    let renamed: Vec<Token<'_>> = tokens
        .iter()
        .enumerate()
        .map(|(at, token)| match token {
            Token::Other(name) if !is_property(&tokens, at) => {
                Token::Other(short.get(name).map_or(*name, String::as_str))
            }
            _ => token.clone(),
        })
        .collect();
    Ok(minifier::js::Tokens::from(renamed).to_string())
}

/// Returns the sign if both tokens are the same one. The tokens don't say whether there was a space between them.
fn doubled_sign(pair: &[Token<'_>]) -> Option<&'static str> {
    let both = |sign| pair.iter().all(|token| token.eq_operation(sign));
    if both(Operation::Addition) {
        return Some("+");
    }
    both(Operation::Subtract).then_some("-")
}

struct Uses<'a> {
    /// Names that can be shortened, most frequent first: those that the function around the script declares. Its scope
    /// is the whole file, so every use of such a name means this declaration or one that may have the same new name.
    own: Vec<&'a str>,
    /// All words of the script.
    words: HashSet<&'a str>,
}

impl<'a> Uses<'a> {
    fn of(tokens: &[Token<'a>]) -> Self {
        let mut brackets = Vec::new();
        let mut declared: HashMap<&str, usize> = HashMap::new();
        let mut counts: HashMap<&str, usize> = HashMap::new();
        let mut words = HashSet::new();
        let mut fixed = HashSet::new();
        for (at, token) in tokens.iter().enumerate() {
            match token {
                Token::Char(opening @ (Char::OpenCurlyBrace | Char::OpenParenthese | Char::OpenBracket)) => {
                    brackets.push(*opening);
                }
                Token::Char(Char::CloseCurlyBrace | Char::CloseParenthese | Char::CloseBracket) => {
                    brackets.pop();
                }
                // Expressions in template literals are not taken apart.
                Token::String(text) => {
                    let is_template = text.starts_with('`');
                    let found = text.split(|it: char| !is_word(it)).filter(|word| !word.is_empty());
                    words.extend(found.clone());
                    fixed.extend(found.filter(|_| is_template));
                }
                Token::Other(name) => {
                    words.insert(name);
                    // A name in `{ name }` is a property, too.
                    let ends = |token: Option<&Token<'_>>, bracket| {
                        token.is_some_and(|it| it.eq_char(Char::Comma) || it.eq_char(bracket))
                    };
                    let is_shorthand = brackets.last() == Some(&Char::OpenCurlyBrace)
                        && ends(before(tokens, at), Char::OpenCurlyBrace)
                        && ends(tokens.get(at + 1), Char::CloseCurlyBrace);
                    if is_shorthand {
                        fixed.insert(*name);
                    }
                    let is_declared = before(tokens, at)
                        .is_some_and(|it| matches!(it, Token::Keyword(Keyword::Const | Keyword::Let)));
                    if is_declared && brackets == [Char::OpenParenthese, Char::OpenCurlyBrace] {
                        declared.insert(name, at);
                    }
                    if !is_property(tokens, at) {
                        *counts.entry(name).or_default() += 1;
                    }
                }
                _ => {}
            }
        }
        let mut own: Vec<&str> = declared.keys().copied().filter(|name| !fixed.contains(name)).collect();
        own.sort_by_key(|name| (std::cmp::Reverse(counts[name]), declared[name]));
        Self { own, words }
    }
}

fn before<'t>(tokens: &'t [Token<'t>], at: usize) -> Option<&'t Token<'t>> {
    tokens.get(at.checked_sub(1)?)
}

/// Returns whether a name is a property: it follows a dot that is not part of `...`, or is a key before a colon.
fn is_property(tokens: &[Token<'_>], at: usize) -> bool {
    let is = |back: usize, wanted: Char| {
        at.checked_sub(back).and_then(|at| tokens.get(at)).is_some_and(|it| it.eq_char(wanted))
    };
    let is_key = tokens.get(at + 1).is_some_and(|it| it.eq_char(Char::Colon))
        && (is(1, Char::Comma) || is(1, Char::OpenCurlyBrace));
    is_key || (is(1, Char::Dot) && !is(2, Char::Dot))
}

/// Names of one and two letters that do not occur in a script.
fn fresh_names(words: &HashSet<&str>) -> impl Iterator<Item = String> {
    let letters = || ('a'..='z').chain('A'..='Z');
    let pairs = letters().flat_map(move |first| letters().map(move |second| format!("{first}{second}")));
    let names = letters().map(String::from).chain(pairs);
    names
        .filter(|name| !words.contains(name.as_str()) && !["as", "do", "if", "in", "is", "of"].contains(&name.as_str()))
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '$'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minified(script: &str) -> String {
        minify(script).unwrap()
    }

    #[test]
    fn layout_and_comments_go_and_text_stays() {
        let script = "(() => {\n  // why\n  f(\"a  // b\", `c\n  ${d} e`, /x y/);\n  return a - b;\n})();\n";
        assert_eq!(minified(script), "(()=>{f(\"a  // b\",`c\n  ${d} e`,/x y/);return a-b;})();");
        assert!(minify("f(a - -b)").unwrap_err().contains("parentheses"));
        assert!(minify("a++").is_err());
    }

    #[test]
    fn names_of_the_script_are_shortened_everywhere() {
        let script =
            "(() => { const total = 1; let other = total; const add = (by) => other + total + by; add(total); })();";
        assert_eq!(minified(script), "(()=>{const a=1;let b=a;const c=(by)=>b+a+by;c(a);})();");
    }

    #[test]
    fn properties_and_what_others_see_keep_their_names() {
        for kept in [
            "(()=>{const total=1;f({total});})();",
            "(()=>{const total=1;f(`${total}`);})();",
            "(()=>{const{total}=f;g(total);})();",
            "const total=(()=>{return 1;})();",
            "(()=>{f((total)=>{const inner=total;return inner;});})();",
        ] {
            assert_eq!(minified(kept), kept);
        }
        let script = "(()=>{const total=[1];f(it.total,it?.total,{total:2},[...total],it?total:1);})();";
        assert_eq!(minified(script), "(()=>{const a=[1];f(it.total,it?.total,{total:2},[...a],it?a:1);})();");
    }
}
