package cloudinit

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"k8s.io/utils/ptr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/providers/bootstrap-kubeadm/internal/bootstrapdata"
)

// full is an input that uses every field.
func full() bootstrapdata.Input {
	return bootstrapdata.Input{
		Files: []bootstrapv1.File{
			{Path: "/etc/kubernetes/pki/ca.crt", Owner: "root:root", Permissions: "0640", Content: "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"},
			{Path: "/etc/motd", Append: ptr.To(true), Content: "welcome to {{ ds.meta_data.local_hostname }}"},
			{Path: "/opt/data", Encoding: bootstrapv1.GzipBase64, Permissions: "0600", Content: "H4sIAAAA"},
		},
		BootCommands: []string{"modprobe br_netfilter"},
		PreCommands:  []string{`echo "pre: 'quoted'"`, "hostnamectl set-hostname {{ ds.meta_data.hostname }}", "true"},
		PostCommands: []string{"echo post # not a comment", `printf 'a\tb\n' > /tmp/x`},
		Users: []bootstrapv1.User{{
			Name: "capi", Gecos: "CAPI user", Groups: "users, admin", HomeDir: "/home/capi",
			Inactive: ptr.To(false), Shell: "/bin/bash", Passwd: "$6$rounds=4096$x: y", PrimaryGroup: "capi",
			LockPassword: ptr.To(true), Sudo: "ALL=(ALL) NOPASSWD:ALL", SSHAuthorizedKeys: []string{"ssh-ed25519 AAAA capi@example"},
		}},
		NTP: &bootstrapv1.NTP{Enabled: ptr.To(true), Servers: []string{"ntp.example.com"}},
		DiskSetup: bootstrapv1.DiskSetup{
			Partitions: []bootstrapv1.Partition{
				{Device: "/dev/sdb", Layout: ptr.To(true), Overwrite: ptr.To(false), TableType: "gpt"},
				{Device: "/dev/sdc", TableType: "gpt", DiskLayout: []bootstrapv1.PartitionSpec{
					{Percentage: 33}, {Percentage: 33, PartitionType: "LinuxSwap"}, {Percentage: 34, PartitionType: "0FC63DAF-8483-4772-8E79-3D69D8477DE4"},
				}},
			},
			Filesystems: []bootstrapv1.Filesystem{{Device: "/dev/sdb", Filesystem: "ext4", Label: "etcd", Partition: "1", Overwrite: ptr.To(true), ReplaceFS: "ntfs", ExtraOpts: []string{"-E", "lazy_itable_init=1"}}},
		},
		Mounts:    []bootstrapv1.MountPoints{{"LABEL=etcd", "/var/lib/etcd", "auto", "defaults", "0", "2"}},
		Verbosity: ptr.To[int32](5),
		Kubeadm:   "---\napiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\n",
	}
}

func least() bootstrapdata.Input {
	return bootstrapdata.Input{Kubeadm: "---\nkind: JoinConfiguration\n"}
}

func TestDocuments(t *testing.T) {
	tests := []struct {
		golden, reason string
		render         func() ([]byte, error)
	}{
		{"init-full.yaml", "all sections, in the documented order", func() ([]byte, error) { return Init(full()) }},
		{"init-least.yaml", "what is not asked for leaves no trace", func() ([]byte, error) { return Init(least()) }},
		{"join-full.yaml", "joining differs in the configuration's path and the command", func() ([]byte, error) { return Join(full(), false, false) }},
		{"join-retry-worker.yaml", "a worker retries preflight and kubelet-start", func() ([]byte, error) { return Join(least(), false, true) }},
		{"join-retry-controlplane.yaml", "a control plane machine retries its phases, except etcd's", func() ([]byte, error) { return Join(full(), true, true) }},
	}
	for _, tt := range tests {
		t.Run(tt.golden, func(t *testing.T) {
			got, err := tt.render()
			if err != nil {
				t.Fatal(err)
			}
			golden(t, tt.golden, got, tt.reason)
			if !bytes.HasPrefix(got, []byte("## template: jinja\n#cloud-config\n")) {
				t.Errorf("cloud-init chooses handlers by the first lines, have %q", got[:40])
			}
			sections(t, got)
		})
	}
}

// golden compares with a file of testdata; UPDATE_GOLDEN=1 writes it.
func golden(t *testing.T, name string, got []byte, reason string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s; UPDATE_GOLDEN=1 rewrites %s, -want +got:\n%s", reason, path, diff)
	}
}

// sections checks that a document has only known sections, in the documented order.
func sections(t *testing.T, document []byte) {
	t.Helper()
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil {
		t.Fatalf("the document is not YAML: %v", err)
	}
	var have, want []string
	mapping := root.Content[0].Content
	for i := 0; i < len(mapping); i += 2 {
		have = append(have, mapping[i].Value)
	}
	for _, s := range []string{"write_files", "bootcmd", "runcmd", "ntp", "users", "disk_setup", "fs_setup", "mounts"} {
		if strings.Contains("\n"+string(document), "\n"+s+":") {
			want = append(want, s)
		}
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("sections and their order, -want +got:\n%s", diff)
	}
}

// parsed is what cloud-init reads, as far as strings must survive.
type parsed struct {
	Files []struct {
		Path, Owner, Permissions, Content, Encoding string
		Append                                      bool
	} `yaml:"write_files"`
	Commands []string `yaml:"runcmd"`
	Users    []struct {
		Name, Passwd string
		Sudo         string
	} `yaml:"users"`
}

func TestStringsSurvive(t *testing.T) {
	tests := map[string]string{
		"empty":                       "",
		"no newline at the end":       "a",
		"several newlines at the end": "a\n\n\n",
		"leading spaces":              "  indented\nless\n",
		"leading newline":             "\n\nfirst\n",
		"trailing spaces":             "a  \nb\t\n",
		"tabs":                        "\tall:\n\t\tcc x.c\n",
		"tabs further down":           "all:\n\tcc x.c\n  \t mixed\n",
		"only white space":            " \n\t\n ",
		"carriage returns":            "a\r\nb\r\n",
		"looks like YAML":             "- a: {b: [c]}\n# no comment\n---\n...\n",
		"quotes and backslashes":      `"a" 'b' \n \\ $HOME` + "`x`",
		"unicode":                     "naïve — ünïcode \u2028 €\n",
		"a number":                    "0640",
		"a boolean":                   "yes",
		"a very long line":            strings.Repeat("word ", 200) + "end",
		"control characters":          "bell \a and null \x00 end",
	}
	for reason, content := range tests {
		t.Run(reason, func(t *testing.T) {
			got, err := Init(bootstrapdata.Input{
				Files: []bootstrapv1.File{{Path: "/f", Content: content}}, PreCommands: []string{content},
				Users: []bootstrapv1.User{{Name: "u", Passwd: content, Sudo: content}}, Kubeadm: content,
			})
			if err != nil {
				t.Fatal(err)
			}
			var doc parsed
			if err := yaml.Unmarshal(got, &doc); err != nil {
				t.Fatalf("not YAML: %v\n%s", err, got)
			}
			have := map[string]string{
				"file": doc.Files[0].Content, "kubeadm": doc.Files[1].Content, "command": doc.Commands[0],
				"passwd": doc.Users[0].Passwd, "sudo": doc.Users[0].Sudo,
			}
			want := map[string]string{"file": content, "kubeadm": content, "command": content, "passwd": content, "sudo": content}
			if diff := cmp.Diff(want, have); diff != "" {
				t.Errorf("strings arrive as they were given, -want +got:\n%s\n%s", diff, got)
			}
		})
	}
}

func TestOrderOfFilesAndCommands(t *testing.T) {
	got, err := Join(full(), true, true)
	if err != nil {
		t.Fatal(err)
	}
	var doc parsed
	if err := yaml.Unmarshal(got, &doc); err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range doc.Files {
		paths = append(paths, f.Path+" "+f.Permissions)
	}
	want := []string{"/etc/kubernetes/pki/ca.crt 0640", "/etc/motd ", "/opt/data 0600", "/usr/local/bin/kubeadm-bootstrap-script 0755",
		"/run/kubeadm/kubeadm-join-config.yaml 0640", "/run/cluster-api/placeholder 0640"}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("certificates, then the user's files, the script, kubeadm's configuration, the placeholder, -want +got:\n%s", diff)
	}
	in := full()
	commands := append(append(in.PreCommands, retryScriptPath+" && "+sentinel), in.PostCommands...)
	if diff := cmp.Diff(commands, doc.Commands); diff != "" {
		t.Errorf("the user's commands run around kubeadm, -want +got:\n%s", diff)
	}
}

func TestRetryScriptIsShell(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs bash")
	}
	for _, controlPlane := range []bool{false, true} {
		script := retryScript(controlPlane, " --v 3")
		check := exec.CommandContext(t.Context(), bash, "-n")
		check.Stdin = strings.NewReader(script)
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("controlPlane=%v: %v\n%s", controlPlane, err, out)
		}
		for _, jinja := range []string{"{{", "{%", "{#"} {
			if strings.Contains(script, jinja) {
				t.Errorf("controlPlane=%v: cloud-init would mistake %q for a template", controlPlane, jinja)
			}
		}
	}
}

func TestRetryScriptRetries(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs bash")
	}
	const old, current = "control-plane-join update-status", "etcd-join kubelet-wait-bootstrap"
	tests := []struct {
		reason       string
		controlPlane bool
		// kubeadm answers a call: $n counts them, $* are the arguments.
		kubeadm string
		// has is what kubeadm's help lists; that of v1.22 and v1.36 differs.
		has   string
		want  []string
		fails bool
	}{
		{
			reason: "a worker's phases, once each when all is well", kubeadm: `return 0`,
			want: []string{"preflight", "kubelet-start"},
		},
		{
			reason: "warnings of preflight pass, exit code 2", kubeadm: `case "$*" in *preflight*) return 2;; esac; return 0`,
			want: []string{"preflight", "kubelet-start"},
		},
		{
			reason: "a phase that fails is tried again", kubeadm: `[ "$n" -ge 3 ]`,
			want: []string{"preflight", "preflight", "preflight", "kubelet-start"},
		},
		{
			reason: "after five tries the machine is reset", kubeadm: `case "$*" in reset*) return 0;; esac; return 1`,
			want: []string{"preflight", "preflight", "preflight", "preflight", "preflight", "reset"}, fails: true,
		},
		{
			reason: "exit code 3 is fatal", kubeadm: `case "$*" in reset*) return 0;; esac; return 3`,
			want: []string{"preflight", "reset"}, fails: true,
		},
		{
			reason: "a worker's phases of newer versions", kubeadm: `return 0`, has: current,
			want: []string{"preflight", "kubelet-start", "kubelet-wait-bootstrap"},
		},
		{
			reason: "control plane phases of newer versions", controlPlane: true, kubeadm: `return 0`, has: current,
			want: []string{"preflight", "control-plane-prepare download-certs", "control-plane-prepare certs", "control-plane-prepare kubeconfig",
				"control-plane-prepare control-plane", "kubelet-start", "etcd-join", "kubelet-wait-bootstrap", "control-plane-join mark-control-plane"},
		},
		{
			reason: "nor by newer versions", controlPlane: true, kubeadm: `case "$*" in *etcd-join*) return 1;; esac; return 0`, has: current,
			want: []string{"preflight", "control-plane-prepare download-certs", "control-plane-prepare certs", "control-plane-prepare kubeconfig",
				"control-plane-prepare control-plane", "kubelet-start", "etcd-join", "reset"}, fails: true,
		},
		{
			reason: "control plane phases in their order", controlPlane: true, kubeadm: `return 0`, has: old,
			want: []string{"preflight", "control-plane-prepare download-certs", "control-plane-prepare certs", "control-plane-prepare kubeconfig",
				"control-plane-prepare control-plane", "kubelet-start", "control-plane-join etcd", "control-plane-join update-status",
				"control-plane-join mark-control-plane"},
		},
		{
			reason: "an etcd member is not added twice", controlPlane: true, kubeadm: `case "$*" in *"join etcd"*) return 1;; esac; return 0`,
			want: []string{"preflight", "control-plane-prepare download-certs", "control-plane-prepare certs", "control-plane-prepare kubeconfig",
				"control-plane-prepare control-plane", "kubelet-start", "control-plane-join etcd", "reset"}, fails: true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			calls := filepath.Join(t.TempDir(), "calls")
			fakes := "n=0\nsleep() { :; }\nkubeadm() { case \"$*\" in *--help) printf '%s\\n' " + tt.has + "; return 0;; esac; n=$((n+1)); echo \"$*\" >> " + calls + "; " + tt.kubeadm + "; }\n"
			run := exec.CommandContext(t.Context(), bash)
			run.Stdin = strings.NewReader(fakes + retryScript(tt.controlPlane, " --v 3"))
			out, err := run.CombinedOutput()
			if (err != nil) != tt.fails {
				t.Errorf("err = %v, want failure %v\n%s", err, tt.fails, out)
			}
			raw, err := os.ReadFile(calls)
			if err != nil {
				t.Fatal(err)
			}
			var have []string
			for line := range strings.SplitSeq(strings.TrimSpace(string(raw)), "\n") {
				line = strings.TrimPrefix(strings.TrimSuffix(line, " --config /run/kubeadm/kubeadm-join-config.yaml --v 3"), "join phase ")
				have = append(have, strings.TrimSuffix(line, " -f"))
			}
			if diff := cmp.Diff(tt.want, have); diff != "" {
				t.Errorf("calls of kubeadm, -want +got:\n%s\n%s", diff, out)
			}
		})
	}
}
