#!/bin/sh
# Builds what users install, into target/dist: programs without shared libraries, a .deb, an .rpm
# where rpmbuild is there, and an archive. Needs libelf.a, libz.a (libelf-dev, zlib1g-dev), libc.a.
set -eu
cd "$(dirname "$0")/.."

machine=$(uname -m)
target=$machine-unknown-linux-gnu
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
# The greatest size of a program: it goes through slow networks into small machines.
most=30000000
# No profile has this name: cargo keeps what it runs while it builds in a folder of the profile's
# name, and all of it would be built anew when that is emptied below.
out=${CARGO_TARGET_DIR:-target}/dist
# The same sources give the same packages.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH

libelf=$(cc -print-file-name=libelf.a)
if [ "$libelf" = libelf.a ]; then
    echo 'dist: no libelf.a; install libelf-dev and zlib1g-dev' >&2
    exit 1
fi
# Newer libelf compresses with zstd, too.
more=
if nm "$libelf" 2>/dev/null | grep -q ZSTD_; then
    more='-l static=zstd'
fi
cargo=${CARGO:-scripts/cargo}
program=${CARGO_TARGET_DIR:-target}/$target/packaged/runslice

build() { # build RUSTFLAG...
    RUSTFLAGS="-C target-feature=+crt-static $more $*" \
        LIBBPF_SYS_LIBRARY_PATH=$(dirname "$libelf") \
        "$cargo" build --profile packaged --target "$target" \
        --bin runslice --bin runslice-reproduce --bin runslice-mcp \
        --features static,runslice/parquet,runslice/png
}

# Optimised for what users do: a first build counts which code that takes, a second one uses the
# counts. See docs/performance.md, *Release builds*. They are kept under the hash of the program
# that counted, so that the same sources give the same program again in this folder; to get it
# elsewhere, RUNSLICE_COUNTS names the file of counts that lies beside the packages, unpacked.
counts=${RUNSLICE_COUNTS:-}
if [ -z "$counts" ] && merge=$(scripts/train.sh tool); then
    kept=$(realpath "${CARGO_TARGET_DIR:-target}")/counts
    mkdir -p "$kept"
    build "-Cprofile-generate=$kept/raw"
    counts=$kept/$(sha256sum "$program" | cut -c 1-16).profdata
    if [ ! -e "$counts" ]; then
        rm -rf "$kept/raw"
        LLVM_PROFILE_FILE=$kept/raw/%m.profraw scripts/train.sh "$program"
        "$merge" merge --sparse -o "$counts.new" "$kept/raw"
        mv "$counts.new" "$counts"
    fi
fi
if [ -n "$counts" ]; then
    build "-Cprofile-use=$(realpath "$counts")"
else
    echo 'dist: no llvm-profdata for this compiler, so the program is some 15 % slower' >&2
    build
fi

rm -rf "$out"
mkdir -p "$out"
for name in runslice runslice-reproduce runslice-mcp; do
    objcopy --strip-all "$(dirname "$program")/$name" "$out/$name"
    if readelf -d "$out/$name" | grep -q NEEDED; then
        echo "dist: $name needs shared libraries:" >&2
        readelf -d "$out/$name" | grep NEEDED >&2
        exit 1
    fi
    size=$(stat -c %s "$out/$name")
    [ "$size" -le $most ] || { echo "dist: $name has $size bytes, more than $most" >&2; exit 1; }
done
[ -z "$counts" ] || gzip -9nc "$counts" >"$out/runslice-$version-$machine.profdata.gz"

# The archive, whose folder has bin and share as below /usr.
name=runslice-$version-$machine-linux
scripts/stage.sh "$out/runslice" "$out/$name" ''
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@"$SOURCE_DATE_EPOCH" \
    -C "$out" -czf "$out/$name.tar.gz" "$name"
rm -r "${out:?}/$name"

# Debian and its relatives.
case $machine in
    x86_64) debian=amd64 ;;
    aarch64) debian=arm64 ;;
    *) debian= ;;
esac
if [ -n "$debian" ] && command -v dpkg-deb >/dev/null; then
    root=$out/deb
    scripts/stage.sh "$out/runslice" "$root" /usr
    gzip -9n "$root/usr/share/doc/runslice/CHANGELOG.md"
    mv "$root/usr/share/doc/runslice/CHANGELOG.md.gz" "$root/usr/share/doc/runslice/changelog.gz"
    mkdir "$root/DEBIAN"
    sed -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$debian/" \
        -e "s/@SIZE@/$(du -sk "$root/usr" | cut -f 1)/" dist/control >"$root/DEBIAN/control"
    (cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
    dpkg-deb --root-owner-group --build "$root" "$out/runslice_${version}_$debian.deb" >/dev/null
    rm -r "$root"
fi

# Fedora, openSUSE and their relatives.
if command -v rpmbuild >/dev/null; then
    root=$(realpath "$out")/rpm
    scripts/stage.sh "$out/runslice" "$root/files" /usr
    mkdir -p "$root/files/usr/share/zsh/site-functions"
    mv "$root/files/usr/share/zsh/vendor-completions/_runslice" \
        "$root/files/usr/share/zsh/site-functions/"
    rmdir "$root/files/usr/share/zsh/vendor-completions"
    rpmbuild --quiet -bb --target "$machine" --define "_topdir $root" --define "_rpmdir $root" \
        --define "version_of $version" --define "files_of $root/files" dist/runslice.spec
    mv "$root/$machine"/*.rpm "$out/"
    rm -r "$root"
else
    echo 'dist: no rpmbuild, so no .rpm; install the package rpm' >&2
fi
ls -l "$out"
