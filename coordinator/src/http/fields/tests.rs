//! Tests of parsing fields and of building their schema.

use super::*;

fn body(value: Value) -> Object {
    value.as_object().cloned().unwrap_or_default()
}

fn of(name: &'static str) -> Field {
    field(name, "")
}

#[test]
fn fields_are_left_out_null_good_or_wrong() {
    let body = body(json!({ "n": null, "t": "x", "w": 443.0, "f": true, "d": 1.5, "o": { "asia": 5 } }));
    let mut body = &body;
    assert_eq!(body.text(of("missing")), Given::Absent);
    assert_eq!(body.text(of("n")), Given::Null);
    assert_eq!(body.text(of("t")), Given::Value("x".to_owned()));
    assert_eq!(body.whole(of("w")), Given::Value(443));
    assert_eq!(body.whole(of("d")), Given::Wrong("must be a whole number".to_owned()));
    assert_eq!(body.number(of("d")), Given::Value(1.5));
    assert_eq!(body.flag(of("f")), Given::Value(true));
    assert!(matches!(body.flag(of("t")), Given::Wrong(_)) && matches!(body.text(of("w")), Given::Wrong(_)));
    assert_eq!(body.thresholds(of("o"), 1, 9), Given::Value(BTreeMap::from([("asia".to_owned(), 5)])));
    assert!(matches!(body.regions(of("o")), Given::Wrong(_)));
    assert!(matches!(body.pairs(of("o"), 9), Given::Wrong(_)));
}

#[test]
fn numbers_that_no_integer_holds_are_wrong() {
    let body = body(json!({ "u": u64::MAX, "e": 1e300, "s": "5" }));
    for name in ["u", "e", "s"] {
        assert!(matches!((&mut &body).whole(of(name)), Given::Wrong(_)), "{name}");
    }
}

#[test]
fn a_description_names_what_is_asked_for() {
    let mut description = Description::default();
    let fields = &mut description;
    assert_eq!(fields.text(of("a").required().characters(1, 80)), Given::Absent);
    fields.text(field("b", "Which one").words(["x", "y"]).nullable().default("x"));
    fields.whole(of("c").from(1, 9).example(2));
    let expected = json!({
        "type": "object",
        "properties": {
            "a": { "type": "string", "minLength": 1, "maxLength": 80, "description": "" },
            "b": { "type": ["string", "null"], "enum": ["x", "y", null], "default": "x", "description": "Which one" },
            "c": { "type": "integer", "minimum": 1, "maximum": 9, "examples": [2], "description": "" },
        },
        "required": ["a"],
    });
    assert_eq!(Value::Object(description.schema()), expected);
}

#[test]
fn a_reader_is_known_by_the_names_that_it_asks_for() {
    let body = body(json!({ "a": 1, "b": 2 }));
    let mut asked = Asked::new(&body);
    assert_eq!(asked.whole(of("a")), Given::Value(1));
    assert_eq!(asked.text(of("c")), Given::Absent);
    assert_eq!(asked.names(), ["a", "c"]);
}
