//! The rules that every engine keeps, run on each.
