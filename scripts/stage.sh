#!/bin/sh
# stage.sh PROGRAM ROOT PREFIX: lays out below ROOT what an installation has, PREFIX being /usr or
# /usr/local. Packages, the archive and `make install` use it. It runs PROGRAM for its manual pages.
# Beside PROGRAM lie the others, PROGRAM-reproduce and PROGRAM-mcp.
set -eu
program=$(realpath "$1")
root=$2$3
prefix=$3
cd "$(dirname "$0")/.."

put() { # put MODE FROM... FOLDER
    mode=$1
    shift
    for last; do :; done
    mkdir -p "$root/$last"
    while [ $# -gt 1 ]; do
        install -m "$mode" "$1" "$root/$last/"
        shift
    done
}

mkdir -p "$root/share/man/man1"
put 755 "$program" "$program-reproduce" "$program-mcp" bin
"$program" man "$root/share/man/man1"
gzip -9nf "$root"/share/man/man1/*.1

for shell in bash zsh fish; do
    case $shell in
        bash) to=share/bash-completion/completions/runslice ;;
        zsh) to=share/zsh/vendor-completions/_runslice ;;
        fish) to=share/fish/vendor_completions.d/runslice.fish ;;
    esac
    mkdir -p "$root/$(dirname "$to")"
    "$program" completions "$shell" >"$root/$to"
done

mkdir -p "$root/lib/systemd/system"
sed "s,/usr/local/bin/,${prefix:-/usr/local}/bin/," dist/runslice@.service \
    >"$root/lib/systemd/system/runslice@.service"

# Messages, help and manuals name documents, and these link to each other: below DOC each lies where
# it lies in the project.
doc=share/doc/runslice
put 644 README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md dist/copyright $doc
put 644 LICENSES/*.txt $doc/licenses
put 644 docs/*.md $doc/docs
put 644 docs/notebooks/*.ipynb $doc/docs/notebooks
put 644 docs/guide/src/*.md $doc/docs/guide/src
put 644 docs/guide/src/diagnoses/* $doc/docs/guide/src/diagnoses
for file in experiments/README.md experiments/mutants.csv experiments/sentences.csv \
    experiments/*.toml experiments/*/README.md experiments/*/*.toml; do
    put 644 "$file" "$doc/$(dirname "$file")"
done
put 644 policies/*.bpf.c policies/*.md $doc/examples/policies
put 644 policies/domains/*.bpf.c $doc/examples/policies/domains
put 644 policies/lessons/*.bpf.c $doc/examples/policies/lessons
put 644 policies/lessons/cid/*.bpf.c $doc/examples/policies/lessons/cid
put 644 workloads/*.toml $doc/examples/workloads
put 644 teach/* $doc/teach
put 644 profiles/*.toml $doc/examples/profiles
put 644 hardware/*.toml $doc/examples/hardware
put 644 dist/github/simulate.yml dist/grafana.json $doc/examples
for folder in policies workloads profiles hardware; do
    ln -sfn examples/$folder "$root/$doc/$folder"
done
put 644 schemas/*.json share/runslice/schemas
chmod -R u=rwX,go=rX "$root"
