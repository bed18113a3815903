#!/bin/bash
# systemd.sh FOLDER REPOSITORY GRAPH: systemd as the first process of namespaces of its own, over a copy of this host's files
# that is thrown away, with gnnd.service of REPOSITORY and nothing else to do. As root, below
#   unshare --mount --pid --fork --uts --ipc --cgroup --kill-child
# FOLDER is empty; GRAPH is /srv/graph there (the unit has a /tmp of its own).
set -e
folder=$1
repository=$2
mount --make-rprivate /
mount -t tmpfs tmpfs "$folder"
mkdir -p "$folder"/{upper,work,root}
root=$folder/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$root"
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
# The repository may lie on a mount of its own.
mkdir -p "$root$repository"
mount --rbind "$repository" "$root$repository"
cp -r "$3" "$root/srv/graph"
units=$root/etc/systemd/system
rm -rf "$units"/*.wants
: > "$root/etc/fstab"
for unit in systemd-udevd systemd-udev-trigger systemd-modules-load systemd-sysctl systemd-random-seed \
  systemd-logind systemd-remount-fs systemd-journal-flush systemd-update-utmp systemd-networkd systemd-resolved; do
  ln -sf /dev/null "$units/$unit.service"
done
printf '[Unit]\nRequires=basic.target\nAfter=basic.target\nWants=gnnd.service\n' > "$units/alone.target"
cp "$repository/deploy/gnnd.service" "$units/gnnd.service"
mkdir -p "$units/gnnd.service.d" "$root/etc/gnnd"
# Sooner than in service, for who waits for it.
printf '[Service]\nWatchdogSec=5\n' > "$units/gnnd.service.d/test.conf"
printf 'state_dir: /var/lib/gnnd\nlisten: unix:/run/gnnd/gnnd.sock\ncpu_devices: 2\nmetrics_listen: 127.0.0.1:0\n' \
  > "$root/etc/gnnd/gnnd.yaml"
if ! grep -q '^gnnd:' "$root/etc/passwd"; then
  echo 'gnnd:x:987:987::/var/lib/gnnd:/usr/sbin/nologin' >> "$root/etc/passwd"
  echo 'gnnd:x:987:' >> "$root/etc/group"
fi
printf '#!/bin/sh\nexec "%s" "%s/dist/main.js" "$@"\n' "$(command -v node)" "$repository" > "$root/usr/bin/gnnd"
chmod 755 "$root/usr/bin/gnnd"
cd "$root"
mkdir -p before
pivot_root . before
umount -l /before
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin \
  /lib/systemd/systemd --system --unit=alone.target --log-target=console --show-status=0
