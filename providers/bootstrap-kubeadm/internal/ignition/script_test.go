package ignition

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/providers/bootstrap-kubeadm/internal/bootstrapdata"
)

// TestScriptRuns runs the script in bash, with a kubeadm that only reports its arguments.
func TestScriptRuns(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is required")
	}
	tests := []struct {
		reason       string
		pre, post    []string
		kubeadm      string // the body of kubeadm
		out          string
		fails        bool
		bootstrapped bool
	}{
		{reason: "commands share variables", pre: []string{"X='a b'", `echo "$X"`}, post: []string{`echo "after $X"`}, out: "a b\nKUBEADM\nafter a b\n", bootstrapped: true},
		{reason: "a statement may have several commands", pre: []string{"if true; then", "echo yes", "fi"}, out: "yes\nKUBEADM\n", bootstrapped: true},
		{reason: "quotes are kept", pre: []string{`echo 'single' "double 'nested'" \' $'tab\t'`}, out: "single double 'nested' ' tab\t\nKUBEADM\n", bootstrapped: true},
		{reason: "several lines", pre: []string{"cat <<'EOF'\n$x\n  y\nEOF\n"}, out: "$x\n  y\nKUBEADM\n", bootstrapped: true},
		{reason: "a comment", pre: []string{"echo x # comment"}, out: "x\nKUBEADM\n", bootstrapped: true},
		{reason: "a failing command prevents kubeadm", pre: []string{"echo x", "false", "echo y"}, out: "x\n", fails: true},
		{reason: "a backslash does not continue with kubeadm", pre: []string{`echo x \`}, out: "x\nKUBEADM\n", bootstrapped: true},
		{reason: "nor does an operator", pre: []string{"true ||"}, fails: true},
		{reason: "nor a pipe", pre: []string{"cat |"}, fails: true},
		{reason: "nor an open statement", pre: []string{"if false; then"}, fails: true},
		{reason: "nor an open quote", pre: []string{`echo "`}, fails: true},
		{reason: "nor one that the quoting uses", pre: []string{"echo '"}, fails: true},
		{reason: "nor a function", pre: []string{"f() {"}, fails: true},
		{reason: "nor an open here-document", pre: []string{"cat <<EOF"}, out: "KUBEADM\n", bootstrapped: true},
		{reason: "a failing kubeadm is no success", kubeadm: "exit 3", post: []string{"echo after"}, out: "KUBEADM\n", fails: true},
		{reason: "commands after kubeadm run after its success was reported", post: []string{"false", "echo y"}, out: "KUBEADM\n", fails: true, bootstrapped: true},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			folder := t.TempDir()
			verbosity := int32(3)
			got, err := Init(bootstrapdata.Input{PreCommands: tt.pre, PostCommands: tt.post, Verbosity: &verbosity, Kubeadm: "kind: InitConfiguration\n"}, bootstrapv1.IgnitionSpec{})
			if err != nil {
				t.Fatal(err)
			}
			config := parse(t, got)
			inside := strings.NewReplacer("/etc/", folder+"/", "/run/", folder+"/run/", " /tmp/", " "+folder+"/moved")
			for _, path := range []string{scriptPath, kubeadmConfigPath} {
				write(t, filepath.Join(folder, filepath.Base(path)), inside.Replace(content(t, *fileAt(t, config, path))))
			}
			write(t, filepath.Join(folder, "kubeadm"), "#!/bin/sh\necho \"KUBEADM $*\"\n"+tt.kubeadm+"\n")
			cmd := exec.CommandContext(t.Context(), bash, filepath.Join(folder, "kubeadm.sh"))
			cmd.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"))
			out, err := cmd.Output()
			want := strings.ReplaceAll(tt.out, "KUBEADM", "KUBEADM init --config "+folder+"/kubeadm.yml --v 3")
			if diff := cmp.Diff(want, string(out)); diff != "" || (err != nil) != tt.fails {
				t.Errorf("error %v, output -want +got:\n%s", err, diff)
			}
			_, sentinel := os.Stat(filepath.Join(folder, "run/cluster-api/bootstrap-success.complete"))
			_, moved := os.Stat(filepath.Join(folder, "moved"))
			_, left := os.Stat(filepath.Join(folder, "kubeadm.yml"))
			if (sentinel == nil) != tt.bootstrapped || (moved == nil) != tt.bootstrapped || (left != nil) != tt.bootstrapped {
				t.Errorf("success %v, moved %v, left %v, want success %t", sentinel, moved, left, tt.bootstrapped)
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestCommandsWithNullBytes(t *testing.T) {
	_, err := Join(bootstrapdata.Input{PreCommands: []string{"true", "a\x00b"}}, bootstrapv1.IgnitionSpec{})
	wantError(t, err, "spec.preKubeadmCommands[1]: must not contain null bytes", "")
	_, err = Join(bootstrapdata.Input{PostCommands: []string{"\x00"}}, bootstrapv1.IgnitionSpec{})
	wantError(t, err, "spec.postKubeadmCommands[0]: must not contain null bytes", "")
}

func TestCheck(t *testing.T) {
	tests := []struct {
		reason string
		spec   bootstrapv1.KubeadmConfigSpec
		retry  bool
		err    string
	}{
		{reason: "contents of Secrets are not needed", spec: bootstrapv1.KubeadmConfigSpec{Files: []bootstrapv1.File{{Path: "/f", Encoding: bootstrapv1.Base64, ContentFrom: bootstrapv1.FileSource{Secret: bootstrapv1.SecretFileSource{Name: "s", Key: "k"}}}}}},
		{reason: "retries", retry: true, err: "spec.useExperimentalRetryJoin: is not supported"},
		{reason: "a field", spec: bootstrapv1.KubeadmConfigSpec{Mounts: []bootstrapv1.MountPoints{{}}}, err: "spec.mounts[0]"},
		{reason: "the user's config", spec: bootstrapv1.KubeadmConfigSpec{Ignition: bootstrapv1.IgnitionSpec{ContainerLinuxConfig: bootstrapv1.ContainerLinuxConfig{AdditionalConfig: "["}}},
			err: "spec.ignition.containerLinuxConfig.additionalConfig: must be YAML"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) { wantError(t, Check(&tt.spec, tt.retry), tt.err, "") })
	}
}
