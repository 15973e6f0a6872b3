//! Plain names: names that are safe in mails to people who did not ask for them.

/// Maximum length, in characters.
const MAX_CHARACTERS: usize = 40;
/// Maximum number of words: with a fourth, a sentence is possible ("Your account is locked").
const MAX_WORDS: usize = 3;
/// Maximum length of a word: a longer one is several words without spaces.
const MAX_WORD: usize = 20;
/// Maximum number of digits: enough for a year, too few for a telephone number.
const MAX_DIGITS: usize = 4;
/// Maximum number of characters of scripts without spaces between words.
const MAX_UNSPACED: usize = 12;
/// Words that begin a URL.
const ADDRESS_WORDS: [&str; 4] = ["http", "https", "www", "mailto"];

/// Returns true if the text can only be a name: a few words of letters, no address, telephone number or
/// sentence. A page's owner chooses the page's name, and a mail with it goes to any address that they enter,
/// which spammers would exploit.
pub fn is_plain_name(text: &str) -> bool {
    let words = || text.split_whitespace();
    let count = |is: fn(char) -> bool| text.chars().filter(|sign| is(*sign)).count();
    let is_word = |word: &str| {
        let lower = word.to_lowercase();
        word.chars().count() <= MAX_WORD && !ADDRESS_WORDS.contains(&lower.as_str())
    };
    text.chars().any(char::is_alphanumeric)
        && text.chars().all(is_name_character)
        && text.chars().count() <= MAX_CHARACTERS
        && (1..=MAX_WORDS).contains(&words().count())
        && words().all(is_word)
        && count(char::is_numeric) <= MAX_DIGITS
        && count(is_unspaced) <= MAX_UNSPACED
}

/// Characters that names may contain. Dots, colons, slashes, `@` and sentence endings, in any width, are not
/// among them.
fn is_name_character(sign: char) -> bool {
    sign.is_alphanumeric() || matches!(sign, ' ' | '-' | '\'' | '’' | '&' | '+' | '(' | ')')
}

/// Characters of scripts that are written without spaces between words.
const fn is_unspaced(sign: char) -> bool {
    matches!(sign,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
        | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9f}' | '\u{20000}'..='\u{323af}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_address_number_or_sentence() {
        for (text, is_name) in [
            ("Acme", true),
            ("Acme Cloud Status", true),
            ("O'Neil & Söhne", true),
            ("Region 2026", true),
            ("Acme (EU)", true),
            ("東京ステータス", true),
            ("Page under test", true),
            ("", false),
            ("()", false),
            ("evil.example", false),
            ("evil。example", false),
            ("evil．example", false),
            ("www evil example", false),
            ("HTTPS evil", false),
            ("https://evil.example", false),
            ("evil/pay", false),
            ("ann@example", false),
            ("Call 0800 123456", false),
            ("Call ٠٨٠٠١٢", false),
            ("Your account is locked", false),
            ("You won!", false),
            ("Pay now, please", false),
            ("Locked: Acme", false),
            ("Acme\u{200b}Status", false),
            ("PayYourBillNowOrLoseIt", false),
            ("あなたの口座は凍結されました", false),
            ("Aaaaaaaaaaaaaaaaaaa Bbbbbbbbbbbbbbbbbbb Cc", false),
        ] {
            assert_eq!(is_plain_name(text), is_name, "{text:?}");
        }
    }
}
