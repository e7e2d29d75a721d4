package ignition

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/bootstrap-kubeadm/internal/bootstrapdata"
)

// TestNoKubeadmWithoutRestore runs the script of a machine that restores etcd. With an empty data directory, kubeadm would found an empty
// cluster.
func TestNoKubeadmWithoutRestore(t *testing.T) {
	for _, tt := range []struct {
		reason, script, before string
		initializes            bool
	}{
		{reason: "the script succeeds", script: "exit 0", initializes: true},
		{reason: "the script fails", script: "exit 7"},
		{reason: "the script is killed", script: "kill -9 $$"},
		{reason: "a command of the user ignores failures", script: "exit 7", before: "set +e"},
		{reason: "an open here-document of the user", script: "exit 7", before: "cat <<EOF"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			folder := t.TempDir()
			in := bootstrapdata.Input{Kubeadm: "kind: InitConfiguration\n", Restore: &bootstrapdata.Restore{Script: tt.script, Config: "{}"}}
			if tt.before != "" {
				in.PreCommands = []string{tt.before}
			}
			got, err := Init(in, bootstrapv1.IgnitionSpec{})
			if err != nil {
				t.Fatal(err)
			}
			config := parse(t, got)
			inside := strings.NewReplacer("/etc/cluster-api/", folder+"/", "/etc/", folder+"/", "/run/", folder+"/run/", " /tmp/", " "+folder+"/moved")
			for _, path := range []string{scriptPath, kubeadmConfigPath, fleetv1.RestoreScriptPath} {
				write(t, filepath.Join(folder, filepath.Base(path)), inside.Replace(content(t, *fileAt(t, config, path))))
			}
			write(t, filepath.Join(folder, "kubeadm"), "#!/bin/sh\necho >"+folder+"/ran\n")
			run := exec.CommandContext(t.Context(), "bash", filepath.Join(folder, "kubeadm.sh"))
			run.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"))
			err = run.Run()
			_, ran := os.Stat(filepath.Join(folder, "ran"))
			if (err == nil) != tt.initializes || (ran == nil) != tt.initializes {
				t.Errorf("error %v, kubeadm %v, want it to run: %t", err, ran, tt.initializes)
			}
		})
	}
}
