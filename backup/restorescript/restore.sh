#!/bin/sh
# Fills the data directory of etcd from a backup, before kubeadm init starts etcd with it. Usage: restore.sh [DIRECTORY]
# restore.json beside this file says where the data is. Neither the address nor the key is printed.
set -eu
umask 077
data=${1:-/var/lib/etcd}
here=$(dirname "$0")
config=$here/restore.json
marker=$here/restored
work=$data/.restore
try_for=${RESTORE_TRY_FOR:-600}
pause=${RESTORE_PAUSE:-10}

log() { echo "restore of etcd: $*" >&2; }
fail() { log "$*"; exit 1; }
value() {
  sed -n 's/.*"'"$1"'"[[:space:]]*:[[:space:]]*"\([^"]*\)".*/\1/p' "$config" | sed 's/\\u0026/\&/g' | head -n 1
}
digits() {
  case $1 in *[!0-9a-fA-F]*) return 1 ;; esac
  [ "$(printf %s "$1" | wc -c)" -eq "$2" ]
}
# The hash and the encryption protect the data, not the connection: the CA of a private store need not be known here.
# Arguments of programs are visible to all users, so the address is not one.
download() {
  rm -f "$work/data"
  if command -v curl >/dev/null 2>&1; then
    printf 'url = "%s"\n' "$url" | curl --config - --silent --show-error --fail --insecure --max-redirs 0 --connect-timeout 10 \
      --speed-limit 1000 --speed-time 60 --output "$work/data"
  else
    printf '%s\n' "$url" | wget -q -t 1 -T 60 --max-redirect=0 --no-check-certificate -O "$work/data" -i - 2>/dev/null
  fi
}

if [ -e "$data/member" ]; then
  [ -e "$marker" ] || fail "$data/member exists and was not restored by this script: use an empty disk"
  rm -f "$config"
  log "$data is restored already"
  exit 0
fi
[ -r "$config" ] || fail "cannot read $config"
for program in openssl tar gzip sha256sum sed; do
  command -v "$program" >/dev/null 2>&1 || fail "this machine has no $program: add it to its image"
done
if ! command -v curl >/dev/null 2>&1; then
  command -v wget >/dev/null 2>&1 || fail "this machine has neither curl nor wget: add one to its image"
  case $(wget --version 2>/dev/null || :) in
    *"GNU Wget"*) ;;
    *) fail "this machine has no curl, and its wget is not GNU Wget: others, as of busybox, cannot read an address from a file: add curl" ;;
  esac
fi
url=$(value url) sum=$(value sha256) key=$(value key) iv=$(value iv)
case $url in http://* | https://*) ;; *) fail "$config: url must begin with http:// or https://" ;; esac
digits "$sum" 64 || fail "$config: sha256 must have 64 hexadecimal digits"
digits "$key" 64 || fail "$config: key must have 64 hexadecimal digits"
digits "$iv" 32 || fail "$config: iv must have 32 hexadecimal digits"
sum=$(printf %s "$sum" | tr A-F a-f)

mkdir -p "$data"
chmod 0700 "$data"
rm -rf "$work"
mkdir "$work"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
end=$(($(date +%s) + try_for))
while :; do
  why="the download failed"
  if download; then
    if [ "$(sha256sum "$work/data" | cut -d ' ' -f 1)" = "$sum" ]; then break; fi
    why="the SHA-256 of the downloaded data is not the expected one"
  fi
  [ "$(date +%s)" -lt "$end" ] || fail "$why, and the last attempt was $try_for seconds after the first"
  log "$why, trying again in $pause seconds"
  sleep "$pause"
done
mkdir "$work/unpacked"
openssl enc -d -aes-256-ctr -K "$key" -iv "$iv" -in "$work/data" | tar -xzf - -C "$work/unpacked" --no-same-owner ||
  fail "the data cannot be decrypted and unpacked: it is damaged, or the key is not that of the data"
[ -f "$work/unpacked/member/snap/db" ] || fail "the data has no member/snap/db: it is not a data directory of etcd"
chmod -R u+rwX,go= "$work/unpacked/member"
: >"$marker"
sync
mv "$work/unpacked/member" "$data/member"
sync
rm -f "$config"
log "$data is restored"
