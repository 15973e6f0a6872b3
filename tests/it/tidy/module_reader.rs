//! Reads the modules of one file: definitions, imports, and every path in code and in the strings of attributes,
//! without the parts built for tests.

use proc_macro2::{Literal, TokenStream, TokenTree};
use syn::visit::{self, Visit};

use super::module_tree::{Module, NamePath};

/// A module that a file declares and that has a file of its own.
#[derive(Debug)]
pub(super) struct ChildModule {
    /// Its path from the root of the crate.
    pub(super) path: NamePath,
    /// Files in which it may be.
    pub(super) candidates: [String; 2],
}

/// Reads a file whose module has the path `path`. Returns its modules (itself and those inline) and the others that it
/// declares.
pub(super) fn read_file(file: &str, path: &NamePath, text: &str) -> (Vec<(NamePath, Module)>, Vec<ChildModule>) {
    let parsed = syn::parse_file(text).unwrap_or_else(|error| panic!("{file}: {error}"));
    let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
    let folder = match name {
        "lib.rs" | "main.rs" | "mod.rs" => folder.to_owned(),
        _ => file.trim_end_matches(".rs").to_owned(),
    };
    let module = Module { file: file.to_owned(), ..Module::default() };
    let mut reader = FileReader { path: path.clone(), folder, module, finished: Vec::new(), children: Vec::new() };
    reader.visit_file(&parsed);
    reader.finished.push((reader.path, reader.module));
    (reader.finished, reader.children)
}

/// Visits a file; `path`, `folder` and `module` are those of the module that is being visited.
struct FileReader {
    path: NamePath,
    folder: String,
    module: Module,
    finished: Vec<(NamePath, Module)>,
    children: Vec<ChildModule>,
}

impl FileReader {
    fn read_module(&mut self, item: &syn::ItemMod) {
        let name = item.ident.to_string();
        let path = [self.path.as_slice(), std::slice::from_ref(&name)].concat();
        let folder = format!("{}/{name}", self.folder);
        let Some((_, items)) = &item.content else {
            let candidates = [format!("{folder}.rs"), format!("{folder}/mod.rs")];
            return self.children.push(ChildModule { path, candidates });
        };
        let module = Module { file: self.module.file.clone(), ..Module::default() };
        let outer = (
            std::mem::replace(&mut self.path, path),
            std::mem::replace(&mut self.folder, folder),
            std::mem::replace(&mut self.module, module),
        );
        items.iter().for_each(|item| self.visit_item(item));
        let path = std::mem::replace(&mut self.path, outer.0);
        self.folder = outer.1;
        self.finished.push((path, std::mem::replace(&mut self.module, outer.2)));
    }

    /// Reads the tree of a `use`: `before` is the path to this part of it.
    fn read_use(&mut self, tree: &syn::UseTree, before: &[String], is_reexport: bool) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(part) => self.read_use(&part.tree, &with(&part.ident), is_reexport),
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|part| self.read_use(part, before, is_reexport));
            }
            syn::UseTree::Name(leaf) => self.add_import(with(&leaf.ident), None, is_reexport),
            syn::UseTree::Rename(leaf) => {
                self.add_import(with(&leaf.ident), Some(leaf.rename.to_string()), is_reexport);
            }
            syn::UseTree::Glob(_) => {
                if !is_reexport {
                    self.module.glob_uses.push(before.to_vec());
                }
                self.module.globs.push(before.to_vec());
            }
        }
    }

    fn add_import(&mut self, mut path: NamePath, name: Option<String>, is_reexport: bool) {
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        if !is_reexport {
            self.module.uses.push(path.clone());
        }
        if let Some(name) = name.or_else(|| path.last().cloned()) {
            self.module.imports.entry(name).or_default().push(path);
        }
    }

    fn add_path(&mut self, path: NamePath) {
        // A single name is local, or the name of an import, which is counted where it is imported.
        if path.len() > 1 {
            self.module.uses.push(path);
        }
    }

    /// Reads the paths in a macro's arguments, which have no grammar of their own.
    fn read_tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut colons) = (NamePath::new(), 0);
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.add_path(std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                other => {
                    self.add_path(std::mem::take(&mut path));
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.read_tokens(group.stream());
                    }
                }
            }
        }
        self.add_path(path);
    }

    /// Reads the paths in strings of an attribute's arguments, as in `#[serde(with = "module::function")]`. Other
    /// strings, such as a reason, are no type.
    fn read_strings(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Literal(literal) => {
                    if let Some(named) = type_in(&literal) {
                        self.visit_type(&named);
                    }
                }
                TokenTree::Group(group) => self.read_strings(group.stream()),
                TokenTree::Ident(_) | TokenTree::Punct(_) => {}
            }
        }
    }
}

/// Returns the type or the path that a string names.
fn type_in(literal: &Literal) -> Option<syn::Type> {
    let text = syn::parse_str::<syn::LitStr>(&literal.to_string()).ok()?.value();
    if text.contains("::") { syn::parse_str(&text).ok() } else { None }
}

impl<'ast> Visit<'ast> for FileReader {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let (attributes, name) = attributes_and_name(item);
        if attributes.iter().any(is_for_tests) {
            return;
        }
        match item {
            syn::Item::Use(item) => {
                self.read_use(&item.tree, &[], !matches!(item.vis, syn::Visibility::Inherited));
            }
            syn::Item::Mod(item) => self.read_module(item),
            _ => {
                self.module.definitions.extend(name.map(ToString::to_string));
                visit::visit_item(self, item);
            }
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !item.attrs.iter().any(is_for_tests) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !field.attrs.iter().any(is_for_tests) {
            visit::visit_field(self, field);
        }
    }

    fn visit_field_value(&mut self, field: &'ast syn::FieldValue) {
        if !field.attrs.iter().any(is_for_tests) {
            visit::visit_field_value(self, field);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.add_path(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.read_tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }

    fn visit_meta_list(&mut self, list: &'ast syn::MetaList) {
        self.read_tokens(list.tokens.clone());
        self.read_strings(list.tokens.clone());
    }
}

/// Returns true for a `cfg` that only tests satisfy.
fn is_for_tests(attribute: &syn::Attribute) -> bool {
    let syn::Meta::List(list) = &attribute.meta else { return false };
    let words = list.tokens.to_string();
    let has = |word: &str| words.split(|c: char| !c.is_alphanumeric() && c != '_').any(|part| part == word);
    list.path.is_ident("cfg") && has("test") && !has("not")
}

fn attributes_and_name(item: &syn::Item) -> (&[syn::Attribute], Option<&syn::Ident>) {
    use syn::Item;
    match item {
        Item::Const(it) => (&it.attrs, Some(&it.ident)),
        Item::Enum(it) => (&it.attrs, Some(&it.ident)),
        Item::Fn(it) => (&it.attrs, Some(&it.sig.ident)),
        Item::Macro(it) => (&it.attrs, it.ident.as_ref()),
        Item::Static(it) => (&it.attrs, Some(&it.ident)),
        Item::Struct(it) => (&it.attrs, Some(&it.ident)),
        Item::Trait(it) => (&it.attrs, Some(&it.ident)),
        Item::TraitAlias(it) => (&it.attrs, Some(&it.ident)),
        Item::Type(it) => (&it.attrs, Some(&it.ident)),
        Item::Union(it) => (&it.attrs, Some(&it.ident)),
        Item::ExternCrate(it) => (&it.attrs, None),
        Item::ForeignMod(it) => (&it.attrs, None),
        Item::Impl(it) => (&it.attrs, None),
        Item::Mod(it) => (&it.attrs, None),
        Item::Use(it) => (&it.attrs, None),
        _ => (&[], None),
    }
}
