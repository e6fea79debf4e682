use std::fs::{self, Permissions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;
use crate::OwnFolder;

/// This user, as whom everything here is made.
fn own() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// As root meets what this user has made, if this user is `friend` or a stranger.
fn root_writes(path: &Path, is_friend: bool) -> io::Result<()> {
    let users = if is_friend {
        vec![own()]
    } else {
        vec![own() + 1]
    };
    open_guarded(path, There::Emptied, &users)?.write_all(b"new")
}

fn folder_of_mode(mode: u32) -> (OwnFolder, PathBuf) {
    let own = OwnFolder::new().unwrap();
    let folder = own.join("folder");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
    (own, folder)
}

#[test]
fn root_follows_no_link_that_another_user_can_have_put_there() {
    for mode in [0o1777, 0o755] {
        let (own, folder) = folder_of_mode(mode);
        let victim = own.join("victim");
        fs::write(&victim, "kept").unwrap();
        symlink(&victim, folder.join("link")).unwrap();
        symlink(own.path(), folder.join("way")).unwrap();
        symlink("link", folder.join("far")).unwrap();
        symlink(own.join("absent"), folder.join("dangling")).unwrap();
        for name in ["link", "way/victim", "far", "dangling", "../folder/./link"] {
            let error = root_writes(&folder.join(name), false).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{name}: {error}");
            assert!(error.to_string().contains("is a link of user"), "{error}");
            assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
        }
        assert!(!own.join("absent").exists());
        for name in ["link", "way/victim", "far", "dangling", "../folder/./link"] {
            root_writes(&folder.join(name), true).unwrap();
        }
        assert_eq!(fs::read_to_string(&victim).unwrap(), "new");
        assert!(own.join("absent").is_file() && folder.join("link").is_symlink());
    }
}

#[test]
fn root_makes_no_folder_behind_a_link_of_somebody_else() {
    let (own, folder) = folder_of_mode(0o1777);
    fs::create_dir(own.join("victim")).unwrap();
    symlink(own.join("victim"), folder.join("link")).unwrap();
    symlink(own.join("absent"), folder.join("dangling")).unwrap();
    for name in [
        "link",
        "link/new",
        "link/../new",
        "dangling",
        "dangling/new",
    ] {
        let error = make_guarded(&folder.join(name), &[self::own() + 1]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{name}: {error}");
    }
    assert_eq!(fs::read_dir(own.join("victim")).unwrap().count(), 0);
    assert_eq!(fs::read_dir(own.path()).unwrap().count(), 2);
    make_guarded(&folder.join("link/new/below"), &[self::own()]).unwrap();
    make_guarded(&folder.join("plain/./below/../beside"), &[self::own() + 1]).unwrap();
    make_guarded(&folder.join("plain"), &[self::own() + 1]).unwrap();
    assert!(own.join("victim/new/below").is_dir() && folder.join("plain/beside").is_dir());
    fs::write(folder.join("file"), "x").unwrap();
    make_guarded(&folder.join("file/new"), &[self::own()]).unwrap_err();
    make_guarded(&folder.join("file"), &[self::own()]).unwrap_err();
}

#[test]
fn a_link_that_everybody_may_replace_is_nobodys_friend() {
    let (own, folder) = folder_of_mode(0o777);
    fs::write(own.join("victim"), "kept").unwrap();
    symlink(own.join("victim"), folder.join("link")).unwrap();
    let error = root_writes(&folder.join("link"), true).unwrap_err();
    assert!(
        error.to_string().contains("everybody may replace"),
        "{error}"
    );
    assert_eq!(fs::read_to_string(own.join("victim")).unwrap(), "kept");
}

#[test]
fn links_that_lead_to_each_other_end() {
    let (_own, folder) = folder_of_mode(0o755);
    symlink("b", folder.join("a")).unwrap();
    symlink("a", folder.join("b")).unwrap();
    let error = root_writes(&folder.join("a"), true).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(Errno::LOOP.raw_os_error()));
}

#[test]
fn root_writes_over_no_file_that_another_user_has_prepared() {
    let (_own, folder) = folder_of_mode(0o1777);
    fs::write(folder.join("file"), "kept").unwrap();
    let error = root_writes(&folder.join("file"), false).unwrap_err();
    assert!(error.to_string().contains("belongs to user"), "{error}");
    root_writes(&folder.join("file"), true).unwrap();
    fs::hard_link(folder.join("file"), folder.join("other")).unwrap();
    let error = root_writes(&folder.join("other"), true).unwrap_err();
    assert!(error.to_string().contains("has other names"), "{error}");

    // A user's file in a folder of the user's own is what root was asked to write.
    let (_own, folder) = folder_of_mode(0o755);
    fs::write(folder.join("file"), "old").unwrap();
    root_writes(&folder.join("file"), false).unwrap();
    assert_eq!(fs::read_to_string(folder.join("file")).unwrap(), "new");
}

#[test]
fn pipes_and_sockets_are_refused_at_once() {
    let (_own, folder) = folder_of_mode(0o755);
    let (pipe, socket) = (folder.join("pipe"), folder.join("socket"));
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(CWD, &pipe, kind, Mode::from_raw_mode(0o600), 0).unwrap();
    let _listens = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    for open in [create, append] {
        let error = open(&pipe).unwrap_err();
        assert!(error.to_string().contains("is a pipe"), "{error}");
        let error = open(&socket).unwrap_err();
        assert!(error.to_string().contains("is a socket"), "{error}");
    }
    for (device, taken) in [
        ((1, 3), true),
        ((1, 7), true),
        ((136, 9), true),
        ((1, 1), false),
    ] {
        let number = rustix::fs::makedev(device.0, device.1);
        assert_eq!(is_harmless(number), taken, "{device:?}");
    }
}

#[test]
fn what_is_open_already_is_written_through_its_number() {
    create(Path::new("/dev/null"))
        .unwrap()
        .write_all(b"x")
        .unwrap();
    let (mut from, to) = io::pipe().unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&to);
    let path = PathBuf::from(format!("/dev/fd/{number}"));
    create(&path).unwrap().write_all(b"through").unwrap();
    drop(to);
    let mut text = String::new();
    from.read_to_string(&mut text).unwrap();
    assert_eq!(text, "through");
    for path in [
        "/dev/fd/../../tmp/x",
        "/dev/fd/",
        "/dev/stdout/x",
        "/proc/self/fd/1x",
    ] {
        assert!(!is_open_file(Path::new(path)), "{path}");
    }
}

#[test]
fn a_file_is_emptied_written_on_or_refused_as_asked() {
    let (_own, folder) = folder_of_mode(0o755);
    let path = folder.join("file");
    create_new(&path).unwrap().write_all(b"one").unwrap();
    assert_eq!(
        create_new(&path).unwrap_err().kind(),
        ErrorKind::AlreadyExists
    );
    append(&path).unwrap().write_all(b"two").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "onetwo");
    create(&path).unwrap().write_all(b"three").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "three");
    fs::write(folder.join("plain"), "").unwrap();
    let mode = |name: &str| folder.join(name).metadata().unwrap().mode();
    assert_eq!(mode("file"), mode("plain"));
    assert_eq!(create(&folder).unwrap_err().kind(), ErrorKind::IsADirectory);
}
