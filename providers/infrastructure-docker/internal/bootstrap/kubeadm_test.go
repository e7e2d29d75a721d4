package bootstrap

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const head = "## template: jinja\n#cloud-config\n\n"

const checks = "--ignore-preflight-errors=SystemVerification,Swap,FileContent--proc-sys-net-bridge-bridge-nf-call-iptables"

func file(path, content string) File { return File{Path: path, Mode: 0o644, Content: []byte(content)} }

func shell(i, n int, text string) Command {
	return Command{Name: fmt.Sprintf("command %d of %d in runcmd", i, n), Shell: text}
}

func TestRead(t *testing.T) {
	for _, tt := range []struct {
		reason, value, format string
		want                  *Plan
		fails                 string
	}{
		{reason: "kubeadm ignores what is true of every container", value: head + "runcmd: [\"kubeadm init --config /run/kubeadm/kubeadm.yaml && echo success > /run/x\"]\n",
			want: &Plan{Commands: []Command{shell(1, 1, "kubeadm init "+checks+" --config /run/kubeadm/kubeadm.yaml && echo success > /run/x")}}},
		{reason: "kubeadm as a list", value: head + "runcmd: [[kubeadm, join, --v, 5]]\n", want: &Plan{Commands: []Command{{Name: "command 1 of 1 in runcmd", Args: []string{"kubeadm", "join", checks, "--v", "5"}}}}},
		{reason: "the flag of the user is kept", value: head + "runcmd: [kubeadm join --ignore-preflight-errors=all]\n", want: &Plan{Commands: []Command{shell(1, 1, "kubeadm join --ignore-preflight-errors=all")}}},
		{reason: "phases of kubeadm have other flags", value: head + "runcmd: [kubeadm init phase certs all, echo kubeadm init]\n", want: &Plan{Commands: []Command{shell(1, 2, "kubeadm init phase certs all"), shell(2, 2, "echo kubeadm init")}}},
		{reason: "the script of Ignition documents", format: "ignition", value: `{"ignition": {"version": "2.3.0"}, "storage": {"files": [{"path": "/etc/kubeadm.sh", "mode": 448, "contents": {"source": "data:,set%20-e%0Akubeadm%20init%20--config%20x%0A"}}]}}`,
			want: &Plan{Files: []File{{Path: "/etc/kubeadm.sh", Owner: "0:0", Mode: 0o700, Content: []byte("set -e\nkubeadm init " + checks + " --config x\n")}}}},
		{reason: "errors of the data", value: "#!/bin/sh\n", fails: "not a cloud-config"},
		{reason: "nothing is downloaded", value: head + "write_files: [{path: /a, source: {uri: 'http://example.com/s3cret'}}]\n", fails: `file "/a" has its content elsewhere`},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			got, err := Read([]byte(tt.value), tt.format)
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) || strings.Contains(err.Error(), "s3cret") {
					t.Errorf("error %v, want one with %q", err, tt.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAdaptConfiguration(t *testing.T) {
	const checksV3 = `    - "SystemVerification"
    - "Swap"
    - "FileContent--proc-sys-net-bridge-bridge-nf-call-iptables"
`
	for _, tt := range []struct {
		reason, in, want string
		all              bool
	}{
		{reason: "an init configuration of v1beta3, next to another document",
			in: "---\napiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\nclusterName: c # kept\n---\napiVersion: kubeadm.k8s.io/v1beta3\nkind: InitConfiguration\nnodeRegistration: {}\n",
			want: "apiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\nclusterName: c # kept\n---\napiVersion: kubeadm.k8s.io/v1beta3\nkind: InitConfiguration\nnodeRegistration:\n" +
				"  criSocket: \"unix:///run/containerd/containerd.sock\"\n  ignorePreflightErrors:\n" + checksV3 +
				"  kubeletExtraArgs:\n    eviction-hard: \"nodefs.available<0%,nodefs.inodesFree<0%,imagefs.available<0%\"\n    fail-swap-on: \"false\"\n"},
		{reason: "what the user set is kept", in: "apiVersion: kubeadm.k8s.io/v1beta3\nkind: JoinConfiguration\nnodeRegistration:\n  criSocket: unix:///x\n  ignorePreflightErrors: [Swap]\n  kubeletExtraArgs:\n    eviction-hard: memory.available<1%\n    fail-swap-on: \"true\"\n",
			want: "apiVersion: kubeadm.k8s.io/v1beta3\nkind: JoinConfiguration\nnodeRegistration:\n  criSocket: unix:///x\n  ignorePreflightErrors:\n    - Swap\n    - \"SystemVerification\"\n    - \"FileContent--proc-sys-net-bridge-bridge-nf-call-iptables\"\n" +
				"  kubeletExtraArgs:\n    eviction-hard: memory.available<1%\n    fail-swap-on: \"true\"\n"},
		{reason: "since v1beta4, arguments are a list", in: "apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\nnodeRegistration:\n  ignorePreflightErrors: [ALL]\n  kubeletExtraArgs:\n    - name: fail-swap-on\n      value: \"true\"\n",
			want: "apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\nnodeRegistration:\n  ignorePreflightErrors:\n    - ALL\n  kubeletExtraArgs:\n    - name: fail-swap-on\n      value: \"true\"\n    - name: \"eviction-hard\"\n      value: \"nodefs.available<0%,nodefs.inodesFree<0%,imagefs.available<0%\"\n  criSocket: \"unix:///run/containerd/containerd.sock\"\n", all: true},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			got, all, err := adaptConfiguration([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" || all != tt.all {
				t.Errorf("all = %v, -want +got:\n%s", all, diff)
			}
			again, _, err := adaptConfiguration(got)
			if err != nil || string(again) != string(got) {
				t.Errorf("adapting twice: %v\n%s", err, cmp.Diff(string(got), string(again)))
			}
		})
	}
	// What is not kubeadm's configuration is kept byte by byte, so that kubeadm reports what is wrong with it.
	for _, in := range []string{"nodeRegistration: [", "apiVersion: kubeadm.k8s.io/v1beta3\nkind: InitConfiguration\nnodeRegistration: 7\n"} {
		p := &Plan{Files: []File{file("/run/kubeadm/kubeadm.yaml", in)}}
		p.adapt()
		if got := string(p.Files[0].Content); got != in {
			t.Errorf("%q becomes %q", in, got)
		}
	}
	// kubeadm rejects other checks next to "all".
	p := &Plan{
		Files:    []File{file("/run/kubeadm/kubeadm.yaml", "apiVersion: kubeadm.k8s.io/v1beta3\nkind: InitConfiguration\nnodeRegistration: {ignorePreflightErrors: [all]}\n")},
		Commands: []Command{shell(1, 1, "kubeadm init")},
	}
	p.adapt()
	if p.Commands[0].Shell != "kubeadm init" {
		t.Errorf("command %q", p.Commands[0].Shell)
	}
}
