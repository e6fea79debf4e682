//! Kernels to boot: one's own file, or a distribution's build from the cache or its packages.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use super::apt::Release;
use super::{VmError, cache};

/// A kernel to boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// How messages call it: the file, or the build, such as `6.18.15+deb13-amd64`.
    pub name: String,
    /// The image.
    pub image: PathBuf,
    /// Why it is not the one that was asked for; `None` when it is.
    pub instead: Option<String>,
}

/// A build that is tested with, and the releases that have it.
struct Pin {
    /// What users write.
    version: &'static str,
    build: &'static str,
    releases: &'static [&'static str],
}

/// Debian's builds with sched_ext that tests know. 7.1 and 7.2 of trixie-backports are not among
/// them: their type information misdescribes several kernel functions, `scx_bpf_kick_cpu` too.
const PINS: [Pin; 2] = [
    Pin {
        version: "6.18",
        build: "6.18.15+deb13-amd64",
        releases: &["trixie-backports"],
    },
    Pin {
        version: "7.2",
        build: "7.2.12+deb14-amd64",
        releases: &["forky", "sid"],
    },
];

/// The kernel that `wanted` means: the path of an image, or a version such as `6.18`. A version
/// that is not in the cache is downloaded; `progress` hears of it, since it takes a while.
///
/// When Debian no longer has the build that tests know, the nearest one with sched_ext is taken,
/// and [`Kernel::instead`] says so.
///
/// # Errors
/// When there is no such file or version, or nothing can be downloaded.
pub fn find(wanted: &str, progress: &mut dyn FnMut(&str)) -> Result<Kernel, VmError> {
    if wanted.contains('/') {
        return own(wanted);
    }
    let Some(pin) = PINS.iter().find(|pin| pin.version == wanted) else {
        let known: Vec<_> = PINS.iter().map(|pin| pin.version).collect();
        return Err(VmError::KernelMissing {
            wanted: wanted.to_owned(),
            reason: format!("known are {}", known.join(" and ")),
        });
    };
    match cached(pin.build)? {
        Some(image) => Ok(Kernel {
            name: pin.build.to_owned(),
            image,
            instead: None,
        }),
        None => download(pin, progress),
    }
}

fn own(path: &str) -> Result<Kernel, VmError> {
    let image = PathBuf::from(path);
    fs::metadata(&image).map_err(VmError::file(&image))?;
    Ok(Kernel {
        name: path.to_owned(),
        image,
        instead: None,
    })
}

/// Where the image of `build` is kept.
fn place(build: &str) -> Result<PathBuf, VmError> {
    Ok(cache::folder("kernels")?.join(build))
}

fn cached(build: &str) -> Result<Option<PathBuf>, VmError> {
    let image = place(build)?.join("vmlinuz");
    Ok(image.is_file().then_some(image))
}

fn download(pin: &Pin, progress: &mut dyn FnMut(&str)) -> Result<Kernel, VmError> {
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
        Some(image) => Kernel {
            name: build.to_string(),
            image,
            instead: None,
        },
        None => fetch(&Release::open(name)?, build, progress)?,
    };
    Ok(Kernel {
        instead: Some(instead),
        ..kernel
    })
}

fn fetch(
    release: &Release,
    build: &Build,
    progress: &mut dyn FnMut(&str),
) -> Result<Kernel, VmError> {
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
    let patterns = ["./boot/vmlinuz-*", "./usr/lib/modules/*/vmlinuz"];
    release.unpack(&build.package, &patterns, beside.path())?;
    let image = image_in(beside.path()).ok_or_else(|| VmError::KernelMissing {
        wanted: name.clone(),
        reason: format!("the package {} has no image", build.package),
    })?;
    fs::create_dir_all(&place).map_err(VmError::file(&place))?;
    let kept = place.join("vmlinuz");
    fs::rename(&image, &kept).map_err(VmError::file(&kept))?;
    Ok(Kernel {
        name,
        image: kept,
        instead: None,
    })
}

/// The first file below `folder` whose name begins as an image's does.
fn image_in(folder: &Path) -> Option<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    entries.sort();
    let is_image = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.is_file() && name.starts_with("vmlinuz")
    };
    let here = entries.iter().find(|path| is_image(path)).cloned();
    here.or_else(|| {
        entries
            .iter()
            .filter(|path| path.is_dir())
            .find_map(|path| image_in(path))
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
        let misdescribed = self.debian == 13 && major == 7 && minor >= 1;
        (major, minor) >= (6, 18) && !misdescribed
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
            assert!(build.is_usable(), "{}", pin.build);
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
    fn an_unknown_version_says_what_there_is() {
        let error = find("6.1", &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("6.18 and 7.2"), "{error}");
    }

    #[test]
    fn a_path_that_is_not_there_is_named() {
        let error = find("./no/vmlinuz", &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("./no/vmlinuz"), "{error}");
    }
}
