package cloudinit

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"sigs.k8s.io/cluster-api/providers/bootstrap-kubeadm/internal/bootstrapdata"
)

// TestNoKubeadmWithoutRestore runs the commands of a machine that restores etcd in a shell, with a kubeadm that reports whether it has a
// configuration. With an empty data directory, it would found an empty cluster.
func TestNoKubeadmWithoutRestore(t *testing.T) {
	for _, tt := range []struct {
		reason, script, before string
		initializes            bool
	}{
		{reason: "the script succeeds", script: "exit 0", initializes: true},
		{reason: "the script fails", script: "exit 7"},
		{reason: "the script is killed", script: "kill -9 $$"},
		{reason: "there is no script"},
		{reason: "a command of the user fails", script: "exit 0", before: "false", initializes: true},
		{reason: "a command of the user ignores failures", script: "exit 7", before: "set +e"},
		{reason: "a command of the user decides by kubeadm's configuration", script: "test -e /run/is-init", before: "cp /run/kubeadm/kubeadm.yaml /run/is-init",
			initializes: true},
	} {
		for _, together := range []bool{true, false} { // in one shell, as cloud-init runs them, or each in its own, whatever the others did
			folder := t.TempDir()
			in := bootstrapdata.Input{Kubeadm: "kind: InitConfiguration\n", Restore: &bootstrapdata.Restore{Script: tt.script, Config: "{}"}}
			if tt.before != "" {
				in.PreCommands = []string{tt.before}
			}
			data, err := Init(in)
			if err != nil {
				t.Fatal(err)
			}
			inside := strings.NewReplacer("/etc/", folder+"/etc/", "/run/", folder+"/run/")
			var document struct {
				Files []struct{ Path, Content string } `yaml:"write_files"`
				Lines []string                         `yaml:"runcmd"`
			}
			if err := yaml.Unmarshal([]byte(inside.Replace(string(data))), &document); err != nil {
				t.Fatal(err)
			}
			for _, f := range document.Files {
				if f.Content != "" {
					put(t, f.Path, f.Content)
				}
			}
			put(t, filepath.Join(folder, "bin", "kubeadm"), "#!/bin/sh\ntest -f \"$3\" && echo \"$1\" >"+folder+"/ran\n")
			commands := document.Lines
			if together {
				commands = []string{strings.Join(commands, "\n")}
			}
			for _, c := range commands {
				run := exec.CommandContext(t.Context(), "/bin/sh", "-c", c)
				run.Env = append(os.Environ(), "PATH="+folder+"/bin:"+os.Getenv("PATH"))
				if err := run.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
					t.Fatal(err)
				}
			}
			_, ran := os.Stat(filepath.Join(folder, "ran"))
			_, done := os.Stat(filepath.Join(folder, "run/cluster-api/bootstrap-success.complete"))
			if (ran == nil) != tt.initializes || (done == nil) != tt.initializes {
				t.Errorf("%s, in one shell %t: kubeadm %v, success %v; want %t", tt.reason, together, ran, done, tt.initializes)
			}
		}
	}
}

// put writes an executable file, with its folders.
func put(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o700)); err != nil {
		t.Fatal(err)
	}
}
