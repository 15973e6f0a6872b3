//! Attribute for types that render a template which the build script prepared.
//!
//! Askama reads templates from folders next to the manifest, or from a path that is a literal. The build script writes
//! the templates without their layout to `OUT_DIR`, which no literal in a source file can name.

use proc_macro::TokenStream;

/// Derives `askama::Template` from a template of the folder `templates`, named by its path there:
/// `#[template_file("public/page.html")]`. It stands before other derives.
#[proc_macro_attribute]
pub fn template_file(path: TokenStream, item: TokenStream) -> TokenStream {
    let path = path.to_string();
    let attributes = match (path.strip_prefix('"').and_then(|path| path.strip_suffix('"')), std::env::var("OUT_DIR")) {
        (Some(path), Ok(folder)) => {
            let path = format!("{folder}/templates/{path}");
            format!("#[derive(::askama::Template)] #[template(path = {path:?})]")
        }
        (None, _) => "::core::compile_error!(\"the path of a template is expected\");".to_owned(),
        (_, Err(_)) => "::core::compile_error!(\"the crate has no build script\");".to_owned(),
    };
    let mut output: TokenStream = attributes.parse().unwrap_or_default();
    output.extend(item);
    output
}
