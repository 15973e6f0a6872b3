//! Texts in the languages of pages, one catalogue per language: what a page says, and what mails to visitors and
//! subscribers say.
//!
//! Core's `Locale` has the rest: formats, names of regions and states, and the texts of automatic incidents, which are
//! rules because the texts are stored. Begin with [`page_messages::messages`].

pub mod mail_messages;
pub mod page_messages;
