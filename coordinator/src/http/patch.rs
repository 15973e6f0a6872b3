//! A field of a body as it was sent: left out, null, a value of the right kind, or of another.

use std::collections::BTreeMap;

use parallax_core::given::Given;
use serde_json::Value;

use super::json::Object;

/// Regions that a list or map of them may name before it is looked at.
const MAX_REGIONS: usize = 64;

/// A string.
pub(super) fn text(body: &Object, field: &str) -> Given<String> {
    given(body, field, "must be a string", |value| value.as_str().map(str::to_owned))
}

/// A whole number; `443.0` is one too.
pub(super) fn whole(body: &Object, field: &str) -> Given<i64> {
    given(body, field, "must be a whole number", as_whole)
}

/// A number.
pub(super) fn number(body: &Object, field: &str) -> Given<f64> {
    given(body, field, "must be a number", Value::as_f64)
}

/// True or false.
pub(super) fn flag(body: &Object, field: &str) -> Given<bool> {
    given(body, field, "must be true or false", Value::as_bool)
}

/// A list of region names.
pub(super) fn regions(body: &Object, field: &str) -> Given<Vec<String>> {
    given(body, field, "must be a list of regions", |value| {
        let items = value.as_array().filter(|items| items.len() <= MAX_REGIONS)?;
        items.iter().map(|item| item.as_str().map(str::to_owned)).collect()
    })
}

/// Region names with whole numbers.
pub(super) fn thresholds(body: &Object, field: &str) -> Given<BTreeMap<String, i64>> {
    given(body, field, "must be an object of regions and whole numbers", |value| {
        let items = value.as_object().filter(|items| items.len() <= MAX_REGIONS)?;
        items.iter().map(|(region, ms)| as_whole(ms).map(|ms| (region.clone(), ms))).collect()
    })
}

/// A list of texts.
pub(super) fn texts(body: &Object, field: &str) -> Given<Vec<String>> {
    given(body, field, "must be a list of strings", |value| {
        value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
    })
}

/// Affected monitors: objects with an id, and maybe an impact.
pub(super) fn affected(body: &Object, field: &str) -> Given<Vec<(String, Option<String>)>> {
    given(body, field, "must be a list of objects, each with the id of a monitor", |value| {
        let one = |item: &Value| {
            let impact = match item.get("impact") {
                None | Some(Value::Null) => None,
                Some(impact) => Some(impact.as_str()?.to_owned()),
            };
            Some((item.get("id")?.as_str()?.to_owned(), impact))
        };
        value.as_array()?.iter().map(one).collect()
    })
}

/// Names with texts.
pub(super) fn pairs(body: &Object, field: &str) -> Given<Vec<(String, String)>> {
    given(body, field, "must be an object of names and strings", |value| {
        value
            .as_object()?
            .iter()
            .map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned())))
            .collect()
    })
}

fn given<T>(body: &Object, field: &str, rule: &str, read: impl FnOnce(&Value) -> Option<T>) -> Given<T> {
    match body.get(field) {
        None => Given::Absent,
        Some(Value::Null) => Given::Null,
        Some(value) => read(value).map_or_else(|| Given::Wrong(rule.to_owned()), Given::Value),
    }
}

fn as_whole(value: &Value) -> Option<i64> {
    /// Whole numbers up to here are exact in a double.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    value.as_i64().or_else(|| {
        let number = value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() <= EXACT)?;
        Some(number as i64)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn body(value: Value) -> Object {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn fields_are_left_out_null_good_or_wrong() {
        let body = body(json!({ "n": null, "t": "x", "w": 443.0, "f": true, "d": 1.5, "o": { "asia": 5 } }));
        assert_eq!(text(&body, "missing"), Given::Absent);
        assert_eq!(text(&body, "n"), Given::Null);
        assert_eq!(text(&body, "t"), Given::Value("x".to_owned()));
        assert_eq!(whole(&body, "w"), Given::Value(443));
        assert_eq!(whole(&body, "d"), Given::Wrong("must be a whole number".to_owned()));
        assert_eq!(number(&body, "d"), Given::Value(1.5));
        assert_eq!(flag(&body, "f"), Given::Value(true));
        assert!(matches!(flag(&body, "t"), Given::Wrong(_)) && matches!(text(&body, "w"), Given::Wrong(_)));
        assert_eq!(thresholds(&body, "o"), Given::Value(BTreeMap::from([("asia".to_owned(), 5)])));
        assert!(
            matches!(regions(&body, "o"), Given::Wrong(_)) && matches!(pairs(&body, "o"), Given::Wrong(_))
        );
    }

    #[test]
    fn numbers_that_no_integer_holds_are_wrong() {
        let body = body(json!({ "u": u64::MAX, "e": 1e300, "s": "5" }));
        for field in ["u", "e", "s"] {
            assert!(matches!(whole(&body, field), Given::Wrong(_)), "{field}");
        }
    }
}
