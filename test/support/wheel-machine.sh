#!/bin/bash
# wheel-machine.sh ROOT GIVEN [FOLDER...]: puts the files below GIVEN into systemd.sh's copy, and this host's FOLDERs, which
# pip reads, where they are here.
set -e
root=$1
given=$2
shift 2
cp -rT "$given" "$root"
for folder in "$@"; do
  mkdir -p "$root$folder"
  mount --bind -o ro "$folder" "$root$folder"
done
