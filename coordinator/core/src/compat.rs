//! Compatibility of stored records: fields that were added at the end, which older records lack.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// Reads a field at the end of a record, with its default if an older record ends before it.
///
/// Only a record that ends exactly where the field begins gives the default. A record that ends within the field is an
/// error, as are bytes that are no value of its type. A newer record that was cut exactly between two fields can't be
/// distinguished from an older one; the checksum that the store keeps of every record excludes that.
///
/// Fields of a type that is itself the last field of a record may grow in the same way: each new one needs this too.
pub(crate) fn or_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    // A tuple has no bytes of its own in postcard, so that the sequence begins where the field does.
    from.deserialize_tuple(1, TrailingField(PhantomData))
}

/// Reads a sequence of one element, or nothing at the end of the record.
struct TrailingField<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for TrailingField<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field or the end of the record")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut fields: A) -> Result<T, A::Error> {
        // Postcard withholds the size hint once fewer bytes are left than elements, which take at least one each.
        if fields.size_hint().is_none() {
            return Ok(T::default());
        }
        fields.next_element()?.ok_or_else(|| A::Error::invalid_length(0, &self))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Serialize};

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Record {
        id: u8,
        #[serde(deserialize_with = "super::or_default")]
        time: Option<u64>,
        #[serde(deserialize_with = "super::or_default")]
        names: BTreeMap<u8, String>,
        #[serde(deserialize_with = "super::or_default")]
        state: State,
    }

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    struct State {
        serial: u8,
        flag: bool,
    }

    fn record() -> Record {
        Record {
            id: 7,
            time: Some(300),
            names: BTreeMap::from([(1, "ann".to_owned())]),
            state: State { serial: 9, flag: true },
        }
    }

    #[test]
    fn a_record_that_ends_before_a_field_has_its_default_and_one_that_ends_within_is_damaged() {
        let bytes = postcard::to_allocvec(&record()).unwrap();
        let read = |length: usize| postcard::from_bytes::<Record>(&bytes[..length]);
        // Lengths: the id, the time of three bytes, the names of six, the state of two.
        let without_state = Record { state: State::default(), ..record() };
        let without_names = Record { names: BTreeMap::new(), state: State::default(), ..record() };
        let ends =
            [(12, record()), (10, without_state), (4, without_names), (1, Record { id: 7, ..Record::default() })];
        assert_eq!(bytes.len(), 12);
        for length in 0..=bytes.len() {
            match ends.iter().find(|(end, _)| *end == length) {
                Some((_, expected)) => assert_eq!(read(length).as_ref(), Ok(expected), "{length}"),
                None => assert_eq!(read(length), Err(postcard::Error::DeserializeUnexpectedEnd), "{length}"),
            }
        }
    }

    #[test]
    fn a_byte_that_is_no_value_of_the_field_is_an_error() {
        for (at, error) in [
            (1, postcard::Error::DeserializeBadOption),
            (8, postcard::Error::DeserializeBadUtf8),
            (11, postcard::Error::DeserializeBadBool),
        ] {
            let mut bytes = postcard::to_allocvec(&record()).unwrap();
            bytes[at] = 0xff;
            assert_eq!(postcard::from_bytes::<Record>(&bytes), Err(error), "byte {at}");
        }
    }
}
