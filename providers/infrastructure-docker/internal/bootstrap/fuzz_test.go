package bootstrap

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzScript checks that the script for bootstrap data of tenants has valid syntax, runs only the commands of the plan, and is
// deterministic.
func FuzzScript(f *testing.F) {
	for _, text := range []string{
		"## template: jinja\n#cloud-config\nwrite_files:\n- {path: /a, content: x, owner: 'a:b', permissions: '0640'}\nruncmd: [ls, [a, b]]\n",
		"#cloud-config\nwrite_files:\n- path: /run/kubeadm/kubeadm.yaml\n  content: |\n    apiVersion: kubeadm.k8s.io/v1beta3\n    kind: InitConfiguration\nruncmd: [kubeadm init]\n",
		"#cloud-config\nwrite_files: [{path: \"/a'b\", content: \"'\"}]\nruncmd: [\"'; exit 7; '\", \"END\\nexit 7\", \"$(exit 7)\"]\n",
		"#cloud-config\nwrite_files: &a [*a]\n", "#cloud-config\nruncmd: [~, 1, true, 1e3, {}]\n", "#cloud-config\n- a\n", "#cloud-config\n", "", "#!/bin/sh\n",
		`{"ignition": {"version": "2.3.0"}, "storage": {"files": [{"path": "/etc/kubeadm.sh", "mode": 448, "contents": {"source": "data:,kubeadm%20init"}}]}, "systemd": {"units": [{"name": "kubeadm.service", "enabled": true, "contents": "ExecStart=/etc/kubeadm.sh"}]}}`,
		`{"ignition": {"version": "2.3.0"}, "storage": {"links": [{"path": "/a'b", "target": "';exit 7;'"}], "directories": [{"path": "/$(exit 7)"}]}, "passwd": {"users": [{"name": "u", "gecos": "';exit 7"}]}}`,
	} {
		f.Add([]byte(text), "cloud-config")
		f.Add([]byte(text), "ignition")
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		f.Skip("requires sh")
	}
	f.Fuzz(func(t *testing.T, value []byte, format string) {
		p, err := Read(value, format)
		if err != nil {
			return
		}
		again, err := Read(value, format)
		if diff := cmp.Diff(p, again); diff != "" || err != nil {
			t.Errorf("reading again: %v\n%s", err, diff)
		}
		// With these functions instead of the real ones, the script only counts.
		script := p.script(layout{state: "/nonexistent", scratch: "/nonexistent", sentinel: "/"})
		body := strings.TrimSuffix(script[strings.Index(script, scriptPreamble)+len(scriptPreamble):], scriptEnd)
		const counting = "set -f; scratch=/dev; n=0; decode() { :; }; run() { n=$((n+1)); }; replace() { n=$((n+1)); }; append() { n=$((n+1)); }\n"
		body = strings.ReplaceAll(body, "decode >\"$scratch/command\"", "decode")
		cmd := exec.CommandContext(t.Context(), sh)
		cmd.Stdin = strings.NewReader(counting + body + "printf 'counted %s' \"$n\"\n")
		text, err := cmd.Output()
		want := "counted " + strconv.Itoa(len(p.Before)+len(p.Files)+len(p.Commands))
		if err != nil || !strings.HasSuffix(string(text), want) {
			t.Errorf("%q, %v; want %s of\n%s", text, err, want, body)
		}
	})
}
