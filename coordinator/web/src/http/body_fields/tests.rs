//! Tests of parsing fields and of building their schema.

use super::*;

fn body(value: Value) -> JsonObject {
    value.as_object().cloned().unwrap_or_default()
}

fn of(name: &'static str) -> FieldSpec {
    field(name, "")
}

#[test]
fn a_field_is_absent_null_valid_or_invalid() {
    let body = body(json!({ "n": null, "t": "x", "w": 443.0, "f": true, "d": 1.5, "o": { "asia": 5 } }));
    let mut body = &body;
    assert_eq!(body.text(of("missing")), PatchField::Absent);
    assert_eq!(body.text(of("n")), PatchField::Null);
    assert_eq!(body.text(of("t")), PatchField::Value("x".to_owned()));
    assert_eq!(body.integer(of("w")), PatchField::Value(443));
    assert_eq!(body.integer(of("d")), PatchField::Invalid("must be a whole number".to_owned()));
    assert_eq!(body.number(of("d")), PatchField::Value(1.5));
    assert_eq!(body.boolean(of("f")), PatchField::Value(true));
    assert!(
        matches!(body.boolean(of("t")), PatchField::Invalid(_)) && matches!(body.text(of("w")), PatchField::Invalid(_))
    );
    assert_eq!(body.region_integers(of("o"), 1, 9), PatchField::Value(BTreeMap::from([("asia".to_owned(), 5)])));
    assert!(matches!(body.regions(of("o")), PatchField::Invalid(_)));
    assert!(matches!(body.string_map(of("o"), 9), PatchField::Invalid(_)));
}

#[test]
fn numbers_out_of_range_of_integers_are_invalid() {
    let body = body(json!({ "u": u64::MAX, "e": 1e300, "s": "5" }));
    for name in ["u", "e", "s"] {
        assert!(matches!((&mut &body).integer(of(name)), PatchField::Invalid(_)), "{name}");
    }
}

#[test]
fn a_description_lists_the_fields_that_are_read() {
    let mut description = SchemaBuilder::default();
    let fields = &mut description;
    assert_eq!(fields.text(of("a").required().length(1, 80)), PatchField::Absent);
    fields.text(field("b", "Which one").one_of(["x", "y"]).nullable().default("x"));
    fields.integer(of("c").range(1, 9).example(2));
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
fn the_names_of_the_fields_read_are_recorded() {
    let body = body(json!({ "a": 1, "b": 2 }));
    let mut fields = RecordedFields::new(&body);
    assert_eq!(fields.integer(of("a")), PatchField::Value(1));
    assert_eq!(fields.text(of("c")), PatchField::Absent);
    assert_eq!(fields.names(), ["a", "c"]);
}
