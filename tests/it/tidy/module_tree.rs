//! The modules of a crate as its files write them, and the file that a path leads to.

use std::collections::{BTreeMap, BTreeSet};

use super::module_reader::read_file;

/// A path of modules and at last an item, as written or from the root of the crate.
pub(super) type NamePath = Vec<String>;

/// One module: a file, or a part of one.
#[derive(Debug, Default)]
pub(super) struct Module {
    /// Path of the file.
    pub(super) file: String,
    /// Names of the items that it defines.
    pub(super) definitions: BTreeSet<String>,
    /// Paths of what it imports, by the name in it: a module and a function may share one.
    pub(super) imports: BTreeMap<String, Vec<NamePath>>,
    /// Modules of which it imports everything.
    pub(super) globs: Vec<NamePath>,
    /// Paths that it uses. A re-export is none: it leads the module's users to the definition.
    pub(super) uses: Vec<NamePath>,
    /// Modules of which it imports everything for its own use.
    pub(super) glob_uses: Vec<NamePath>,
}

/// Every module of a crate that is not built for tests only.
#[derive(Debug, Default)]
pub(super) struct ModuleTree {
    /// Modules by their path from the root of the crate.
    pub(super) modules: BTreeMap<NamePath, Module>,
    /// Module path of each file.
    paths: BTreeMap<String, NamePath>,
}

/// A use of an item of another file.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileUse {
    /// File that uses the item.
    pub(super) from: String,
    /// File that defines it.
    pub(super) to: String,
    /// Name of the item; `*` for everything.
    pub(super) name: String,
}

impl ModuleTree {
    /// Reads the crate whose root is the file `root`; `read` returns the text of a file, if there is one.
    pub(super) fn read(root: &str, read: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut tree = Self::default();
        let mut waiting = vec![(NamePath::new(), root.to_owned())];
        while let Some((path, file)) = waiting.pop() {
            let text = read(&file).unwrap_or_else(|| panic!("{file} can be read"));
            tree.paths.insert(file.clone(), path.clone());
            let (modules, children) = read_file(&file, &path, &text);
            tree.modules.extend(modules);
            for child in children {
                // A file that is not there is written by the build script.
                let found = child.candidates.into_iter().find(|candidate| read(candidate).is_some());
                waiting.extend(found.map(|file| (child.path, file)));
            }
        }
        tree
    }

    /// Returns every use of another file's items, except of those of an ancestor: a submodule is a part of its parent.
    pub(super) fn file_uses(&self) -> BTreeSet<FileUse> {
        let mut found = BTreeSet::new();
        for (path, module) in &self.modules {
            let everything = module.glob_uses.iter().filter_map(|used| {
                let (file, item) = self.definition(&self.absolute(path, used)?, &mut Vec::new())?;
                Some((file, item.unwrap_or_else(|| "*".to_owned())))
            });
            let items = module.uses.iter().filter_map(|used| {
                // The use of a module alone is the use of the items that are then named by its path.
                let (file, item) = self.definition(&self.absolute(path, used)?, &mut Vec::new())?;
                Some((file, item?))
            });
            for (to, name) in everything.chain(items) {
                if to != module.file && !self.is_ancestor(&to, &module.file) {
                    found.insert(FileUse { from: module.file.clone(), to, name });
                }
            }
        }
        found
    }

    fn is_ancestor(&self, file: &str, of: &str) -> bool {
        match (self.paths.get(file), self.paths.get(of)) {
            (Some(path), Some(below)) => path.len() < below.len() && below.starts_with(path),
            _ => false,
        }
    }

    /// Returns a path written in the module `at` from the root of the crate; `None` if it leads out of the crate.
    fn absolute(&self, at: &[String], written: &[String]) -> Option<NamePath> {
        let (head, rest) = written.split_first()?;
        let from = |start: &[String], rest: &[String]| Some([start, rest].concat());
        match head.as_str() {
            "crate" => from(&[], rest),
            "self" => from(at, rest),
            "super" => {
                let steps = written.iter().take_while(|step| *step == "super").count();
                from(at.get(..at.len().checked_sub(steps)?)?, &written[steps..])
            }
            _ if self.modules.contains_key(&[at, std::slice::from_ref(head)].concat()) => from(at, written),
            name => from(&self.imported(at, name, rest.is_empty())?, rest),
        }
    }

    /// Returns the path from the root of what the module `at` imports under a name: an item rather than a module, or the
    /// other way round.
    fn imported(&self, at: &[String], name: &str, is_item: bool) -> Option<NamePath> {
        let written = self.modules.get(at)?.imports.get(name)?;
        // The name of another crate at the head, as in `use url::url`, leads out.
        let has_child = self.modules.contains_key(&[at, &[name.to_owned()]].concat());
        let inside = written.iter().filter(|path| has_child || path.first().is_some_and(|first| first != name));
        let paths: Vec<NamePath> = inside.filter_map(|path| self.absolute(at, path)).collect();
        paths.iter().find(|path| self.modules.contains_key(*path) != is_item).or(paths.first()).cloned()
    }

    /// Returns the file that defines the item at a path from the root, and the item's name; no name if the path ends at
    /// a module. Follows re-exports; `followed` has those that led here. `None` if one leads out of the crate.
    fn definition(&self, path: &[String], followed: &mut Vec<NamePath>) -> Option<(String, Option<String>)> {
        let mut depth = (0..=path.len()).rev().find(|depth| self.modules.contains_key(&path[..*depth]))?;
        if depth == path.len() && self.is_item_too(path) {
            depth -= 1;
        }
        let (at, rest) = path.split_at(depth);
        let module = self.modules.get(at)?;
        let Some((name, further)) = rest.split_first() else { return Some((module.file.clone(), None)) };
        let here = [at, std::slice::from_ref(name)].concat();
        if !module.definitions.contains(name) && !followed.contains(&here) {
            followed.push(here);
            if module.imports.contains_key(name) {
                let target = [self.imported(at, name, further.is_empty())?.as_slice(), further].concat();
                return self.definition(&target, followed);
            }
            let mut candidates = module.globs.iter().filter_map(|glob| {
                let target = [self.absolute(at, glob)?.as_slice(), rest].concat();
                let found = self.definition(&target, followed)?;
                self.modules.values().any(|of| of.file == found.0 && of.definitions.contains(name)).then_some(found)
            });
            if let Some(found) = candidates.next() {
                return Some(found);
            }
        }
        // What no file defines comes from a macro of this one.
        Some((module.file.clone(), Some(name.clone())))
    }

    /// Returns true if a module's path leads to an item of the same name as well.
    fn is_item_too(&self, path: &[String]) -> bool {
        let Some((name, at)) = path.split_last() else { return false };
        let parent = self.modules.get(at);
        parent.is_some_and(|parent| parent.definitions.contains(name))
            || self.imported(at, name, true).is_some_and(|target| target != path)
    }
}
