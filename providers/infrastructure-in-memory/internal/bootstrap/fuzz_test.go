package bootstrap

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sigs.k8s.io/cluster-api/providers/internal/userdata"
)

// FuzzRead checks that bootstrap data of tenants is parsed deterministically, that encoding and decoding does not change it,
// that unsupported formats are no problem, and that a joining machine has its trust configured.
func FuzzRead(f *testing.F) {
	const head = "## template: jinja\n#cloud-config\nwrite_files:\n"
	for _, text := range []string{
		head + "- path: /run/kubeadm/kubeadm.yaml\n  content: |\n    kind: ClusterConfiguration\n    ---\n    kind: InitConfiguration\n",
		head + "- path: /run/kubeadm/kubeadm-join-config.yaml\n  content: |\n    kind: JoinConfiguration\n" +
			"    discovery: {bootstrapToken: {token: a.b, caCertHashes: [sha256:1]}}\n",
		head + "- path: /run/kubeadm/kubeadm-join-config.yaml\n  content: |\n    kind: JoinConfiguration\n    controlPlane: null\n" +
			"    discovery: {file: {}}\n", head + "- path: /run/kubeadm/kubeadm.yaml\n  encoding: base64\n  content: a2luZDogWAo=\n",
		head + "- path: /run/kubeadm/kubeadm.yaml\n  encoding: gzip\n  content: \"%\"\n",
		head + "- {path: /run/kubeadm/kubeadm.yaml, content: 'certificatesDir: /x'}\n" +
			"- {path: /etc/kubernetes/pki/ca.crt, content: \"-----BEGIN CERTIFICATE-----\\neA==\\n-----END CERTIFICATE-----\"}\n",
		head + "- path: [a]\n", head + "- x\n", head + "null\n", "#cloud-config\nwrite_files: {a: b}\n", "#cloud-config\n- a\n", "#!/bin/sh\n",
		"", "\n\n", "{}", `{"ignition":{}}`,
		"#cloud-config\r\nwrite_files: []\r\n", "\ufeff#cloud-config\n",
		head + "- &a {path: /run/kubeadm/kubeadm.yaml, content: \"- x\"}\n- *a\n", "# é\n\n#cloud-config\n---\na\n---\nb\n",
		head + "- {path: /run/kubeadm/kubeadm-join-config.yaml, content: \"{\\\"kind\\\":\\\"JoinConfiguration\\\"}{\\\"kind\\\":1}\"}\n",
		head + "- {path: /run/kubeadm/kubeadm.yaml, content: \"\\0\\xff\"}\n",
		head + "- {path: /run/kubeadm/kubeadm.yaml, content: 'kind: ClusterConfiguration'}\n- {path: /etc/cluster-api/restore.sh, content: x}\n" +
			"- {path: /etc/kubernetes/pki/ca.crt, content: x}\n- path: /etc/cluster-api/restore.json\n  content: '" + goodJSON + "'\n" +
			"runcmd:\n- /bin/sh /etc/cluster-api/restore.sh\n- kubeadm init --ignore-preflight-errors=all\n",
	} {
		f.Add([]byte(text), "cloud-config")
		f.Add([]byte(text), "")
		f.Add([]byte(text), "ignition")
	}
	for _, command := range []string{"kubeadm init", "kubeadm join"} {
		f.Add([]byte(document(command,
			"kind: JoinConfiguration\ndiscovery: {bootstrapToken: {token: a.b, caCertHashes: [sha256:1]}}\n---\nkind: InitConfiguration\n",
			"x")), "ignition")
	}
	f.Add([]byte(`{"ignition":{"version":"2.3.0"},"storage":{"files":[{"path":"/etc/kubeadm.yml","contents":{"source":"data:,`+
		`kind%3A%20JoinConfiguration%ff"}},{"path":"/etc/kubeadm.sh","contents":{"source":"data:;base64,%"}}]}}`), "ignition")
	f.Fuzz(func(t *testing.T, value []byte, format string) {
		if len(value) > 32<<10 {
			t.Skip("long")
		}
		got, err := Read(value, format)
		if err != nil {
			if !errors.Is(err, userdata.ErrEmpty) || strings.TrimSpace(string(value)) != "" {
				t.Errorf("%v", err)
			}
			return
		}
		again, err := Read(value, format)
		if diff := cmp.Diff(got, again); diff != "" || err != nil {
			t.Errorf("reading again: %v (-first +second):\n%s", err, diff)
		}
		text, err := got.Encode()
		if err != nil {
			t.Fatal(err)
		}
		kept, err := Decode(text)
		if diff := cmp.Diff(got, kept); diff != "" || err != nil {
			t.Errorf("decoding: %v (-before +after):\n%s", err, diff)
		}
		switch got.Action {
		case Unknown:
			if got.ControlPlane || got.Token != "" || got.CAHash != "" {
				t.Errorf("unsupported format, but %+v", got)
			}
		case Init:
			if !got.ControlPlane || got.Token != "" {
				t.Errorf("an initializing machine has %+v", got)
			}
		case Join:
			if got.Token == "" && len(got.CAHashes) > 0 {
				t.Errorf("a joining machine has %+v", got)
			}
		default:
			t.Errorf("action %q", got.Action)
		}
	})
}

// FuzzDecode checks that errors for invalid stored data do not quote it.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{"", "{}", "null", `{"action":"join","token":"secret"`, `{"action":1}`, `[]`, `{"caHashes":["é"]}`,
		`{"token":"secret","caHashes":1}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := Decode(text)
		if err != nil {
			if d.Action != Unknown || d.Token != "" || len(text) > 20 && strings.Contains(err.Error(), text) {
				t.Errorf("%+v, %v", d, err)
			}
			return
		}
		encoded, err := d.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Decode(encoded); err != nil || !cmp.Equal(d, again, cmpopts.EquateEmpty()) {
			t.Errorf("%+v becomes %+v, %v", d, again, err)
		}
	})
}
