package userdata

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzRead checks that bootstrap data of tenants is interpreted deterministically and within limits, with valid paths, and that
// errors do not quote the data.
func FuzzRead(f *testing.F) {
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
	f.Add([]byte("#cloud-config\nwrite_files: [{path: /a, encoding: gz+b64, content: H4sIAAAAAAAA}, {path: /b, source: {uri: x}}]\n"), "")
	f.Add([]byte(`{"ignition": {"version": "2.3.0"}, "storage": {"files": [{"path": "/a", "contents": {"source": "https://x"}}, {"path": "/b", "contents": {"source": "data:;base64,%"}}]}}`), "ignition")
	f.Fuzz(func(t *testing.T, value []byte, format string) {
		d, err := Read(value, format)
		if err != nil {
			if len(value) > 400 && strings.Contains(err.Error(), string(value)) {
				t.Errorf("%v", err)
			}
			return
		}
		again, err := Read(value, format)
		if diff := cmp.Diff(d, again); diff != "" || err != nil {
			t.Errorf("reading again: %v\n%s", err, diff)
		}
		total := 0
		for _, file := range d.Files {
			total += len(file.Content)
			if err := checkPath(file.Path); err != nil {
				t.Error(err)
			}
			if file.External && len(file.Content) > 0 {
				t.Errorf("file %s has content, and should be downloaded", file.Path)
			}
		}
		if total > maxContent || len(d.Files) > maxEntries || len(d.Commands)+len(d.Before) > maxEntries {
			t.Errorf("%d files with %d bytes, %d commands", len(d.Files), total, len(d.Before)+len(d.Commands))
		}
	})
}
