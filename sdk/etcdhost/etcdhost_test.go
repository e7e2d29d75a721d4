package etcdhost

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

func TestAnswer(t *testing.T) {
	command := fleetv1.EtcdCommand{UID: "u.1", Command: fleetv1.EtcdCommandInspect}
	failed := func(text string) fleetv1.EtcdAnswer {
		return fleetv1.EtcdAnswer{UID: "u.1", Command: fleetv1.EtcdCommandInspect, Error: text}
	}
	const unclear = "the machine has answered nothing that can be understood"
	tests := []struct {
		reason, output string
		want           fleetv1.EtcdAnswer
	}{
		{"without a quorum, etcd leaves the leader out", `Welcome!
{"status":{"header":{"cluster_id":"255","member_id":"16","revision":"7","raft_term":"3"},"version":"3.6.8","dbSize":"20480","raftIndex":"12","raftTerm":"3","raftAppliedIndex":"12","errors":["etcdserver: no leader"]},"members":{"header":{"cluster_id":"255"},"members":[{"ID":"16","name":"a"},{"ID":"17","name":"b"},{"ID":"18","isLearner":true}]}}
`, fleetv1.EtcdAnswer{UID: "u.1", Command: fleetv1.EtcdCommandInspect, Member: &fleetv1.EtcdMemberState{
			ID: "10", ClusterID: "ff", RaftIndex: 12, RaftTerm: 3, Revision: 7, Version: "3.6.8", Members: []string{"10", "11"},
		}}},
		{"with a leader", `{"status":{"header":{"cluster_id":"255","member_id":"16","revision":"7"},"leader":"17","raftIndex":"12","raftTerm":"3"},"members":{}}`,
			fleetv1.EtcdAnswer{UID: "u.1", Command: fleetv1.EtcdCommandInspect, Member: &fleetv1.EtcdMemberState{
				ID: "10", ClusterID: "ff", RaftIndex: 12, RaftTerm: 3, Revision: 7, Leader: "11",
			}}},
		{"the script has failed", `{"error":"etcd does not respond on the machine"}`, failed("etcd does not respond on the machine")},
		{"control characters are dropped", "{\"error\":\"a\\u001b[31mb\"}", failed("a[31mb")},
		{"nothing", "", failed(unclear)},
		{"no JSON", "sh: not found", failed(unclear)},
		{"no member", `{"status":{},"members":{}}`, failed(unclear)},
		{"other types", `{"status":{"header":{"member_id":16}}}`, failed(unclear)},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Answer(command, tt.output)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestScript checks the syntax of the script, and that it answers on a machine without etcd.
func TestScript(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("requires sh")
	}
	script := Script(fleetv1.EtcdCommand{UID: "u.1", Command: fleetv1.EtcdCommandInspect})
	if out, err := exec.CommandContext(t.Context(), sh, "-n", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// Without the paths of kubeadm, there is nothing to ask.
	script = strings.ReplaceAll(script, "/etc/kubernetes", t.TempDir())
	out, err := exec.CommandContext(t.Context(), sh, "-c", script).Output()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("{\"error\":\"etcd does not respond on the machine\"}\n", string(out)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestKilled kills the script while the kubelet is stopped. Nobody calls it again.
func TestKilled(t *testing.T) {
	for _, program := range []string{"sh", "flock"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("requires " + program)
		}
	}
	root := t.TempDir()
	write := func(path, content string) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	const etcd = "/proc/99999999" // No process has this ID.
	// The API server of the machine, and that of a control plane in Pods.
	for process, network := range map[string]string{"self": "net:[1]", "99999997": "net:[2]", "99999998": "net:[1]", "99999999": "net:[1]"} {
		write("proc/"+process+"/comm", "kube-apiserver\n")
		write("proc/"+process+"/cmdline", "kube-apiserver\x00--etcd-servers=https://127.0.0.1:2379\x00")
		if err := errors.Join(os.Mkdir(filepath.Join(root, "proc", process, "ns"), 0o700),
			os.Symlink(network, filepath.Join(root, "proc", process, "ns", "net"))); err != nil {
			t.Fatal(err)
		}
	}
	write(etcd+"/comm", "etcd\n")
	write(etcd+"/cmdline", "etcd\x00--data-dir="+root+"/data\x00")
	write(etcd+"/environ", "ETCD_NAME=a\x00")
	write(etcd+"/exe", "#!/bin/sh\necho \"etcd $* $ETCD_NAME\" >>"+root+"/calls\nkill -s KILL $PPID\n")
	write("data/db", "")
	write("bin/systemctl", "#!/bin/sh\necho \"$*\" >>"+root+"/calls\n[ $1 != stop ] || rm -r "+root+etcd+"\n")
	write("bin/systemd-run", "#!/bin/sh\nwhile [ \"${1#--}\" != \"$1\" ]; do shift; done\n\"$@\" &\n")
	write("bin/pkill", "#!/bin/sh\necho \"pkill $*\" >>"+root+"/calls\n")
	write("bin/curl", "#!/bin/sh\nexit 7\n")

	script := Script(fleetv1.EtcdCommand{UID: "u.1", Command: fleetv1.EtcdCommandForceNewCluster})
	for _, path := range []string{"/proc/", "/etc/kubernetes", "/var/lib/cluster-api"} {
		script = strings.ReplaceAll(script, path, root+path)
	}
	script = "kill() { case $* in *99999997|*99999998) echo \"kill $*\" >>" + root + "/calls ;; *) command kill \"$@\" ;; esac; }\n" + script
	read, written, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Env = []string{"PATH=" + filepath.Join(root, "bin") + ":" + os.Getenv("PATH")}
	cmd.ExtraFiles = []*os.File{written} // All processes that the script starts have it.
	failed := cmd.Start()
	_ = written.Close()
	if _, err := io.ReadAll(read); errors.Join(failed, err) != nil {
		t.Fatal(failed, err)
	}
	if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the script has ended with %v", err)
	}
	calls, err := os.ReadFile(filepath.Join(root, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	want := "start kubelet\nstop kubelet\nkill -s KILL 99999998\netcd --data-dir=" + root + "/data --force-new-cluster a\n" +
		"pkill -KILL -x etcd-forced\nstart kubelet\n"
	if diff := cmp.Diff(want, string(calls)); diff != "" {
		t.Errorf("what was called (-want +got):\n%s", diff)
	}
}
