//! Lenient parsing of vendors' documents: a field that is null, missing or of another type invalidates
//! nothing else. Fields that identify the product are parsed strictly in its reader.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

use super::id_text;

/// Parses a document that is an object, with or without a byte order mark; returns `None` for anything else.
pub(super) fn object<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    parsed(body, '{')
}

/// Parses a document that is a list, with unreadable items as in [`entries`]; returns `None` for anything
/// else.
pub(super) fn items<T: DeserializeOwned>(body: &[u8]) -> Option<Vec<T>> {
    parsed::<LenientList<LenientItem<T>>>(body, '[').map(|list| unwrap_items(list.0))
}

/// Decodes and parses a document. A byte order mark selects UTF-16 of either order; without one it is UTF-8.
/// The first character is checked, since serde would accept a list for an object, too.
fn parsed<T: DeserializeOwned>(body: &[u8], first: char) -> Option<T> {
    let text = encoding_rs::UTF_8.decode(body).0;
    text.trim_start().starts_with(first).then(|| serde_json::from_str(&text).ok()).flatten()
}

/// Reads a text, or a number as text; empty for anything else.
pub(super) fn text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(some_text(from)?.unwrap_or_default())
}

/// Reads a text, or a number as text; `None` for anything else.
pub(super) fn some_text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(id_text(&Value::deserialize(from)?))
}

/// Reads a number, or a text with one; `None` for anything else.
pub(super) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    Ok(some_text(from)?.and_then(|text| text.trim().parse().ok()))
}

/// Returns true only for a plain `true`.
pub(super) fn flag<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Ok(Value::deserialize(from)? == Value::Bool(true))
}

/// Reads the value, including null: `None` means that the field is missing.
pub(super) fn value<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// Reads an object; null becomes the default.
///
/// # Errors
/// An error for anything else: it is another document.
pub(super) fn nullable<'de, D: Deserializer<'de>, T>(from: D) -> Result<T, D::Error>
where
    T: DeserializeOwned + Default,
{
    match Value::deserialize(from)? {
        Value::Null => Ok(T::default()),
        value @ Value::Object(_) => T::deserialize(value).map_err(D::Error::custom),
        _ => Err(D::Error::custom("not an object")),
    }
}

/// Reads the readable items; none if it is not a list.
pub(super) fn list<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Vec<T>, D::Error> {
    LenientList::deserialize(from).map(|list| list.0)
}

/// Reads the readable items.
///
/// # Errors
/// An error if it is not a list: the document has nothing else to read.
pub(super) fn whole_list<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Vec<T>, D::Error> {
    from.deserialize_seq(Items(PhantomData)).map(|list| list.0)
}

/// Reads the items of a list whose count or states matter: an unreadable one becomes an empty object, which
/// has no name and no known state. No items if it is not a list.
pub(super) fn entries<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Vec<T>, D::Error> {
    list(from).map(unwrap_items)
}

/// Reads the items of a list as [`entries`] does.
///
/// # Errors
/// An error if it is not a list: the document has nothing else to read.
pub(super) fn whole_entries<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Vec<T>, D::Error> {
    whole_list(from).map(unwrap_items)
}

/// An item, or the value of an empty object.
#[derive(Debug)]
struct LenientItem<T>(T);

impl<'de, T: DeserializeOwned> Deserialize<'de> for LenientItem<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let item = T::deserialize(Value::deserialize(from)?);
        item.or_else(|_| T::deserialize(Value::Object(Map::new()))).map(Self).map_err(D::Error::custom)
    }
}

fn unwrap_items<T>(entries: Vec<LenientItem<T>>) -> Vec<T> {
    entries.into_iter().map(|entry| entry.0).collect()
}

/// A list without its unreadable items.
#[derive(Debug)]
pub(super) struct LenientList<T>(pub(super) Vec<T>);

impl<'de, T: DeserializeOwned> Deserialize<'de> for LenientList<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Anything(PhantomData))
    }
}

/// Visitor for a list only.
struct Items<T>(PhantomData<T>);

impl<'de, T: DeserializeOwned> Visitor<'de> for Items<T> {
    type Value = LenientList<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<LenientList<T>, A::Error> {
        let mut items = Vec::new();
        // One at a time: a list with years of incidents is not in memory twice.
        while let Some(item) = seq.next_element::<Value>()? {
            items.extend(T::deserialize(item));
        }
        Ok(LenientList(items))
    }
}

/// Visitor for a list; anything else becomes an empty one.
struct Anything<T>(PhantomData<T>);

impl<'de, T: DeserializeOwned> Visitor<'de> for Anything<T> {
    type Value = LenientList<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<LenientList<T>, A::Error> {
        Items(PhantomData).visit_seq(seq)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LenientList<T>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(LenientList(Vec::new()))
    }

    fn visit_unit<E>(self) -> Result<LenientList<T>, E> {
        Ok(LenientList(Vec::new()))
    }

    fn visit_bool<E>(self, _: bool) -> Result<LenientList<T>, E> {
        Ok(LenientList(Vec::new()))
    }

    fn visit_i64<E>(self, _: i64) -> Result<LenientList<T>, E> {
        Ok(LenientList(Vec::new()))
    }

    fn visit_u64<E>(self, _: u64) -> Result<LenientList<T>, E> {
        Ok(LenientList(Vec::new()))
    }

    fn visit_f64<E>(self, _: f64) -> Result<LenientList<T>, E> {
        Ok(LenientList(Vec::new()))
    }

    fn visit_str<E>(self, _: &str) -> Result<LenientList<T>, E> {
        Ok(LenientList(Vec::new()))
    }
}
