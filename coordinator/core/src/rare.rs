//! Boxed-if-set values: a value that is usually the default; the default needs no allocation.

use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Types with a shared default value.
pub(crate) trait Blank: Clone + PartialEq + 'static {
    /// Shared default value.
    const BLANK: &'static Self;
}

impl<T: Clone + PartialEq + 'static> Blank for Vec<T> {
    const BLANK: &'static Self = &Self::new();
}

/// Value on the heap, or the shared default. Serialized as the value itself. Mutable access allocates it.
#[derive(Debug, Clone)]
pub(crate) struct Rare<T>(Option<Box<T>>);

impl<T: Blank> Rare<T> {
    /// Takes the value and leaves the default.
    pub(crate) fn take(&mut self) -> T {
        self.0.take().map_or_else(|| T::BLANK.clone(), |own| *own)
    }
}

impl<T> Default for Rare<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Blank> From<T> for Rare<T> {
    fn from(value: T) -> Self {
        Self((value != *T::BLANK).then(|| Box::new(value)))
    }
}

impl<T: Blank> Deref for Rare<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::BLANK)
    }
}

impl<T: Blank> DerefMut for Rare<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_with(|| Box::new(T::BLANK.clone()))
    }
}

impl<T: Blank> PartialEq for Rare<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Blank + Eq> Eq for Rare<T> {}

impl<T: Blank + Serialize> Serialize for Rare<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        T::serialize(self, serializer)
    }
}

impl<'de, T: Blank + Deserialize<'de>> Deserialize<'de> for Rare<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_value_that_it_stands_for_in_memory_and_written() {
        let mut rare = Rare::<Vec<u8>>::default();
        assert!(rare.is_empty() && rare.0.is_none());
        rare.push(7);
        assert_eq!(*rare, [7]);
        let written = postcard::to_stdvec(&rare).unwrap();
        assert_eq!(written, postcard::to_stdvec(&vec![7_u8]).unwrap());
        assert_eq!(postcard::from_bytes::<Rare<Vec<u8>>>(&written).unwrap(), rare);
        assert_eq!((rare.take(), rare.0.is_none()), (vec![7], true));
        rare.push(7);
        rare.clear();
        assert_eq!(rare, Rare::from(Vec::new()));
    }
}
