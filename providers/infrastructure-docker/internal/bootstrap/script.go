package bootstrap

import (
	"encoding/base64"
	"fmt"
	"strings"

	"sigs.k8s.io/cluster-api/providers/internal/userdata"
)

// LogPath is the file in a container with the output of the last attempt. That of the attempt before is in LogPath + ".1".
const LogPath = "/var/log/cluster-api-bootstrap.log"

// sentinelPath is the file whose existence means that the machine has bootstrapped, by contract with bootstrap providers.
const sentinelPath = "/run/cluster-api/bootstrap-success.complete"

// layout has the files of an attempt in a container.
type layout struct {
	// state is a folder that survives restarts of the container, with the lock, the number and the result of attempts.
	state string
	// scratch is a folder in memory, for the script, which contains secrets.
	scratch       string
	log, sentinel string
}

func containerLayout() layout {
	return layout{state: "/var/lib/cluster-api/bootstrap", scratch: "/run/cluster-api-bootstrap", log: LogPath, sentinel: sentinelPath}
}

// script returns the plan as a script for sh. It takes the number of the attempt as its argument. Everything from the bootstrap
// data is quoted or encoded in base64.
func (p *Plan) script(at layout) string {
	var out strings.Builder
	out.WriteString("state=" + userdata.Quote(at.state) + " scratch=" + userdata.Quote(at.scratch) + " sentinel=" +
		userdata.Quote(at.sentinel) + "\n")
	out.WriteString(scriptPreamble)
	if len(p.Ignored) > 0 {
		out.WriteString("echo " + userdata.Quote("Ignored in a container: "+strings.Join(p.Ignored, ", ")) + "\n")
	}
	for _, c := range p.Before {
		renderCommand(&out, c)
	}
	for i, f := range p.Files {
		renderFile(&out, f, i)
	}
	for _, c := range p.Commands {
		renderCommand(&out, c)
	}
	out.WriteString(scriptEnd)
	return out.String()
}

func renderCommand(out *strings.Builder, c Command) {
	if c.Shell != "" {
		fmt.Fprintf(out, "decode >\"$scratch/command\" <<'END'\n%sEND\nrun %s /bin/sh \"$scratch/command\"\n",
			encoded([]byte(c.Shell)), userdata.Quote(c.Name))
		return
	}
	fmt.Fprintf(out, "run %s %s\n", userdata.Quote(c.Name), userdata.QuoteAll(c.Args))
}

func renderFile(out *strings.Builder, f File, number int) {
	owner := f.Owner
	if owner == "" {
		owner = "root"
	}
	how := "replace"
	if f.Append {
		how = "append"
	}
	fmt.Fprintf(out, "%s %s %s %04o %d <<'END'\n%sEND\n",
		how, userdata.Quote(f.Path), userdata.Quote(owner), f.Mode, number, encoded(f.Content))
}

// encoded returns base64 in lines, without END.
func encoded(content []byte) string {
	const width = 76
	text := base64.StdEncoding.EncodeToString(content)
	var out strings.Builder
	for len(text) > width {
		out.WriteString(text[:width] + "\n")
		text = text[width:]
	}
	if text != "" {
		out.WriteString(text + "\n")
	}
	return out.String()
}

// scriptPreamble defines what scripts consist of. Commands do not inherit the lock (file descriptor 9): a daemon that one of them
// starts would hold it.
//
// That the sentinel file existed is remembered, because it is lost when the container is restarted.
//
// The content before the first attempt of a file to append to is kept, so that later attempts do not append twice.
const scriptPreamble = `set -u
umask 022
number=$1
step() {
  if [ -e "$sentinel" ]; then : >"$state/bootstrapped"; fi
  printf '%s' "$1" >"$state/step"
}
fail() { echo "Failed: $1" >&2; exit "$2"; }
decode() { base64 -d; }
run() {
  step "$1"
  echo "Running $1"
  shift
  "$@" 9>&- </dev/null || { code=$?; fail "exit code $code" "$code"; }
}
prepare() {
  step "file $1"
  if [ -d "$1" ]; then fail "$1 is a directory" 1; fi
  mkdir -p "${1%/*}/" || fail "cannot create the directory of $1" 1
}
finish() {
  chown "$2" "$1" || fail "cannot set the owner of $1 to $2" 1
  chmod "$3" "$1" || fail "cannot set the permissions of $1 to $3" 1
}
replace() {
  prepare "$1"
  rm -f "$1"
  (umask 077 && decode >"$1") || fail "cannot write $1" 1
  finish "$1" "$2" "$3"
}
append() {
  prepare "$1"
  if [ ! -e "$state/original/$4" ]; then
    mkdir -p "$state/original"
    if [ -e "$1" ]; then cp "$1" "$state/original.new"; else : >"$state/original.new"; fi || fail "cannot read $1" 1
    mv "$state/original.new" "$state/original/$4"
  fi
  (umask 077 && { cat "$state/original/$4" && decode; } >"$1") || fail "cannot write $1" 1
  finish "$1" "$2" "$3"
}
step "the start of the container runtime"
if command -v ctr >/dev/null 2>&1; then
  until [ -S /run/containerd/containerd.sock ] && ctr version >/dev/null 2>&1; do sleep 0.1; done
fi
if [ "$number" -gt 1 ] && [ ! -e "$sentinel" ] && [ ! -e "$state/bootstrapped" ] && command -v kubeadm >/dev/null 2>&1; then
  step "kubeadm reset"
  echo "Running kubeadm reset, because the previous attempt failed"
  kubeadm reset --force 9>&- </dev/null || echo "kubeadm reset failed, trying anyway" >&2
fi
`

// scriptEnd checks the contract of bootstrap data.
const scriptEnd = `step "the check for $sentinel"
[ -e "$sentinel" ] || fail "all commands succeeded, but none created $sentinel" 1
`

// runner starts an attempt, or waits for the one that is running, and prints the result of the last one: number, exit code,
// whether the sentinel exists, and failed step in one line each, then the end of the log. Its arguments are the number of the
// attempt, checksum of the script, and time limit in seconds; its input is the script. It exits with 0 if it could print a result; for
// other codes, see explained.
//
// The attempt runs in its own session, and holds the lock until it has written its result. An attempt that has ended without a
// result was interrupted by a restart of the container.
const runner = `set -u
umask 077
want=$1 sum=$2 limit=$3 state=$4 scratch=$5 log=$6 sentinel=$7
mkdir -p "$state" "$scratch" "${log%/*}" "${sentinel%/*}" || exit 70
exec 9>"$state/lock" && flock 9 || exit 71
last=$(cat "$state/number" 2>/dev/null) || last=0
if [ "$last" -lt "$want" ]; then
  cat >"$scratch/script" || exit 72
  read -r got rest <<END
$(sha256sum "$scratch/script")
END
  [ "$got" = "$sum" ] || exit 73
  last=$((last + 1))
  rm -f "$state/result" "$state/step"
  echo "$last" >"$state/number.new" && mv "$state/number.new" "$state/number" || exit 74
  if [ -e "$log" ]; then mv "$log" "$log.1"; fi
  setsid sh -c '
    timeout -k 10 "$2" sh "$3/script" "$1"
    code=$?
    if [ "$code" -eq 124 ] || [ "$code" -eq 137 ]; then echo "Failed: time limit of $2 s, or killed" >&2; fi
    rm -rf "$3"
    if [ -e "$5" ]; then : >"$4/bootstrapped"; fi
    echo "$code" >"$4/result.new" && mv "$4/result.new" "$4/result"
  ' bootstrap "$last" "$limit" "$scratch" "$state" "$sentinel" >"$log" 2>&1 </dev/null &
  exec 9>&-
  exec 9>"$state/lock" && flock 9 || exit 71
fi
if ! code=$(cat "$state/result" 2>/dev/null); then
  echo x >"$state/probe" || exit 74 # The disk was full, so the attempt could not write its result.
  code=interrupted
fi
reached=no
if [ -e "$sentinel" ] || [ -e "$state/bootstrapped" ]; then reached=yes; fi
step=$(cat "$state/step" 2>/dev/null) || step=
printf '%s\n%s\n%s\n%s\n' "$last" "$code" "$reached" "$step"
tail -c 3000 "$log" 2>/dev/null
exit 0
`
