//! Boxed-if-set values: a value that is usually the default; the default needs no allocation.

use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Types with a shared default value.
pub(crate) trait SharedDefault: Clone + PartialEq + 'static {
    /// Shared default value.
    const DEFAULT: &'static Self;
}

impl<T: Clone + PartialEq + 'static> SharedDefault for Vec<T> {
    const DEFAULT: &'static Self = &Self::new();
}

/// Value on the heap, or the shared default. Serialized as the value itself. Mutable access allocates it.
#[derive(Debug, Clone)]
pub(crate) struct BoxedIfSet<T>(Option<Box<T>>);

impl<T: SharedDefault> BoxedIfSet<T> {
    /// Takes the value and leaves the default.
    pub(crate) fn take(&mut self) -> T {
        self.0.take().map_or_else(|| T::DEFAULT.clone(), |own| *own)
    }
}

impl<T> Default for BoxedIfSet<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: SharedDefault> From<T> for BoxedIfSet<T> {
    fn from(value: T) -> Self {
        Self((value != *T::DEFAULT).then(|| Box::new(value)))
    }
}

impl<T: SharedDefault> Deref for BoxedIfSet<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::DEFAULT)
    }
}

impl<T: SharedDefault> DerefMut for BoxedIfSet<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_with(|| Box::new(T::DEFAULT.clone()))
    }
}

impl<T: SharedDefault> PartialEq for BoxedIfSet<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: SharedDefault + Eq> Eq for BoxedIfSet<T> {}

impl<T: SharedDefault + Serialize> Serialize for BoxedIfSet<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        T::serialize(self, serializer)
    }
}

impl<'de, T: SharedDefault + Deserialize<'de>> Deserialize<'de> for BoxedIfSet<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_equals_its_value_in_memory_and_serialized() {
        let mut rare = BoxedIfSet::<Vec<u8>>::default();
        assert!(rare.is_empty() && rare.0.is_none());
        rare.push(7);
        assert_eq!(*rare, [7]);
        let written = postcard::to_stdvec(&rare).unwrap();
        assert_eq!(written, postcard::to_stdvec(&vec![7_u8]).unwrap());
        assert_eq!(postcard::from_bytes::<BoxedIfSet<Vec<u8>>>(&written).unwrap(), rare);
        assert_eq!((rare.take(), rare.0.is_none()), (vec![7], true));
        rare.push(7);
        rare.clear();
        assert_eq!(rare, BoxedIfSet::from(Vec::new()));
    }
}
