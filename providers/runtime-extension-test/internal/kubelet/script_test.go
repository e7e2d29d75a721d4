package kubelet

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// host has the files and programs that the script uses: a kubelet that is restarted with the flags of the file, and exits at once with those
// that it does not accept.
type host struct {
	t   *testing.T
	dir string
}

// systemctl keeps the process ID of the kubelet, and its command line in a folder instead of /proc.
const systemctl = `#!/bin/sh
cd "$(dirname "$0")"
case $1 in
show) cat pid ;;
restart)
	echo restart >>restarts
	n=$(wc -l <restarts)
	mkdir proc/$n
	sed -e 's/^[^"]*"/kubelet /' -e 's/"$//' flags.env | tr ' ' '\0' >proc/$n/cmdline
	if grep -q invalid flags.env; then echo 0 >pid; else echo $n >pid; fi ;;
esac
`

func newHost(t *testing.T, flags string) *host {
	t.Helper()
	h := &host{t, t.TempDir()}
	h.write("flags.env", `KUBELET_KUBEADM_ARGS="`+flags+"\"\n")
	for name, text := range map[string]string{"systemctl": systemctl, "sleep": "#!/bin/sh\n"} {
		h.write(name, text)
		if err := os.Chmod(filepath.Join(h.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(h.dir, "proc"), 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(filepath.Join(h.dir, "systemctl"), "restart").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return h
}

func (h *host) write(name, text string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) read(name string) string {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.dir, name))
	if err != nil {
		h.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// run runs the script, and returns whether it succeeded, and how often the kubelet was restarted by it.
func (h *host) run(args ...string) (ok bool, restarts int) {
	h.t.Helper()
	before := strings.Count(h.read("restarts"), "restart")
	text := strings.NewReplacer("/var/lib/kubelet/kubeadm-flags.env", h.dir+"/flags.env", "/proc/", h.dir+"/proc/").Replace(script)
	cmd := exec.CommandContext(h.t.Context(), "sh", append([]string{"-c", text, "script.sh"}, args...)...)
	cmd.Env = append(os.Environ(), "PATH="+h.dir+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	h.t.Logf("%v: %s", err, out)
	return err == nil, strings.Count(h.read("restarts"), "restart") - before
}

func TestScript(t *testing.T) {
	for _, tc := range []struct {
		reason, before string
		args           []string
		ok             bool
		restarts       int
		after          string
	}{
		{
			reason: "a flag is changed, and others stay", before: "--max-pods=100 --node-ip=::", args: []string{"max-pods", "--max-pods=50"},
			ok: true, restarts: 1, after: "--node-ip=:: --max-pods=50",
		},
		{
			reason: "a flag is added, and another one removed", before: "--node-ip=:: --v=4", args: []string{"max-pods|v", "--max-pods=50"},
			ok: true, restarts: 1, after: "--node-ip=:: --max-pods=50",
		},
		{reason: "without flags, all with these names are removed", before: "--v=4 --max-pods=50", args: []string{"max-pods|v"}, ok: true, restarts: 1, after: ""},
		{
			reason: "names are compared as a whole", before: "--max-pods-x=1 --v=2", args: []string{"max-pods|vm", "--max-pods=50"},
			ok: true, restarts: 1, after: "--max-pods-x=1 --v=2 --max-pods=50",
		},
		{reason: "a kubelet that runs with the flags is not restarted", before: "--max-pods=50", args: []string{"max-pods", "--max-pods=50"}, ok: true, after: "--max-pods=50"},
		{
			reason: "flags that the kubelet does not accept are rolled back", before: "--max-pods=100", args: []string{"max-pods", "--max-pods=invalid"},
			restarts: 2, after: "--max-pods=100",
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			h := newHost(t, tc.before)
			ok, restarts := h.run(tc.args...)
			if ok != tc.ok || restarts != tc.restarts {
				t.Errorf("succeeded: %t, %d restarts; want %t, %d", ok, restarts, tc.ok, tc.restarts)
			}
			after := strings.Join(strings.Fields(strings.Trim(strings.TrimPrefix(h.read("flags.env"), "KUBELET_KUBEADM_ARGS="), `"`)), " ")
			if after != tc.after {
				t.Errorf("flags %q, want %q", after, tc.after)
			}
			if !tc.ok {
				return
			}
			if ok, restarts := h.run(tc.args...); !ok || restarts != 0 {
				t.Errorf("run again, it succeeds: %t, with %d restarts; want none", ok, restarts)
			}
		})
	}
}

// TestScriptIsInterrupted: the file was written, and the kubelet was not restarted.
func TestScriptIsInterrupted(t *testing.T) {
	h := newHost(t, "--max-pods=100")
	h.write("flags.env", "KUBELET_KUBEADM_ARGS=\"--max-pods=50\"\n")
	if ok, restarts := h.run("max-pods", "--max-pods=50"); !ok || restarts != 1 {
		t.Errorf("succeeded: %t, %d restarts; want one", ok, restarts)
	}
	// The same, with flags that the kubelet does not accept: what was there before is kept until it runs.
	h.write("flags.env.before", "KUBELET_KUBEADM_ARGS=\"--max-pods=50\"\n")
	h.write("flags.env", "KUBELET_KUBEADM_ARGS=\"--max-pods=invalid\"\n")
	if ok, _ := h.run("max-pods", "--max-pods=invalid"); ok || !strings.Contains(h.read("flags.env"), "--max-pods=50") {
		t.Errorf("succeeded: %t, with the flags %s; want those before the interruption", ok, h.read("flags.env"))
	}
}
