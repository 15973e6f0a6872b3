//! Tests of forms as API bodies.

use parallax_core::patch::PatchField::{Absent, Invalid, Null, Value as Sent};

use super::*;
use crate::http::body_fields::field;
use crate::http::dashboard::form_encoding::MAX_FIELDS;

fn form(text: &str) -> Form {
    Form::parse(text.as_bytes()).unwrap()
}

fn object(value: Value) -> JsonObject {
    value.as_object().cloned().unwrap()
}

#[test]
fn a_text_is_absent_null_or_a_value() {
    let read = |text: &str| FormBody::new(&form(text)).text(field("note", ""));
    assert_eq!(read("other=1"), Absent);
    assert_eq!(read("note=+"), Absent, "a new record without it: its rule is that it is required");
    assert_eq!(read("note=a%0D%0Ab"), Sent("a\nb".to_owned()));
    assert_eq!(read("note=a&note=b"), Sent("b".to_owned()));
    let nullable = FormBody::new(&form("note=")).text(field("note", "").nullable());
    assert_eq!(nullable, Null);
    let current = object(json!({ "note": "a" }));
    let emptied = FormBody::change(&form("note="), &current).text(field("note", ""));
    assert_eq!(emptied, Sent(String::new()), "an existing record: its own rule refuses it");
}

#[test]
fn typed_numbers_and_ticks_get_their_types() {
    let body = form("port=+443+&share=99.5&ratio=many&on=false&on=true&off=false&odd=x");
    let mut fields = FormBody::new(&body);
    assert_eq!(fields.integer(field("port", "")), Sent(443));
    assert_eq!(fields.number(field("share", "")), Sent(99.5));
    assert_eq!(fields.number(field("ratio", "")), Invalid("must be a number".to_owned()));
    assert_eq!(fields.boolean(field("on", "")), Sent(true));
    assert_eq!(fields.boolean(field("off", "")), Sent(false));
    assert_eq!(fields.boolean(field("odd", "")), Invalid("must be true or false".to_owned()));
    assert_eq!(fields.boolean(field("none", "")), Absent);
}

#[test]
fn lists_and_maps_have_several_fields() {
    let body = form(
        "ids=&ids=mon_1&ids=mon_2&empty=&monitors=mon_1+major&monitors=mon_2&ms[europe]=250&ms[asia]=&\
         headers.key=Accept&headers.value=a+b&headers.key=&headers.value=&twice[a]=1&twice[a]=2",
    );
    let mut fields = FormBody::new(&body);
    assert_eq!(fields.ids(field("ids", ""), 9), Sent(vec!["mon_1".to_owned(), "mon_2".to_owned()]));
    assert_eq!(fields.ids(field("empty", "").nullable(), 9), Null);
    assert_eq!(fields.ids(field("empty", ""), 9), Sent(vec![]));
    assert_eq!(fields.ids(field("missing", ""), 9), Absent);
    let affected = vec![("mon_1".to_owned(), Some("major".to_owned())), ("mon_2".to_owned(), None)];
    assert_eq!(fields.affected_monitors(field("monitors", ""), 9), Sent(affected));
    assert!(matches!(fields.affected_monitors(field("monitors", ""), 1), Invalid(_)));
    assert_eq!(fields.region_integers(field("ms", ""), 1, 9), Sent([("europe".to_owned(), 250)].into()));
    assert_eq!(fields.string_map(field("headers", ""), 9), Sent(vec![("Accept".to_owned(), "a b".to_owned())]));
    assert!(matches!(fields.string_map(field("twice", ""), 9), Invalid(_)));
    assert_eq!(fields.string_map(field("missing", ""), 9), Absent);
}

#[test]
fn a_change_is_what_the_person_changed() {
    let drawn = object(json!({ "title": "Old", "impact": "none", "remind": ["1h"] }));
    let filled = |title: &str, impact: &str| {
        let mut form = Form::of([("title", title), ("impact", impact), ("remind", "1h")]);
        form.set(LOADED, loaded(&drawn));
        form
    };
    let read = |form: &Form, current: &JsonObject| {
        let mut fields = FormBody::change(form, current);
        let read = (
            fields.text(field("title", "")),
            fields.text(field("impact", "")),
            fields.strings(field("remind", "").nullable()),
        );
        (read, fields.into_conflicts())
    };
    let (unchanged, conflicts) = read(&filled("Old", "none"), &drawn);
    assert_eq!((unchanged, conflicts), ((Absent, Absent, Absent), vec![]));
    let (one, conflicts) = read(&filled("New", "none"), &drawn);
    assert_eq!((one, conflicts), ((Sent("New".to_owned()), Absent, Absent), vec![]));

    // Someone else saved meanwhile.
    let current = object(json!({ "title": "Theirs", "impact": "none", "remind": ["1h"] }));
    let (other_field, conflicts) = read(&filled("Old", "major"), &current);
    assert_eq!((other_field, conflicts), ((Absent, Sent("major".to_owned()), Absent), vec![]), "both changes stay");
    let (same, conflicts) = read(&filled("Theirs", "none"), &current);
    assert_eq!((same, conflicts), ((Absent, Absent, Absent), vec![]));
    let ((title, ..), conflicts) = read(&filled("Mine", "none"), &current);
    assert_eq!(title, Absent);
    let text = "Someone else set this to “Theirs” meanwhile. Save again to keep yours.";
    assert_eq!(conflicts, [FieldFault { field: "title".to_owned(), text: text.to_owned() }]);
    // Drawn again, the same text is a change.
    let again = filled("Mine", "none").redrawn(&FormRefusal::conflict(conflicts), &current, &stored(&current));
    assert_eq!(read(&again, &current).0.0, Sent("Mine".to_owned()));
}

/// Form of a record of texts.
fn stored(current: &JsonObject) -> Form {
    let mut form = Form::of(current.iter().map(|(name, value)| (name, value.as_str().unwrap_or_default())));
    form.set(LOADED, loaded(current));
    form
}

#[test]
fn a_form_drawn_again_keeps_what_each_person_changed() {
    let drawn = object(json!({ "title": "Old", "impact": "none", "note": "a" }));
    let theirs = object(json!({ "title": "Theirs", "impact": "major", "note": "a" }));
    let mut form = stored(&drawn);
    form.set("title", "Mine");
    form.set("note", "b");
    let read = |form: &Form, current: &JsonObject| {
        changed(form, current, |fields| ["title", "impact", "note"].map(|name| fields.text(field(name, ""))))
    };
    let refusal = read(&form, &theirs).unwrap_err();
    assert_eq!(refusal.conflicts().collect::<Vec<_>>(), ["title"]);
    let again = form.clone().redrawn(&refusal, &theirs, &stored(&theirs));
    assert_eq!(["title", "impact", "note"].map(|name| again.text(name)), ["Mine", "major", "b"]);
    // Saved again, it overwrites the field in conflict and no other.
    let mine = |text: &str| Sent(text.to_owned());
    assert_eq!(read(&again, &theirs).unwrap(), [mine("Mine"), Absent, mine("b")]);
    // A third person's change of the same field is another conflict, and one of an untouched field stays.
    let third = object(json!({ "title": "Third", "impact": "partial", "note": "a" }));
    let refusal = read(&again, &third).unwrap_err();
    assert_eq!(refusal.conflicts().collect::<Vec<_>>(), ["title"]);
    let again = again.redrawn(&refusal, &third, &stored(&third));
    assert_eq!(read(&again, &third).unwrap(), [mine("Mine"), Absent, mine("b")]);

    // So does a form that was refused for another reason, also one with the status of a conflict.
    let untouched = object(json!({ "title": "Old", "impact": "major", "note": "a" }));
    for refusal in [
        FormRefusal::of(ValidationErrors::single("note", "is wrong").into()).unwrap(),
        FormRefusal::conflict(Vec::new()),
    ] {
        let again = form.clone().redrawn(&refusal, &untouched, &stored(&untouched));
        assert_eq!(["title", "impact", "note"].map(|name| again.text(name)), ["Mine", "major", "b"]);
        assert_eq!(read(&again, &untouched).unwrap(), [mine("Mine"), Absent, mine("b")]);
    }
}

#[test]
fn a_field_is_drawn_again_with_all_its_parts() {
    let drawn = object(json!({ "periodMinutes": 60, "limits": { "asia": 1 }, "ids": ["a"], "hidden": "x" }));
    let current =
        object(json!({ "periodMinutes": 2880, "limits": { "asia": 2, "africa": 3 }, "ids": [], "hidden": "y" }));
    let mut typed = form("period=1&periodUnit=60&limits%5Basia%5D=1&limits%5Bafrica%5D=&ids=&ids=a&other=z");
    typed.set(LOADED, loaded(&drawn));
    let stored = form("period=2&periodUnit=1440&limits%5Basia%5D=2&limits%5Bafrica%5D=3&hidden=y");
    let again = typed.redrawn(&FormRefusal::conflict(Vec::new()), &current, &stored);
    assert_eq!((again.text("period"), again.text("periodUnit")), ("2", "1440"));
    assert_eq!((again.text("limits[asia]"), again.text("limits[africa]")), ("2", "3"));
    assert_eq!((again.has("ids"), again.text("other")), (false, "z"));
    // A field that the form doesn't have stays out, with the fingerprint that it was drawn with.
    let prints = parse_loaded(again.text(LOADED));
    assert!(!again.has("hidden") && prints["hidden"] == fingerprint("hidden", &json!("x")));
    assert_eq!(prints["limits"], fingerprint("limits", &current["limits"]));
}

#[test]
fn lists_whose_order_means_nothing_are_compared_as_sets() {
    let drawn = object(json!({ "monitorIds": ["c", "a"], "hosts": ["c", "a"] }));
    let current = object(json!({ "monitorIds": ["a", "c", "b"], "hosts": ["c", "a"] }));
    let read = |ids: &[&str], current: &JsonObject| {
        let mut form = Form::of(ids.iter().map(|id| ("monitorIds", *id)).chain([("hosts", "a"), ("hosts", "c")]));
        form.set(LOADED, loaded(&drawn));
        let mut fields = FormBody::change(&form, current);
        let read = (fields.ids(field("monitorIds", ""), 9), fields.strings(field("hosts", "")));
        (read, fields.into_conflicts().len())
    };
    let hosts = Sent(vec!["a".to_owned(), "c".to_owned()]);
    assert_eq!(read(&["a", "c"], &drawn), ((Absent, hosts.clone()), 0), "drawn in another order than stored");
    assert_eq!(read(&["a", "c"], &current), ((Absent, hosts.clone()), 0), "somebody else's change stays");
    assert_eq!(read(&["b", "c", "a"], &current), ((Absent, hosts.clone()), 0));
    assert_eq!(read(&["a"], &drawn), ((Sent(vec!["a".to_owned()]), hosts.clone()), 0));
    assert_eq!(read(&["a"], &current), ((Absent, hosts), 1));
    let reminders = object(json!({ "remind": ["3h", "1d"] }));
    let form = Form::of([("remind", "1d"), ("remind", "3h")]);
    assert_eq!(FormBody::change(&form, &reminders).strings(field("remind", "")), Absent, "presets are drawn first");
}

#[test]
fn a_form_is_drawn_with_what_was_typed() {
    let body =
        form("title=%3Cb%3E&monitors=a&monitors=b&notify=false&notify=true&form_token=old&idempotency_key=0a&loaded=x");
    let mut view = body.view("new");
    assert_eq!((view.token.as_str(), view.once.as_str(), view.loaded.as_str()), ("new", "0a", "x"));
    assert_eq!(view.value("title"), "<b>");
    assert!(view.is_chosen("monitors", "a") && view.is_chosen("monitors", "b") && !view.is_chosen("monitors", "c"));
    assert!(view.is_on("notify"));
    assert_eq!(form("").view("t").once.len(), 32, "a new form gets a key");
    let mut errors = ValidationErrors::single("title", "must be 1 to 120 characters");
    view.faults = faults(&errors);
    const LABELS: [(&str, &str); 2] = [("title", "Title"), ("headers", "Headers")];
    assert_eq!(view.fault("title"), "Must be 1 to 120 characters.");
    errors.add("headers[0].name", "is required");
    errors.add("status", "can't be changed: it is resolved");
    view.faults = faults(&errors);
    assert_eq!((view.fault("headers"), view.fault("head")), ("Is required.", ""));
    assert!(view.has_fault(&["url", "title"]) && !view.has_fault(&["url"]));
    let links = [("title", "Title"), ("headers", "Headers"), ("status", "status")];
    assert_eq!(view.fault_links(&LABELS), links.map(|(name, label)| (name.to_owned(), label.to_owned())));
    assert_eq!(view.other_faults(&LABELS), ["status: Can't be changed: it is resolved."]);
}

#[test]
fn a_form_has_a_maximum_of_fields() {
    assert!(Form::parse("a&".repeat(MAX_FIELDS).as_bytes()).is_ok());
    assert!(Form::parse("a&".repeat(MAX_FIELDS + 1).as_bytes()).is_err());
}
