//! What a kernel was built with.

use std::collections::BTreeMap;
use std::io::Read as _;

use flate2::bufread::GzDecoder;

use crate::Advice;

/// Bytes of a configuration that are read; kernels have about 300 KiB.
const MOST: u64 = 16 << 20;
/// How a file that gzip packed begins, as `/proc/config.gz` does (RFC 1952).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A kernel's configuration: `/boot/config-VERSION`, `.config` or `/proc/config.gz`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelConfig {
    /// By name, with `CONFIG_`.
    options: BTreeMap<String, String>,
}

/// Why bytes are no configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// No line of one was found.
    #[error("not a kernel's configuration: no line sets an option such as `CONFIG_BPF=y`")]
    NotAConfig,
    /// More than any kernel has.
    #[error("the configuration has more than 16 MiB")]
    TooLong,
    /// What gzip packed cannot be unpacked.
    #[error("the packed configuration is cut or changed")]
    Damaged,
}

impl Advice for ConfigError {
    fn advice(&self) -> Option<String> {
        Some("give /boot/config-VERSION, a kernel's .config or /proc/config.gz".to_owned())
    }
}

impl KernelConfig {
    /// Without these there is no sched_ext: `SCHED_CLASS_EXT` (kernel/Kconfig.preempt, Linux 6.18)
    /// and what it depends on.
    pub const OF_SCHED_EXT: [&str; 4] = [
        "CONFIG_SCHED_CLASS_EXT",
        "CONFIG_BPF_SYSCALL",
        "CONFIG_BPF_JIT",
        "CONFIG_DEBUG_INFO_BTF",
    ];

    /// Reads a configuration, packed by gzip or not. Lines that set nothing are passed over, and of
    /// an option that is set twice the last line counts, as in Kconfig.
    ///
    /// # Errors
    /// When it is none.
    pub fn read(bytes: &[u8]) -> Result<Self, ConfigError> {
        let mut plain = Vec::new();
        let bytes = if bytes.starts_with(&GZIP) {
            let unpacked = GzDecoder::new(bytes).take(MOST + 1).read_to_end(&mut plain);
            unpacked.map_err(|_| ConfigError::Damaged)?;
            &plain
        } else {
            bytes
        };
        if bytes.len() as u64 > MOST {
            return Err(ConfigError::TooLong);
        }
        let text = String::from_utf8_lossy(bytes);
        let lines = text.lines().filter_map(setting);
        let options: BTreeMap<_, _> = lines.collect();
        if options.is_empty() {
            return Err(ConfigError::NotAConfig);
        }
        Ok(Self { options })
    }

    /// The value of an option, as written; `None` if it is not set.
    #[must_use]
    pub fn value(&self, option: &str) -> Option<&str> {
        let value = self.options.get(option).map(String::as_str);
        value.filter(|value| *value != "n")
    }

    /// Ticks a second.
    #[must_use]
    pub fn hz(&self) -> Option<u32> {
        self.value("CONFIG_HZ")?.parse().ok()
    }
}

/// `CONFIG_HZ=250` or `# CONFIG_X is not set`.
fn setting(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let unset = line.strip_prefix("# ");
    let unset = unset.and_then(|line| line.strip_suffix(" is not set"));
    let (name, value) = unset
        .map(|name| (name, "n"))
        .or_else(|| line.split_once('='))?;
    let letters = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let is_name = name.starts_with("CONFIG_") && name.chars().all(letters);
    is_name.then(|| (name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const TEXT: &str = "#\n# Automatically generated\n#\nCONFIG_HZ=1000\n\
        # CONFIG_SCHED_CLASS_EXT is not set\nCONFIG_BPF_SYSCALL=y\nCONFIG_KPROBES=m\n\
        CONFIG_CC_VERSION_TEXT=\"gcc = 14\"\n";

    #[test]
    fn a_configuration_is_read_as_text_and_packed() {
        let config = KernelConfig::read(TEXT.as_bytes()).unwrap();
        assert_eq!(config.hz(), Some(1000));
        assert_eq!(config.value("CONFIG_SCHED_CLASS_EXT"), None);
        assert_eq!(config.value("CONFIG_KPROBES"), Some("m"));
        assert_eq!(config.value("CONFIG_CC_VERSION_TEXT"), Some("\"gcc = 14\""));
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(TEXT.as_bytes()).unwrap();
        let packed = packed.finish().unwrap();
        assert_eq!(KernelConfig::read(&packed), Ok(config));
        let cut = KernelConfig::read(&packed[..packed.len() / 2]);
        assert_eq!(cut, Err(ConfigError::Damaged));
    }

    #[test]
    fn what_is_no_configuration_or_a_bomb_is_refused() {
        for bytes in [
            &b""[..],
            b"hello\n",
            b"# CONFIG_ is",
            b"X=y\n",
            b"\xff\xfe=",
        ] {
            assert_eq!(KernelConfig::read(bytes), Err(ConfigError::NotAConfig));
        }
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(&vec![b'\n'; MOST as usize + 5]).unwrap();
        let packed = packed.finish().unwrap();
        assert_eq!(KernelConfig::read(&packed), Err(ConfigError::TooLong));
    }
}
