//! Changed fields of a record, collected one after the other.

use parallax_core::audit::{AuditField, MAX_VALUE};

/// The changed fields of a record.
#[derive(Debug, Default)]
pub(super) struct ChangedFields(Vec<AuditField>);

impl ChangedFields {
    pub(super) fn into_fields(self) -> Vec<AuditField> {
        self.0
    }

    /// Notes a field with its values, if it changed.
    pub(super) fn shown<T: PartialEq>(
        &mut self,
        name: &str,
        (old, new): (&T, &T),
        text: impl Fn(&T) -> String,
    ) -> &mut Self {
        if old != new {
            self.0.push(AuditField { name: name.to_owned(), values: Some((text(old), text(new))) });
        }
        self
    }

    /// Notes what was removed from a list, and what was added to it. The whole list is too long for an entry, which would
    /// cut the end: where new things are.
    pub(super) fn listed<T: PartialEq>(
        &mut self,
        name: &str,
        (old, new): (&[T], &[T]),
        text: impl Fn(&T) -> &str,
    ) -> &mut Self {
        let only = |of: &[T], others: &[T]| {
            names_text(of.iter().filter(|it| !others.contains(it)).map(&text).collect::<Vec<_>>().as_slice())
        };
        let (removed, added) = (only(old, new), only(new, old));
        if !removed.is_empty() || !added.is_empty() {
            let name = format!("{name} (removed → added)");
            self.0.push(AuditField { name, values: Some((removed, added)) });
        }
        self
    }

    /// Notes a field without its values, if it changed.
    pub(super) fn hidden<T: PartialEq>(&mut self, name: &str, (old, new): (&T, &T)) -> &mut Self {
        if old != new {
            self.0.push(AuditField { name: name.to_owned(), values: None });
        }
        self
    }
}

/// Names as far as they have room in an entry, and the number of the others.
fn names_text(names: &[&str]) -> String {
    let whole = names.join(", ");
    if whole.chars().count() <= MAX_VALUE || names.len() < 2 {
        return whole;
    }
    let shown = |count: usize| format!("{} and {} more", names[..count].join(", "), names.len() - count);
    let fits = |count: &usize| shown(*count).chars().count() <= MAX_VALUE;
    // Where even one is too long, the entry cuts it.
    shown((1..names.len()).rev().find(fits).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Item<'a> = (u8, &'a str);

    fn change(old: &[Item<'_>], new: &[Item<'_>]) -> Option<(String, String)> {
        let mut changed = ChangedFields::default();
        changed.listed("Passkeys", (old, new), |(_, name)| name);
        let mut fields = changed.into_fields();
        assert!(fields.len() < 2 && fields.iter().all(|it| it.name == "Passkeys (removed → added)"), "{fields:?}");
        fields.pop().and_then(|field| field.values)
    }

    #[test]
    fn a_change_of_a_long_list_is_its_difference() {
        let names: Vec<String> = (0..20).map(|number| format!("{number:02} {}", "long name ".repeat(5))).collect();
        let all: Vec<Item<'_>> = names.iter().zip(0..).map(|(name, number)| (number, name.as_str())).collect();
        let values = |old: &str, new: &str| Some((old.to_owned(), new.to_owned()));
        assert_eq!(change(&all[..19], &all), values("", &names[19]));
        assert_eq!(change(&all, &all[1..]), values(&names[0], ""));
        assert_eq!(change(&[(1, "Key"), (2, "Key")], &[(2, "Key")]), values("Key", ""));
        assert_eq!(change(&[(1, "Phone"), (2, "Key")], &[(1, "Old phone"), (2, "Key")]), values("Phone", "Old phone"));
        assert_eq!(change(&all, &all), None);
        let (removed, added) = change(&all, &[]).unwrap();
        assert_eq!((removed, added), (format!("{}, {} and 18 more", names[0], names[1]), String::new()));
        // Even the first is too long: the entry cuts it.
        let long = "a".repeat(MAX_VALUE + 1);
        assert_eq!(change(&[(1, &long), (2, "b")], &[]), values(&format!("{long} and 1 more"), ""));
    }
}
