//! Reads TOML into a type, for files whose form serde can say.

use serde::de::DeserializeOwned;
use toml::de::Deserializer;

use super::error::{FileError, Problem};
use super::table::Source;

/// Reads a whole file. Values that must be found again in messages are `toml::Spanned`.
///
/// # Errors
/// When it is no TOML, or not of this form, with the place.
pub fn read<T: DeserializeOwned>(source: &Source<'_>) -> Result<T, FileError> {
    let read = T::deserialize(Deserializer::from(source.toml()?));
    read.map_err(|error| source.refused(&error, Problem::Form))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use toml::Spanned;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        count: Spanned<u8>,
    }

    fn wrong(text: &str) -> String {
        let file = "f.toml";
        read::<File>(&Source { text, file })
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn values_know_their_places_and_mistakes_are_told_with_theirs() {
        let text = "# ä\ncount = 7\n";
        let file = "f.toml";
        let source = Source { text, file };
        let read: File = read(&source).unwrap();
        assert_eq!(*read.count.get_ref(), 7);
        let place = source.place(read.count.span().start);
        assert_eq!(place.to_string(), "f.toml:2:9");
        assert!(wrong("count = ").starts_with("f.toml:1:9: not TOML: "));
        assert!(wrong("# ä\nä = 1").starts_with("f.toml:2:1: "));
        let said = wrong("count = 1\ncolour = 2");
        assert!(
            said.starts_with("f.toml:2:1: unknown field `colour`"),
            "{said}"
        );
        let said = wrong("# ä\n  count = 'ä'");
        assert!(
            said.starts_with("f.toml:2:11: invalid type: string"),
            "{said}"
        );
        assert!(wrong("").starts_with("f.toml:1:1: missing field `count`"));
        let lacking = super::read::<File>(&Source { text: "", file }).unwrap_err();
        assert_eq!(crate::Advice::advice(&lacking).as_deref(), Some("add it"));
    }
}
