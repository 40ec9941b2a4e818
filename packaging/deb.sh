#!/usr/bin/env bash
# Makes a Debian package:
#
#   packaging/deb.sh BINARY ARCH VERSION FILE
#
# It installs the binary, the unit and its settings, and starts nothing: who
# installs it says first which database it is to use.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
binary=$1 arch=$2 version=$3 file=$4

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 0755 "$root"
install -D -m 0755 "$binary" "$root/usr/bin/carillon"
install -D -m 0644 "$here/carillon.service" "$root/lib/systemd/system/carillon.service"
install -D -m 0644 "$here/server.yaml" "$root/etc/carillon/server.yaml"
install -D -m 0644 "$here/../LICENSE" "$root/usr/share/doc/carillon/copyright"
install -D -m 0644 "$here/../NOTICE" "$root/usr/share/doc/carillon/NOTICE"
mkdir -m 0755 "$root/DEBIAN"
echo /etc/carillon/server.yaml >"$root/DEBIAN/conffiles"
cat >"$root/DEBIAN/control" <<EOF
Package: carillon
Version: $version
Architecture: $arch
Maintainer: Carillon maintainers <maintainers@carillon.invalid>
Section: admin
Priority: optional
Installed-Size: $(du -sk --apparent-size "$root/usr" "$root/lib" "$root/etc" | awk '{n += $1} END {print n}')
Homepage: https://github.com/carillon-sched/carillon
Description: distributed job platform
 Runs work at the right time, once, somewhere in a fleet: cron jobs, timers,
 calls. This is the admin node, the agent and the command line.
EOF
cat >"$root/DEBIAN/postinst" <<'EOF'
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  # After an upgrade the new version takes over; it is not started otherwise.
  if [ -n "${2:-}" ]; then
    systemctl try-restart carillon.service
  fi
fi
EOF
cat >"$root/DEBIAN/prerm" <<'EOF'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl --no-reload disable --now carillon.service
fi
EOF
chmod 0755 "$root/DEBIAN/postinst" "$root/DEBIAN/prerm"
find "$root" -exec touch -h -d "@${SOURCE_DATE_EPOCH:-0}" {} +
dpkg-deb --root-owner-group --build "$root" "$file" >/dev/null
