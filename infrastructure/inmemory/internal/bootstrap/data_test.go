package bootstrap

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/provider/pki"
)

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
		{reason: "ignition is not understood", value: `{"ignition": {}}`, format: "ignition"},
		{reason: "a script is not understood", value: "#!/bin/sh\nkubeadm init\n"},
		{reason: "cloud-config without kubeadm is not understood", value: "#cloud-config\nruncmd: [ls]\n"},
		{reason: "what has the mark of cloud-config has to be YAML", value: "#cloud-config\nwrite_files: [", problem: "invalid YAML"},
		{reason: "init with a CA", value: head + caFile + initialize, want: Data{Action: Init, ControlPlane: true, CAHash: hash}},
		{reason: "init without a CA generates an untrusted one", value: head + initialize, problem: "contains no CA"},
		{reason: "unless certificates are elsewhere", value: head + strings.ReplaceAll(initialize, "DIR", "/somewhere"), want: Data{Action: Init, ControlPlane: true}},
		{reason: "init counts where both are there", value: head + caFile + initialize + join + token, want: Data{Action: Init, ControlPlane: true, CAHash: hash}},
		{reason: "a worker joins", value: head + join + token, want: Data{Action: Join, Token: "a.b", CAHashes: []string{"sha256:1"}}},
		{reason: "a control plane joins", value: head + caFile + join + token + "    controlPlane: {}\n",
			want: Data{Action: Join, ControlPlane: true, Token: "a.b", CAHashes: []string{"sha256:1"}, CAHash: hash}},
		{reason: "a control plane requires a CA to join", value: head + join + token + "    controlPlane: {}\n", problem: "contains no CA"},
		{reason: "a kubeconfig takes the place of a token", value: head + join + "    discovery: {file: {kubeConfigPath: /x}}\n", want: Data{Action: Join}},
		{reason: "without discovery there is nothing to join", value: head + join, problem: "bootstrapToken or file must be set"},
		{reason: "trust is pinned, or given up in so many words", value: head + join + "    discovery: {bootstrapToken: {token: a.b}}\n", problem: "caCertHashes"},
		{reason: "it may be given up", value: head + join + "    discovery: {bootstrapToken: {token: a.b, unsafeSkipCAVerification: true}}\n", want: Data{Action: Join, Token: "a.b"}},
		{reason: "a file may be encoded", value: head + "- path: /run/kubeadm/kubeadm-join-config.yaml\n  encoding: base64\n  content: a2luZDogSm9pbkNvbmZpZ3VyYXRpb24K\n", problem: "bootstrapToken or file must be set"},
		{reason: "a file may be broken", value: head + "- path: /run/kubeadm/kubeadm.yaml\n  encoding: base64\n  content: \"%\"\n", problem: "cannot decode file /run/kubeadm/kubeadm.yaml"},
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
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			text, err := got.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if again, err := Decode(text); err != nil || !cmp.Equal(got, again) {
				t.Errorf("kept with the machine it is %+v, %v", again, err)
			}
		})
	}
	bomb := "x: &a " + strings.Repeat("x", 10_000) + "\ny: [" + strings.Repeat("*a, ", 2000) + "]\n"
	for reason, value := range map[string]string{
		"aliases that expand": "#cloud-config\n" + bomb,
		"the same in a file":  head + "- path: /run/kubeadm/kubeadm.yaml\n  content: |\n    " + strings.ReplaceAll(bomb, "\n", "\n    ") + "\n",
	} {
		if got, err := Read([]byte(value), ""); err != nil || !strings.Contains(got.Problem, "invalid YAML") {
			t.Errorf("%s: %v, %v", reason, got, err)
		}
	}
	if _, err := Read([]byte(" \n"), ""); !errors.Is(err, ErrEmpty) {
		t.Errorf("empty data: %v", err)
	}
}
