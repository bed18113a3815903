#!/bin/bash
# systemd.sh FOLDER LOWER PREPARE [WORD...]: systemd as the first process of namespaces of its own, over a copy of the files
# below LOWER that is thrown away, with nothing to do but gnnd.service, where that is installed. As root, below
#   unshare --mount --pid --fork --uts --ipc --cgroup --kill-child
# FOLDER is empty. `PREPARE ROOT WORD...` may change the copy before it becomes the root.
set -e
folder=$1
lower=$2
shift 2
mount --make-rprivate /
mount -t tmpfs tmpfs "$folder"
mkdir -p "$folder"/{upper,work,root}
root=$folder/root
mount -t overlay overlay -o "lowerdir=$lower,upperdir=$folder/upper,workdir=$folder/work" "$root"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
# Control groups of version 1 where the host has them, else of version 2.
if [ -d /sys/fs/cgroup/systemd ]; then
  mount -t tmpfs tmpfs "$root/sys/fs/cgroup"
  for name in systemd pids memory cpu; do
    mkdir "$root/sys/fs/cgroup/$name"
    option=$name
    [ $name = systemd ] && option=none,name=systemd
    mount -t cgroup -o $option cgroup "$root/sys/fs/cgroup/$name"
  done
else
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
fi
mount -t tmpfs tmpfs "$root/run"
units=$root/etc/systemd/system
rm -rf "$units"/*.wants
: > "$root/etc/fstab"
for unit in systemd-udevd systemd-udev-trigger systemd-modules-load systemd-sysctl systemd-random-seed \
  systemd-logind systemd-remount-fs systemd-journal-flush systemd-update-utmp systemd-networkd systemd-resolved; do
  ln -sf /dev/null "$units/$unit.service"
done
printf '[Unit]\nRequires=basic.target\nAfter=basic.target\nWants=gnnd.service\n' > "$units/alone.target"
prepare=$1
shift
"$prepare" "$root" "$@"
cd "$root"
mkdir -p before
pivot_root . before
umount -l /before
rmdir /before
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin \
  /lib/systemd/systemd --system --unit=alone.target --log-target=console --show-status=0
