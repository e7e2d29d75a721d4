package ignition

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/flatcar/ignition/config/v2_3"
	"github.com/flatcar/ignition/config/v2_3/types"
	reports "github.com/flatcar/ignition/config/validate/report"
	"github.com/google/go-cmp/cmp"
	"github.com/vincent-petithory/dataurl"
	"k8s.io/utils/ptr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/providers/bootstrap-kubeadm/internal/bootstrapdata"
)

// certificates are those of a control plane machine, shortened.
func certificates() []bootstrapv1.File {
	return []bootstrapv1.File{
		{Path: "/etc/kubernetes/pki/ca.crt", Owner: "root:root", Permissions: "0640", Content: "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"},
		{Path: "/etc/kubernetes/pki/ca.key", Owner: "root:root", Permissions: "0600", Content: "-----BEGIN EC PRIVATE KEY-----\nMHcC\n-----END EC PRIVATE KEY-----\n"},
	}
}

// full is an input that uses every field.
func full() bootstrapdata.Input {
	return bootstrapdata.Input{
		Certificates: certificates(),
		Files: []bootstrapv1.File{
			{Path: "/etc/motd", Append: ptr.To(true), Content: "welcome\n"},
			{Path: "/opt/data", Encoding: bootstrapv1.Base64, Owner: "capi:500", Permissions: "4755", Content: "AP8K"},
		},
		PreCommands:  []string{`echo "pre: 'quoted'"`, "export GREETING=hello", "true"},
		PostCommands: []string{"echo post # not a comment", "if true; then", "echo $GREETING; fi"},
		Users: []bootstrapv1.User{{
			Name: "capi", Gecos: "CAPI user", Groups: "users, admin", HomeDir: "/home/capi", Inactive: ptr.To(false),
			Shell: "/bin/bash", Passwd: "$6$rounds=4096$x/y", PrimaryGroup: "capi", LockPassword: ptr.To(false),
			Sudo: "ALL=(ALL) NOPASSWD:ALL", SSHAuthorizedKeys: []string{"ssh-ed25519 AAAA capi@example\n"},
		}},
		NTP: &bootstrapv1.NTP{Enabled: ptr.To(true), Servers: []string{"ntp.example.com", "192.0.2.1"}},
		DiskSetup: bootstrapv1.DiskSetup{
			Partitions:  []bootstrapv1.Partition{{Device: "/dev/sdb", Layout: ptr.To(true), Overwrite: ptr.To(true), TableType: "gpt"}},
			Filesystems: []bootstrapv1.Filesystem{{Device: "/dev/sdb1", Filesystem: "ext4", Label: "etcd data", Overwrite: ptr.To(true), ExtraOpts: []string{"-E", "lazy_itable_init=1"}}},
		},
		Mounts: []bootstrapv1.MountPoints{
			{"LABEL=etcd data", "/var/lib/etcd-data/", "ext4", "defaults,noatime", "0", "2"},
			{"tmpfs", "/var/100%", "tmpfs", "size=10%,nofail"},
		},
		Verbosity: ptr.To[int32](5),
		Kubeadm:   "---\napiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\n",
	}
}

func least() bootstrapdata.Input {
	return bootstrapdata.Input{Kubeadm: "---\nkind: JoinConfiguration\n"}
}

// custom is a Container Linux Config as templates of Flatcar Container Linux have it.
func custom() bootstrapv1.IgnitionSpec {
	return bootstrapv1.IgnitionSpec{ContainerLinuxConfig: bootstrapv1.ContainerLinuxConfig{Strict: ptr.To(true), AdditionalConfig: `
systemd:
  units:
  - name: kubeadm.service
    enabled: true
    dropins:
    - name: 10-flatcar.conf
      contents: |
        [Unit]
        Requires=containerd.service coreos-metadata.service
        After=containerd.service coreos-metadata.service
storage:
  files:
  - path: /etc/ntp.conf
    mode: 0600
    contents:
      inline: "server ntp.example.org\n"
  - path: /etc/motd
    mode: 0644
    append: true
    contents:
      inline: "again\n"
`}}
}

func TestDocuments(t *testing.T) {
	joining := least()
	joining.Certificates = certificates()
	tests := []struct {
		golden, reason string
		render         func() (Document, error)
	}{
		{"init-full.txt", "everything set", func() (Document, error) { return Init(full(), bootstrapv1.IgnitionSpec{}) }},
		{"init-custom.txt", "the user's config is merged", func() (Document, error) { return Init(full(), custom()) }},
		{"init.txt", "fields that are not set leave no trace", func() (Document, error) { return Init(least(), bootstrapv1.IgnitionSpec{}) }},
		{"join-controlplane.txt", "a control plane machine has certificates", func() (Document, error) { return Join(joining, bootstrapv1.IgnitionSpec{}) }},
		{"join-worker.txt", "joining differs in the command", func() (Document, error) { return Join(least(), bootstrapv1.IgnitionSpec{}) }},
	}
	for _, tt := range tests {
		t.Run(tt.golden, func(t *testing.T) {
			got, err := tt.render()
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Warnings) > 0 {
				t.Errorf("warnings: %q", got.Warnings)
			}
			golden(t, tt.golden, transcript(t, parse(t, got)), tt.reason)
		})
	}
}

// golden compares with a file of testdata; UPDATE_GOLDEN=1 writes it.
func golden(t *testing.T, name, got, reason string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s; UPDATE_GOLDEN=1 rewrites %s, -want +got:\n%s", reason, path, diff)
	}
}

// parse reads a document with the parser of Ignition, as a machine does. No key may be unknown to it.
func parse(t *testing.T, d Document) types.Config {
	t.Helper()
	config, report, err := v2_3.Parse(d.JSON)
	report.Entries = slices.DeleteFunc(report.Entries, func(e reports.Entry) bool {
		return e.Message == "Config has unrecognized key: tls" // The parser does not find the field, which is embedded.
	})
	if err != nil || len(report.Entries) > 0 {
		t.Fatalf("Ignition rejects the document: %v, %s", err, report.String())
	}
	return config
}

// transcript returns a document with the contents of files and units as text.
func transcript(t *testing.T, c types.Config) string {
	t.Helper()
	var contents strings.Builder
	for i := range c.Storage.Files {
		f := &c.Storage.Files[i]
		text := content(t, *f)
		if !utf8.ValidString(text) {
			text = fmt.Sprintf("%q\n", text)
		}
		fmt.Fprintf(&contents, "--- file %s\n%s", f.Path, text)
		f.Contents.Source = "below"
	}
	for i := range c.Systemd.Units {
		u := &c.Systemd.Units[i]
		fmt.Fprintf(&contents, "--- unit %s\n%s", u.Name, u.Contents)
		u.Contents = "below"
	}
	outline, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(outline) + "\n" + contents.String()
}

func content(t *testing.T, f types.File) string {
	t.Helper()
	decoded, err := dataurl.DecodeString(f.Contents.Source)
	if err != nil {
		t.Fatal(err)
	}
	return string(decoded.Data)
}

// fileAt returns the only file with a path; nil if there is none.
func fileAt(t *testing.T, c types.Config, path string) *types.File {
	t.Helper()
	var found *types.File
	for i := range c.Storage.Files {
		if c.Storage.Files[i].Path != path {
			continue
		}
		if found != nil {
			t.Errorf("%s is in the document twice", path)
		}
		found = &c.Storage.Files[i]
	}
	return found
}

func unitAt(t *testing.T, c types.Config, name string) *types.Unit {
	t.Helper()
	var found *types.Unit
	for i := range c.Systemd.Units {
		if c.Systemd.Units[i].Name != name {
			continue
		}
		if found != nil {
			t.Errorf("%s is in the document twice", name)
		}
		found = &c.Systemd.Units[i]
	}
	return found
}

// wantError checks that an error names a field and, with a value, does not quote it.
func wantError(t *testing.T, err error, want, value string) {
	t.Helper()
	var invalid *InvalidError
	if want == "" {
		if err != nil {
			t.Errorf("unexpected error: %v", err)
		}
		return
	}
	if !errors.As(err, &invalid) || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want one for %s, in one line", err, want)
	}
	if err != nil && value != "" && strings.Contains(err.Error(), value) {
		t.Errorf("the error quotes a value: %v", err)
	}
}

func TestErrorsAreLimited(t *testing.T) {
	in := least()
	for range 100 {
		in.Files = append(in.Files, bootstrapv1.File{Path: "relative"})
	}
	_, err := Join(in, bootstrapv1.IgnitionSpec{})
	if err == nil || strings.Count(err.Error(), "spec.files[") != shown || !strings.HasSuffix(err.Error(), "; 95 more") {
		t.Errorf("error %v", err)
	}
}

func TestRenderingIsDeterministic(t *testing.T) {
	first, err := Init(full(), custom())
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		again, err := Init(full(), custom())
		if err != nil || string(first.JSON) != string(again.JSON) {
			t.Fatalf("the document differs, or %v", err)
		}
	}
}
