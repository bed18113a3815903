#!/bin/bash
# systemd-clone.sh ROOT REPOSITORY GRAPH: what systemd.sh's copy of this host needs so that gnnd.service runs the clone
# REPOSITORY. GRAPH is /srv/graph there (the unit has a /tmp of its own).
set -e
root=$1
repository=$2
# The repository may lie on a mount of its own.
mkdir -p "$root$repository"
mount --rbind "$repository" "$root$repository"
cp -r "$3" "$root/srv/graph"
units=$root/etc/systemd/system
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
