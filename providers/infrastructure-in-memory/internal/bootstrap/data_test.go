package bootstrap

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/providers/internal/userdata"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

// document returns an Ignition document.
func document(command, kubeadm, ca string) string {
	file := func(path, content string) string {
		return fmt.Sprintf(`{"filesystem":"root","path":%q,"contents":{"source":%q}}`, path, "data:;base64,"+base64.StdEncoding.EncodeToString([]byte(content)))
	}
	files := []string{file("/etc/kubeadm.sh", "#!/bin/bash\nset -e\n"+command+"\n"), file("/etc/kubeadm.yml", kubeadm)}
	if ca != "" {
		files = append(files, file("/etc/kubernetes/pki/ca.crt", ca))
	}
	return `{"ignition":{"version":"2.3.0"},"storage":{"files":[` + strings.Join(files, ",") + `]}}`
}

func TestRead(t *testing.T) {
	ca, err := pki.NewCA(pki.ECDSA, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.PEM()
	if err != nil {
		t.Fatal(err)
	}
	caFile := "- path: /etc/kubernetes/pki/ca.crt\n  content: |\n    " + strings.ReplaceAll(strings.TrimSpace(string(pair.Certificate)), "\n", "\n    ") + "\n"
	hash := pki.PublicKeyHash(ca.Certificate)
	const head = "## template: jinja\n#cloud-config\n\nwrite_files:\n"
	initialize := "- path: /run/kubeadm/kubeadm.yaml\n  content: |\n    ---\n    kind: ClusterConfiguration\n    certificatesDir: DIR\n    ---\n    kind: InitConfiguration\n"
	join := "- path: /run/kubeadm/kubeadm-join-config.yaml\n  owner: root:root\n  content: |\n    ---\n    kind: JoinConfiguration\n"
	token := "    discovery:\n      bootstrapToken:\n        token: a.b\n        caCertHashes: [sha256:1]\n"
	tests := []struct {
		reason, value, format string
		want                  Data
		problem               string
	}{
		{reason: "an Ignition document without kubeadm", value: `{"ignition": {"version": "2.3.0"}}`, format: "ignition"},
		{reason: "no Ignition document", value: `{"ignition": {}}`, format: "ignition", problem: "not a valid Ignition document"},
		{reason: "Ignition documents are JSON", value: head + join, format: "ignition", problem: "not a valid Ignition document"},
		{reason: "Ignition initializes", value: document("kubeadm init --config /etc/kubeadm.yml", "kind: ClusterConfiguration\n---\nkind: InitConfiguration\n", string(pair.Certificate)), format: "ignition",
			want: Data{Action: Init, ControlPlane: true, CAHash: hash}},
		{reason: "Ignition initializes without a CA", value: document("kubeadm init", "kind: InitConfiguration\n", ""), format: "ignition", problem: "contains no CA"},
		{reason: "Ignition joins", value: document("kubeadm join --config /etc/kubeadm.yml", "kind: JoinConfiguration\ndiscovery: {bootstrapToken: {token: a.b, caCertHashes: [sha256:1]}}\n", ""), format: "ignition",
			want: Data{Action: Join, Token: "a.b", CAHashes: []string{"sha256:1"}}},
		{reason: "Ignition joins a control plane", value: document("kubeadm join", "kind: JoinConfiguration\ncontrolPlane: {}\ndiscovery: {file: {}}\n", string(pair.Certificate)), format: "ignition",
			want: Data{Action: Join, ControlPlane: true, CAHash: hash}},
		{reason: "files that the data does not contain are not read", value: strings.ReplaceAll(document("kubeadm join", "x", ""), "data:", "https:"), format: "ignition"},
		{reason: "a script is not supported", value: "#!/bin/sh\nkubeadm init\n"},
		{reason: "cloud-config without kubeadm is not supported", value: "#cloud-config\nruncmd: [ls]\n"},
		{reason: "cloud-config must be YAML", value: "#cloud-config\nwrite_files: [", problem: "not valid YAML"},
		{reason: "init with a CA", value: head + caFile + initialize, want: Data{Action: Init, ControlPlane: true, CAHash: hash}},
		{reason: "init without a CA generates an untrusted one", value: head + initialize, problem: "contains no CA"},
		{reason: "init with certificates elsewhere", value: head + strings.ReplaceAll(initialize, "DIR", "/somewhere"), want: Data{Action: Init, ControlPlane: true}},
		{reason: "init takes precedence over join", value: head + caFile + initialize + join + token, want: Data{Action: Init, ControlPlane: true, CAHash: hash}},
		{reason: "a worker joins", value: head + join + token, want: Data{Action: Join, Token: "a.b", CAHashes: []string{"sha256:1"}}},
		{reason: "a control plane joins", value: head + caFile + join + token + "    controlPlane: {}\n",
			want: Data{Action: Join, ControlPlane: true, Token: "a.b", CAHashes: []string{"sha256:1"}, CAHash: hash}},
		{reason: "a control plane requires a CA to join", value: head + join + token + "    controlPlane: {}\n", problem: "contains no CA"},
		{reason: "discovery with a kubeconfig", value: head + join + "    discovery: {file: {kubeConfigPath: /x}}\n", want: Data{Action: Join}},
		{reason: "join requires discovery", value: head + join, problem: "bootstrapToken or file must be set"},
		{reason: "the CA must be pinned", value: head + join + "    discovery: {bootstrapToken: {token: a.b}}\n", problem: "caCertHashes"},
		{reason: "pinning may be disabled explicitly", value: head + join + "    discovery: {bootstrapToken: {token: a.b, unsafeSkipCAVerification: true}}\n", want: Data{Action: Join, Token: "a.b"}},
		{reason: "an encoded file", value: head + "- path: /run/kubeadm/kubeadm-join-config.yaml\n  encoding: base64\n  content: a2luZDogSm9pbkNvbmZpZ3VyYXRpb24K\n", problem: "bootstrapToken or file must be set"},
		{reason: "an invalid encoded file", value: head + "- path: /run/kubeadm/kubeadm.yaml\n  encoding: base64\n  content: \"%\"\n", problem: `file "/run/kubeadm/kubeadm.yaml": the content is not valid base64`},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			got, err := Read([]byte(strings.ReplaceAll(tt.value, "DIR", defaultCertificates)), tt.format)
			if err != nil {
				t.Fatal(err)
			}
			if tt.problem != "" {
				if !strings.Contains(got.Problem, tt.problem) {
					t.Errorf("problem %q, want %q", got.Problem, tt.problem)
				}
				return
			}
			if (got.CA != "") != (got.CAHash != "") {
				t.Errorf("%s: hash %q of CA %q", tt.reason, got.CAHash, got.CA)
			}
			got.CA = ""
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			text, err := got.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if again, err := Decode(text); err != nil || !cmp.Equal(got, again) {
				t.Errorf("decoded after encoding: %+v, %v", again, err)
			}
		})
	}
	bomb := "x: &a " + strings.Repeat("x", 10_000) + "\ny: [" + strings.Repeat("*a, ", 2000) + "]\n"
	for reason, value := range map[string]string{
		"aliases that expand": "#cloud-config\n" + bomb,
		"the same in a file":  head + "- path: /run/kubeadm/kubeadm.yaml\n  content: |\n    " + strings.ReplaceAll(bomb, "\n", "\n    ") + "\n",
	} {
		if got, err := Read([]byte(value), ""); err != nil || got.Action != Unknown || !strings.Contains(got.Problem, "expand to more than") && !strings.Contains(got.Problem, "invalid YAML") {
			t.Errorf("%s: %v, %v", reason, got, err)
		}
	}
	if _, err := Read([]byte(" \n"), ""); !errors.Is(err, userdata.ErrEmpty) {
		t.Errorf("empty data: %v", err)
	}
}
