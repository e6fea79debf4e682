//! Kernels to boot: one's own file, or a distribution's build from the cache or its packages.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use super::apt::Release;
use super::{VmError, cache};

/// A kernel to boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestKernel {
    /// How messages call it: the file, or the build, such as `6.18.15+deb13-amd64`.
    pub name: String,
    /// The image.
    pub image: PathBuf,
    /// Its configuration, which loaders of objects with `CONFIG_*` variables read; `None` if there
    /// is none to be had.
    pub config: Option<PathBuf>,
    /// Why it is not the one that was asked for, or what is wrong with that one; `None` when
    /// neither is so.
    pub instead: Option<String>,
}

/// A build that is tested with, and the releases that have it.
struct Pin {
    /// What users write.
    version: &'static str,
    build: &'static str,
    releases: &'static [&'static str],
}

/// Debian's builds with sched_ext that tests know. 7.2 of trixie-backports is not among them: its
/// type information misdescribes several kernel functions, `scx_bpf_kick_cpu` too. That of 7.1 does
/// the same, and there is no other.
const PINS: [Pin; 8] = [
    backport("6.16", "6.16.12+deb13-amd64"),
    backport("6.17", "6.17.13+deb13-amd64"),
    backport("6.18", "6.18.15+deb13-amd64"),
    backport("6.19", "6.19.14+deb13-amd64"),
    backport("7.0", "7.0.13+deb13-amd64"),
    backport("7.1", "7.1.13+deb13-amd64"),
    Pin {
        version: "7.2",
        build: "7.2.12+deb14-amd64",
        releases: &["forky", "sid"],
    },
    backport("7.3", "7.3.4+deb13-amd64"),
];

const fn backport(version: &'static str, build: &'static str) -> Pin {
    Pin {
        version,
        build,
        releases: &["trixie-backports"],
    }
}

/// What is to be known of a misdescribed build.
const MISDESCRIBED: &str = "its type information misdescribes several kernel functions: objects \
    that kick CPUs cannot be loaded";

/// The kernel that `wanted` means: the path of an image, or a version such as `6.18`. A version
/// that is not in the cache is downloaded; `progress` hears of it, since it takes a while.
///
/// When Debian no longer has the build that tests know, the nearest one with sched_ext is taken,
/// and [`GuestKernel::instead`] says so.
///
/// # Errors
/// When there is no such file or version, or nothing can be downloaded.
pub fn find(wanted: &str, progress: &mut dyn FnMut(&str)) -> Result<GuestKernel, VmError> {
    if wanted.contains('/') {
        return own(wanted);
    }
    let Some(pin) = PINS.iter().find(|pin| pin.version == wanted) else {
        return Err(VmError::KernelMissing {
            wanted: wanted.to_owned(),
            reason: unknown(wanted),
        });
    };
    let kernel = match cached(pin.build)? {
        Some(kernel) if kernel.config.is_some() || has_none(pin.build)? => kernel,
        Some(kernel) => GuestKernel {
            config: late_config(pin, progress)?,
            ..kernel
        },
        None => download(pin, progress)?,
    };
    Ok(with_its_fault(kernel))
}

/// Why there is no kernel for a version, and what there is.
fn unknown(wanted: &str) -> String {
    let known: Vec<_> = PINS.iter().map(|pin| pin.version).collect();
    let [others @ .., last] = &*known else {
        unreachable!("there are kernels");
    };
    let known = format!("known are {} and {last}", others.join(", "));
    match wanted {
        "6.12" => {
            let why = "Debian builds it without sched_ext, so that it can only be simulated";
            format!("{why}; {known}")
        }
        _ => known,
    }
}

/// Adds what is wrong with a build, if something is.
fn with_its_fault(kernel: GuestKernel) -> GuestKernel {
    let is_misdescribed = Build::parse(&kernel.name).is_some_and(|it| it.is_misdescribed());
    if !is_misdescribed {
        return kernel;
    }
    let instead = kernel.instead.as_deref();
    let before = instead.map_or_else(String::new, |why| format!("{why}; "));
    GuestKernel {
        instead: Some(format!("{before}{}: {MISDESCRIBED}", kernel.name)),
        ..kernel
    }
}

fn own(path: &str) -> Result<GuestKernel, VmError> {
    let image = PathBuf::from(path);
    fs::metadata(&image).map_err(VmError::file(&image))?;
    Ok(GuestKernel {
        name: path.to_owned(),
        config: beside(&image),
        image,
        instead: None,
    })
}

/// The configuration that lies beside an image: `config-RELEASE` beside `vmlinuz-RELEASE`, or
/// `config` or `.config` in its folder or, for an image in a kernel's sources, in theirs.
fn beside(image: &Path) -> Option<PathBuf> {
    let folder = image.parent()?;
    let name = image.file_name()?.to_string_lossy();
    let release = name.split_once('-').map(|(_, release)| release);
    let named = release.map(|release| folder.join(format!("config-{release}")));
    let sources = folder.ancestors().nth(3).map(|top| top.join(".config"));
    let plain = ["config", ".config"].map(|name| folder.join(name));
    let candidates = named.into_iter().chain(plain).chain(sources);
    candidates.into_iter().find(|path| path.is_file())
}

/// Where the image of `build` is kept.
fn place(build: &str) -> Result<PathBuf, VmError> {
    Ok(cache::folder("kernels")?.join(build))
}

fn cached(build: &str) -> Result<Option<GuestKernel>, VmError> {
    let place = place(build)?;
    let (image, config) = (place.join("vmlinuz"), place.join("config"));
    Ok(image.is_file().then(|| GuestKernel {
        name: build.to_owned(),
        image,
        config: config.is_file().then_some(config),
        instead: None,
    }))
}

/// Says why there is no configuration, so that it is looked for once.
const NO_CONFIG: &str = "config.none";

fn has_none(build: &str) -> Result<bool, VmError> {
    Ok(place(build)?.join(NO_CONFIG).is_file())
}

/// The configuration of a kernel whose image was kept without it. A guest is of use without one, so
/// that failing to get it is said and no error.
fn late_config(pin: &Pin, progress: &mut dyn FnMut(&str)) -> Result<Option<PathBuf>, VmError> {
    let place = place(pin.build)?;
    let found = pin.releases.iter().find_map(|name| {
        let release = Release::open(name).ok()?;
        let builds = builds(&release).ok()?;
        let build = builds.into_iter().find(|it| it.to_string() == pin.build)?;
        let beside = cache::Beside::of(&place).ok()?;
        progress(&format!("fetching the configuration of {build}"));
        config_of(&release, &build, &beside, &place)
    });
    if found.is_none() {
        let note = place.join(NO_CONFIG);
        progress(&format!(
            "no configuration of {} is to be had: objects that ask for CONFIG_* are refused; \
             remove {} to try again",
            pin.build,
            note.display()
        ));
        fs::write(&note, "").map_err(VmError::file(&note))?;
    }
    Ok(found)
}

/// Where packages have a kernel's configuration.
const CONFIGS: [&str; 2] = ["./boot/config-*", "./usr/lib/modules/*/config"];

/// Gets the configuration of `build` into `place`: from what is unpacked in `beside`, from the
/// small package that later versions have it in, or from the package of the image.
fn config_of(
    release: &Release,
    build: &Build,
    beside: &cache::Beside,
    place: &Path,
) -> Option<PathBuf> {
    let small = format!("linux-base-{build}");
    let mut found = file_in(beside.path(), "config");
    for package in [&small, &build.package] {
        if found.is_none() && release.unpack(package, &CONFIGS, beside.path()).is_ok() {
            found = file_in(beside.path(), "config");
        }
    }
    let kept = place.join("config");
    fs::rename(found?, &kept).ok()?;
    Some(kept)
}

fn download(pin: &Pin, progress: &mut dyn FnMut(&str)) -> Result<GuestKernel, VmError> {
    let mut seen = Vec::new();
    for name in pin.releases {
        let release = Release::open(name)?;
        let mut builds = builds(&release)?;
        if !builds.iter().any(|build| build.to_string() == pin.build) {
            progress(&format!(
                "fetching the list of packages of {}",
                release.name()
            ));
            release.update()?;
            builds = self::builds(&release)?;
        }
        if let Some(build) = builds.iter().find(|build| build.to_string() == pin.build) {
            return fetch(&release, build, progress);
        }
        seen.extend(builds.into_iter().map(|build| (*name, build)));
    }
    let wanted = Build::parse(pin.build).expect("a pin that is well formed");
    let nearest = seen.iter().filter(|(_, build)| build.is_usable());
    let Some((name, build)) = nearest.min_by_key(|(_, build)| build.distance(&wanted)) else {
        return Err(VmError::KernelMissing {
            wanted: pin.version.to_owned(),
            reason: format!("not in {}", pin.releases.join(", ")),
        });
    };
    let instead = format!(
        "{} is no longer to be had; {build} is the nearest",
        pin.build
    );
    let kernel = match cached(&build.to_string())? {
        Some(kernel) => kernel,
        None => fetch(&Release::open(name)?, build, progress)?,
    };
    Ok(GuestKernel {
        instead: Some(instead),
        ..kernel
    })
}

fn fetch(
    release: &Release,
    build: &Build,
    progress: &mut dyn FnMut(&str),
) -> Result<GuestKernel, VmError> {
    let name = build.to_string();
    let place = place(&name)?;
    let size = release.size_mb(&build.package)?;
    progress(&format!(
        "downloading {} from {}{}",
        build.package,
        release.name(),
        size.map_or_else(String::new, |mb| format!(", {mb} MB, once"))
    ));
    // Unpacked beside and moved at the end, so that a cache never has half a kernel.
    let beside = cache::Beside::of(&place)?;
    let images = ["./boot/vmlinuz-*", "./usr/lib/modules/*/vmlinuz"];
    let patterns = [images, CONFIGS].concat();
    release.unpack(&build.package, &patterns, beside.path())?;
    let image = file_in(beside.path(), "vmlinuz").ok_or_else(|| VmError::KernelMissing {
        wanted: name.clone(),
        reason: format!("the package {} has no image", build.package),
    })?;
    fs::create_dir_all(&place).map_err(VmError::file(&place))?;
    let kept = place.join("vmlinuz");
    fs::rename(&image, &kept).map_err(VmError::file(&kept))?;
    let config = config_of(release, build, &beside, &place);
    Ok(GuestKernel {
        name,
        image: kept,
        config,
        instead: None,
    })
}

/// The first file below `folder` whose name begins with `kind`: `vmlinuz` or `config`.
fn file_in(folder: &Path, kind: &str) -> Option<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    entries.sort();
    let is_wanted = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.is_file() && name.starts_with(kind)
    };
    let here = entries.iter().find(|path| is_wanted(path)).cloned();
    here.or_else(|| {
        entries
            .iter()
            .filter(|path| path.is_dir())
            .find_map(|path| file_in(path, kind))
    })
}

/// A distribution's build of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Build {
    package: String,
    /// Major, minor, patch.
    version: [u32; 3],
    /// Debian's release that it is built for.
    debian: u32,
}

fn builds(release: &Release) -> Result<Vec<Build>, VmError> {
    let names = release.packages("linux-")?;
    let mut builds: Vec<Build> = names
        .iter()
        .filter_map(|name| Build::of_package(name))
        .collect();
    // Later versions have the image in a small package of its own; it sorts first and wins.
    builds.sort_by(|a, b| a.package.cmp(&b.package));
    Ok(builds)
}

impl Build {
    fn of_package(package: &str) -> Option<Self> {
        let kinds = ["linux-binary-", "linux-image-"];
        let name = kinds.iter().find_map(|kind| package.strip_prefix(kind))?;
        Some(Self {
            package: package.to_owned(),
            ..Self::parse(name)?
        })
    }

    /// Reads `6.18.15+deb13-amd64`. Other flavours (cloud, rt) are not for us.
    fn parse(name: &str) -> Option<Self> {
        let (version, debian) = name.strip_suffix("-amd64")?.split_once("+deb")?;
        let mut numbers = version.split('.').map(str::parse);
        let mut next = || numbers.next()?.ok();
        let version = [next()?, next()?, next()?];
        let debian = debian.parse().ok()?;
        Some(Self {
            package: String::new(),
            version,
            debian,
        })
    }

    /// Whether it has a sched_ext that policies can use.
    fn is_usable(&self) -> bool {
        let [major, minor, _] = self.version;
        (major, minor) >= (6, 16) && !self.is_misdescribed()
    }

    /// Whether its type information gives functions a parameter too many.
    fn is_misdescribed(&self) -> bool {
        let [major, minor, _] = self.version;
        self.debian == 13 && major == 7 && (1..=2).contains(&minor)
    }

    /// How far its behaviour is likely to be from that of `wanted`.
    fn distance(&self, wanted: &Self) -> [u32; 3] {
        let [major, minor, patch] = wanted.version;
        [
            self.version[0].abs_diff(major),
            self.version[1].abs_diff(minor),
            self.version[2].abs_diff(patch),
        ]
    }
}

impl fmt::Display for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.version;
        write!(f, "{major}.{minor}.{patch}+deb{}-amd64", self.debian)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_names_its_build_and_other_flavours_are_left_out() {
        let build = Build::of_package("linux-image-6.18.15+deb13-amd64").unwrap();
        assert_eq!((build.version, build.debian), ([6, 18, 15], 13));
        assert_eq!(build.to_string(), "6.18.15+deb13-amd64");
        for other in [
            "linux-image-6.18.15+deb13-cloud-amd64",
            "linux-image-6.18.15+deb13-rt-amd64",
            "linux-image-amd64",
            "linux-headers-6.18.15+deb13-amd64",
        ] {
            assert_eq!(Build::of_package(other), None, "{other}");
        }
    }

    #[test]
    fn every_pin_is_a_build_that_can_be_used() {
        for pin in PINS {
            let build = Build::parse(pin.build).unwrap();
            // There is no better one.
            let expected = pin.version != "7.1";
            assert_eq!(build.is_usable(), expected, "{}", pin.build);
            assert!(pin.build.starts_with(pin.version));
        }
    }

    #[test]
    fn the_nearest_build_has_the_nearest_version_and_is_not_a_broken_one() {
        let wanted = Build::parse("7.2.12+deb14-amd64").unwrap();
        let names = [
            "7.2.13+deb13-amd64",
            "7.1.9+deb14-amd64",
            "7.2.20+deb14-amd64",
            "6.12.9+deb14-amd64",
        ];
        let builds = names.map(|name| Build::parse(name).unwrap());
        let nearest = builds
            .iter()
            .filter(|b| b.is_usable())
            .min_by_key(|b| b.distance(&wanted))
            .unwrap();
        assert_eq!(nearest.to_string(), "7.2.20+deb14-amd64");
    }

    #[test]
    fn the_configuration_beside_an_image_is_found() {
        let folder = folder::OwnFolder::new().unwrap();
        let image = folder.join("vmlinuz-6.18.1");
        assert_eq!(beside(&image), None);
        for name in [".config", "config-6.18.1"] {
            let config = folder.join(name);
            fs::write(&config, "CONFIG_HZ=250\n").unwrap();
            assert_eq!(beside(&image), Some(config));
        }
        let boot = folder.join("arch/x86/boot");
        fs::create_dir_all(&boot).unwrap();
        assert_eq!(beside(&boot.join("bzImage")), Some(folder.join(".config")));
    }

    #[test]
    fn an_unknown_version_says_what_there_is() {
        let error = find("6.1", &mut |_| {}).unwrap_err().to_string();
        assert!(
            error.contains("known are 6.16, ") && error.contains(" and 7.3"),
            "{error}"
        );
        let error = find("6.12", &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("without sched_ext"), "{error}");
    }

    #[test]
    fn a_misdescribed_build_says_so() {
        let kernel = |name: &str, instead: Option<&str>| GuestKernel {
            name: name.to_owned(),
            image: PathBuf::new(),
            config: None,
            instead: instead.map(str::to_owned),
        };
        let fine = kernel("7.3.4+deb13-amd64", None);
        assert_eq!(with_its_fault(fine.clone()), fine);
        let told = with_its_fault(kernel("7.1.13+deb13-amd64", Some("gone"))).instead;
        let told = told.unwrap();
        assert!(
            told.starts_with("gone; 7.1.13") && told.contains("misdescribes"),
            "{told}"
        );
    }

    #[test]
    fn a_path_that_is_not_there_is_named() {
        let error = find("./no/vmlinuz", &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("./no/vmlinuz"), "{error}");
    }
}
