#!/usr/bin/env bash
# Makes sure that what the tests and generators need is on this machine.
#
#   build/need.sh PART ...      parts: gcc node mariadb mariadb-tools mysql galera postgresql redis rabbitmq python pyvenv php systemd chromium fonts protoc faketime ip
#
# A missing part is installed from Debian's packages where that is possible
# (apt-get, as root or by sudo without a password). What could not be got is
# said plainly at the end, and the exit status is then 1. No service is
# started: of MariaDB only the programs are installed, not the package that
# runs them as a service. MySQL's, which excludes MariaDB's, is not installed at
# all but unpacked into CARILLON_TEST_MYSQL_HOME, .cache/mysql unless that is set;
# Galera, whose scripts are in MariaDB's package of the service, into
# CARILLON_TEST_GALERA_HOME, .cache/galera; Redis and RabbitMQ, whose packages are services, into CARILLON_TEST_BROKERS_HOME,
# .cache/brokers.
set -euo pipefail

# Node 20.19 is the oldest that Vite 8 runs on. Debian 12 has an older one, so
# it is not installed here.
node_min=20.19
# Part of every generated file's header: another version would look like a
# difference. Debian 12 and 13 and Ubuntu 24.04 have this one.
protoc_want='libprotoc 3.21.12'

# Debian's releases have no MySQL; this suite has one, and all that it runs on.
mysql_suite=sid
mysql_home=${CARILLON_TEST_MYSQL_HOME:-$(cd "$(dirname "$0")/.." && pwd)/.cache/mysql}

galera_home=${CARILLON_TEST_GALERA_HOME:-$(cd "$(dirname "$0")/.." && pwd)/.cache/galera}

brokers_home=${CARILLON_TEST_BROKERS_HOME:-$(cd "$(dirname "$0")/.." && pwd)/.cache/brokers}

# program NAME: is there such a program? Servers may stand outside PATH.
program() {
  PATH="$PATH:/usr/sbin:/usr/local/sbin:/sbin" command -v "$1" >/dev/null
}

# own_mysql: has the machine a mysqld of MySQL's own, 8 or newer?
own_mysql() {
  local said
  said=$(PATH="$PATH:/usr/sbin:/usr/local/sbin:/usr/libexec" mysqld --no-defaults --version 2>/dev/null) &&
    [[ $said =~ Ver\ ([0-9]+)\. && ${BASH_REMATCH[1]} -ge 8 && $said != *MariaDB* ]]
}

have() {
  case "$1" in
    # The race detector links with the C library: gcc alone is not enough.
    gcc) program gcc && echo '#include <stdlib.h>' | gcc -E - >/dev/null 2>&1 ;;
    node) program npm && program node &&
      [ "$(printf '%s\n' "$node_min" "$(node -p process.versions.node)" | sort -V | head -n 1)" = "$node_min" ] ;;
    # mariadb-install-db asks my_print_defaults, which is in another package.
    mariadb) program mariadbd && program mariadb-install-db && program my_print_defaults ;;
    # Backups as docs/guide/backup.md makes them.
    mariadb-tools) program mariadb-dump && program mariadb-binlog && program mariadb-backup ;;
    # As internal/testenv looks for it. MariaDB has a mysqld, too.
    mysql) [ -x "$mysql_home/usr/sbin/mysqld" ] || own_mysql ;;
    # As internal/testenv looks for it.
    galera) program mariadbd && [ -f "$galera_home/usr/lib/galera/libgalera_smm.so" ] ;;
    # As internal/testenv looks for it: Debian keeps it out of PATH.
    postgresql) program postgres || compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null ;;
    # As internal/testenv looks for them.
    redis) [ -x "$brokers_home/usr/bin/redis-server" ] || program redis-server ;;
    rabbitmq) compgen -G "$brokers_home/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server" >/dev/null ||
      compgen -G '/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server' >/dev/null ;;
    # The example of an executor in another language, proto/examples.
    python) program python3 && python3 -c 'import sys; sys.exit(sys.version_info < (3, 8))' ;;
    # The environment that the generator of Python clients is installed in; it
    # wants Python 3.10.
    pyvenv) program python3 && python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null ;;
    # Scripts of the agent's tests.
    php) program php ;;
    # Its program that checks units.
    systemd) program systemd-analyze ;;
    chromium) program chromium || program chromium-browser || program google-chrome ;;
    # Without a Chinese font the browser shows boxes.
    fonts) [ -n "$(fc-list :lang=zh 2>/dev/null | head -n 1)" ] ;;
    # Moves the clock that a database server sees, in fault runs.
    faketime) compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null ;;
    # Network namespaces and bridges, in fault runs.
    ip) program ip ;;
    protoc) program protoc && [ "$(protoc --version)" = "$protoc_want" ] ;;
    *) echo "need.sh: no such part: $1" >&2; exit 2 ;;
  esac
}

packages() {
  case "$1" in
    gcc) echo gcc libc6-dev ;;
    mariadb) echo mariadb-server-core mariadb-client-core ;;
    galera) echo mariadb-server-core mariadb-client-core ;; # what fetch_galera adds to
    mariadb-tools) echo mariadb-client mariadb-backup ;;
    postgresql) echo postgresql ;;
    redis) echo redis-server ;;
    rabbitmq) echo rabbitmq-server ;;
    python) echo python3 ;;
    pyvenv) echo python3 python3-venv ;;
    php) echo php-cli ;;
    systemd) echo systemd ;;
    chromium) echo chromium ;;
    fonts) echo fontconfig fonts-noto-cjk ;;
    protoc) echo protobuf-compiler ;;
    faketime) echo libfaketime ;;
    ip) echo iproute2 ;;
  esac
}

# by_hand PART: what to tell those for whom it could not be installed.
by_hand() {
  case "$1" in
    node) echo "Node.js $node_min or newer, with npm" ;;
    mysql) echo "MySQL 8.0 or newer: apt of a Debian machine fetches it from the suite $mysql_suite; elsewhere install mysqld," \
      "or name a server in CARILLON_TEST_MYSQL_DSN for the tests that need none of their own" ;;
    protoc) echo "protoc, $protoc_want (Debian: protobuf-compiler)" ;;
    galera) echo "Galera and rsync: apt of a Debian machine fetches them, and MariaDB's server has to be installed" ;;
    *) echo "$1 (Debian: $(packages "$1"))" ;;
  esac
}

as_root=()
can_install() {
  program apt-get || return 1
  [ "$(id -u)" -eq 0 ] && return 0
  as_root=(sudo -n)
  program sudo && sudo -n true 2>/dev/null
}

apt() {
  # --no-remove: on a machine with MySQL's server packages, which exclude
  # MariaDB's, apt would remove them for us.
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get \
    -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confold -o Acquire::Retries=3 -q -y "$@" >&2
}

# fetch_mysql unpacks the server and all libraries that it needs, the C library
# among them, with apt's own means and a state of its own: root is not needed,
# and the machine's packages stay as they are. The mirror is the machine's.
fetch_mysql() {
  local work mirror deb options
  program apt-get && program dpkg-deb || return 1
  mirror=$(apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' |
    awk '$1 == "Debian" && $2 !~ /security/ { uri = $2 } END { print uri }')
  [ -n "$mirror" ] || return 1
  mkdir -p "$(dirname "$mysql_home")"
  work=$(mktemp -d "$mysql_home.XXXXXX")
  mkdir -p "$work"/{lists/partial,archives/partial,root}
  : >"$work/status" # nothing is installed: all that it needs is fetched
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $mysql_suite main" >"$work/sources.list"
  options=(-q -y -o Acquire::Retries=3 -o APT::Sandbox::User= -o Dir::Etc::SourceList="$work/sources.list"
    -o Dir::Etc::SourceParts=/dev/null -o Dir::State="$work" -o Dir::State::status="$work/status" -o Dir::Cache="$work")
  if apt-get "${options[@]}" update >&2 &&
    apt-get "${options[@]}" install --no-install-recommends --download-only mysql-server-core >&2 &&
    unpack "$work"/archives/*.deb "$work/root"; then
    # Whole or not at all, and the first of two that fetch at once.
    mv -T "$work/root" "$mysql_home" 2>/dev/null || true
  fi
  rm -rf "$work"
}

# fetch_galera unpacks the library, the scripts that copy a member's data to a new
# one, and rsync, which they call.
fetch_galera() {
  local work
  program apt-get && program dpkg-deb || return 1
  mkdir -p "$(dirname "$galera_home")"
  work=$(mktemp -d "$galera_home.XXXXXX")
  mkdir -p "$work"/{archives,root}
  if (cd "$work/archives" && apt-get -q -o Acquire::Retries=3 -o APT::Sandbox::User= \
    download galera-4 mariadb-server rsync libpopt0 libxxhash0) >&2 &&
    unpack "$work"/archives/*.deb "$work/root"; then
    mv -T "$work/root" "$galera_home" 2>/dev/null || true # as above
  fi
  rm -rf "$work"
}

# fetch_brokers unpacks them and what the machine has not got of what they need.
# apt reads the machine's lists and its state, and changes neither.
fetch_brokers() {
  local work
  program apt-get && program dpkg-deb || return 1
  mkdir -p "$(dirname "$brokers_home")"
  work=$(mktemp -d "$brokers_home.XXXXXX")
  mkdir -p "$work"/{archives/partial,root}
  if apt-get -q -y -o Acquire::Retries=3 -o Debug::NoLocking=1 -o APT::Sandbox::User= -o Dir::Cache::archives="$work/archives" \
    install --no-install-recommends --no-remove --download-only redis-server rabbitmq-server >&2 &&
    unpack "$work"/archives/*.deb "$work/root"; then
    mv -T "$work/root" "$brokers_home" 2>/dev/null || true # as above
  fi
  rm -rf "$work"
}

# unpack PACKAGE... FOLDER
unpack() {
  local deb
  for deb in "${@:1:$#-1}"; do
    case "${deb##*/}" in
      perl* | libperl*) ;; # of scripts that nobody runs here
      *) dpkg-deb -x "$deb" "${!#}" || return 1 ;;
    esac
  done
}

lacking=()
for part in "$@"; do
  have "$part" || lacking+=("$part")
done
[ ${#lacking[@]} -gt 0 ] || exit 0

if [[ " ${lacking[*]} " = *' mysql '* ]]; then
  fetch_mysql || true # said below
fi
installable=()
for part in "${lacking[@]}"; do
  case "$part" in
    mysql | redis | rabbitmq) ;;
    *) installable+=("$part") ;;
  esac
done
brokers=false
case " ${lacking[*]} " in
  *' redis '* | *' rabbitmq '*) brokers=true ;;
esac
if { "$brokers" || [ ${#installable[@]} -gt 0 ]; } && can_install; then
  apt update || true # an old list may still do; the install says if not
  if [[ " ${installable[*]} " = *' postgresql '* ]] && [ ! -e /etc/postgresql-common/createcluster.conf ]; then
    # Debian's package would make a database of its own and start it.
    "${as_root[@]}" install -D -m 644 /dev/stdin /etc/postgresql-common/createcluster.conf <<<'create_main_cluster = false' || true
  fi
  for part in "${installable[@]}"; do
    read -ra names <<<"$(packages "$part")"
    [ ${#names[@]} -eq 0 ] || apt install --no-install-recommends --no-remove "${names[@]}" || true
  done
fi

if [[ " ${lacking[*]} " = *' galera '* ]]; then
  fetch_galera || true # said below
fi
if "$brokers"; then
  fetch_brokers || true # said below
fi

missing=0
for part in "${lacking[@]}"; do
  have "$part" && continue
  missing=1
  echo "need.sh: missing: $(by_hand "$part")" >&2
done
exit "$missing"
