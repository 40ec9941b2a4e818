#!/bin/sh
# Makes the secrets of compose.yaml that are missing, each random, in FOLDER:
#
#   [CARILLON=PROGRAM] packaging/secrets.sh [FOLDER]
#
# PROGRAM is carillon, or "docker run --rm carillon". FOLDER, by default secrets
# beside this file, is its owner's alone; the files in it are readable for all, since
# containers get them as they are and have users of their own.
set -eu
program=${CARILLON:-carillon}
folder=${1:-$(dirname "$0")/secrets}
umask 077
mkdir -p "$folder"
chmod 0700 "$folder"
while read -r name kind; do
  if [ -s "$folder/$name" ]; then
    continue
  fi
  rm -f "$folder/.new"
  # shellcheck disable=SC2086 # it may be several words
  $program provision secret "$kind" >"$folder/.new" </dev/null
  chmod 0444 "$folder/.new"
  mv "$folder/.new" "$folder/$name"
  echo "made $folder/$name" >&2
done <<'END'
mysql_password password
admin_password password
shop_join_token join-token
shop_api_key api-key
shop_timer_key api-key
END
