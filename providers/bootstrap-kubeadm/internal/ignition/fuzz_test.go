package ignition

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/flatcar/ignition/config/v2_3"
	"github.com/flatcar/ignition/config/v2_3/types"
	"github.com/flatcar/ignition/config/validate/report"
	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/providers/bootstrap-kubeadm/internal/bootstrapdata"
)

func parseWithWarnings(d Document) (types.Config, report.Report, error) { return v2_3.Parse(d.JSON) }

// Whatever strings a spec has: either the error names the fields, in a short line, or Ignition accepts the document, and files,
// commands and users are unchanged in it. No string adds a file, a unit or a section of a unit.
func FuzzDocument(f *testing.F) {
	for _, evil := range []string{
		"", "x", "/x", "/x/../../y", "/x\n[Install]\nAlias=y.service", "a:b", "root", "0", "LABEL=x y", "%n", `x\`, "'", "';reboot;'", "$(reboot)", "`reboot`", "\x00", "\xff\xfe",
		"\u2028", "ALL=(ALL) ALL\nroot ALL", "x PasswordAuthentication yes", "#", "-o", "data:,x", "{{ .Evil }}", "😀", "ssh-ed25519 AAAA x", "$6$x", "ext4", "noauto,nofail", strings.Repeat("é", 200),
	} {
		f.Add("/etc/x", "u", "content\n", evil, "ext4")
		f.Add(evil, evil, evil, evil, evil)
		f.Add("/etc/x", "u", evil, "/y", evil)
	}
	f.Fuzz(func(t *testing.T, path, name, content, value, kind string) {
		if len(content) > 64<<10 {
			t.Skip("long")
		}
		in := bootstrapdata.Input{
			Certificates: certificates(),
			Files:        []bootstrapv1.File{{Path: path, Owner: name, Content: content}},
			PreCommands:  []string{content}, PostCommands: []string{value, content},
			Users:     []bootstrapv1.User{{Name: name, Gecos: value, Groups: kind, HomeDir: path, Shell: path, Passwd: value, LockPassword: ptr.To(false), Sudo: value, SSHAuthorizedKeys: []string{value}}},
			NTP:       &bootstrapv1.NTP{Enabled: ptr.To(true), Servers: []string{name}},
			DiskSetup: bootstrapv1.DiskSetup{Partitions: []bootstrapv1.Partition{{Device: path}}, Filesystems: []bootstrapv1.Filesystem{{Device: path, Filesystem: kind, Label: name, ExtraOpts: []string{value}}}},
			Mounts:    []bootstrapv1.MountPoints{{value, path, kind, value}},
			Kubeadm:   content,
		}
		for _, reduced := range []bootstrapdata.Input{in, {Certificates: in.Certificates, Files: in.Files, PreCommands: in.PreCommands, PostCommands: in.PostCommands, Kubeadm: content}} {
			checkDocument(t, reduced)
		}
	})
}

func checkDocument(t *testing.T, in bootstrapdata.Input) {
	t.Helper()
	got, err := Init(in, bootstrapv1.IgnitionSpec{})
	if err != nil {
		var invalid *InvalidError
		if !errors.As(err, &invalid) || !strings.HasPrefix(err.Error(), "spec.") || strings.ContainsAny(err.Error(), "\n\x00") || len(err.Error()) > 8<<10 {
			t.Fatalf("error %v", err)
		}
		return
	}
	config := parse(t, got)
	path, _ := cleanPath(in.Files[0].Path, nil)
	if f := fileAt(t, config, path); f == nil || content(t, *f) != in.Files[0].Content {
		t.Errorf("file %q: %+v", path, f)
	}
	if f := fileAt(t, config, kubeadmConfigPath); f == nil || content(t, *f) != in.Kubeadm {
		t.Errorf("kubeadm's configuration: %+v", f)
	}
	if script := content(t, *fileAt(t, config, scriptPath)); !strings.Contains(script, "\n'\nkubeadm init --config /etc/kubeadm.yml\n"+sentinel) {
		t.Errorf("script:\n%s", script)
	}
	units := 1 + len(in.Mounts)
	if in.NTP != nil {
		units++
	}
	if len(config.Systemd.Units) != units {
		t.Errorf("%d units, want %d", len(config.Systemd.Units), units)
	}
	for _, u := range config.Systemd.Units {
		if strings.HasSuffix(u.Name, ".mount") && strings.Count(u.Contents, "\n[")+strings.Count(u.Contents[:1], "[") != 3 {
			t.Errorf("unit %s:\n%s", u.Name, u.Contents)
		}
	}
	if len(in.Users) == 0 {
		return
	}
	u := config.Passwd.Users[0]
	if diff := cmp.Diff([]any{in.Users[0].Name, in.Users[0].Gecos, in.Users[0].HomeDir}, []any{u.Name, u.Gecos, u.HomeDir}); diff != "" {
		t.Errorf("user, -want +got:\n%s", diff)
	}
}

// Whatever a user's config is: it is rejected, in a short line that names the field, or Ignition accepts the document, and
// kubeadm's files are in it unless the config replaces them. A strict config has no warnings.
func FuzzAdditionalConfig(f *testing.F) {
	for _, text := range []string{
		custom().ContainerLinuxConfig.AdditionalConfig, "", "{}", "[]", "null", "a", "- a", "passwd: {users: [{name: core}]}", "systemd: {units: [{name: kubeadm.service, mask: true}]}",
		"storage: {files: [{path: /etc/kubeadm.sh, contents: {inline: x}}]}", "storage: {files: [{path: /x, contents: {local: /etc/passwd}}]}", "storage: &s {files: [{path: /x}]}\n<<: *s",
		"storage: {files: [{path: /x, contents: {remote: {url: \"http://x\", verification: {hash: {function: sha512, sum: x}}}}}]}", "storage: {files: [&f {path: /x, contents: &c {remote: {url: \"http://x\"}}}, *f, {contents: *c}]}",
		"storage: {disks: [{device: /dev/x, partitions: [{size: 1GiB, start: -1}]}], raid: [{name: r, level: raid1, devices: [/dev/x]}]}", "storage: {filesystems: [{name: root, path: /x}, {mount: {device: /x, format: ext4, create: {force: true}}}]}",
		"etcd: {version: 3.3.9, name: x}", "etcd: {version: 9}", "flannel: {etcd_prefix: x}", "docker: {flags: [x]}", "update: {group: stable}", "locksmith: {reboot_strategy: x}", "networkd: {units: [{name: x.network}]}",
		"ignition: {config: {replace: {source: \"http://x\"}, append: [{source: \"%\"}]}, timeouts: {http_total: -1}, security: {tls: {certificate_authorities: [{source: x}]}}}", "version: 7", "a: &a [*a]", "x: !!binary /w==", "systemd: {units: [{name: x.service, contents: !!binary /w==}]}", "\xff", "\x00",
	} {
		f.Add(text, true)
		f.Add(text, false)
	}
	f.Fuzz(func(t *testing.T, text string, strict bool) {
		if len(text) > 64<<10 {
			t.Skip("long")
		}
		got, err := Init(least(), additional(text, strict))
		if err != nil {
			var invalid *InvalidError
			if !errors.As(err, &invalid) || !strings.HasPrefix(err.Error(), "spec.ignition.containerLinuxConfig.additionalConfig: ") && err.Error() != "spec: the Ignition document generated from it is invalid" {
				t.Fatalf("error %v", err)
			}
			return
		}
		if strict && len(got.Warnings) > 0 {
			t.Errorf("warnings %q", got.Warnings)
		}
		config, report, err := parseWithWarnings(got)
		if err != nil || report.IsFatal() || !json.Valid(got.JSON) {
			t.Fatalf("Ignition rejects the document: %v, %s\n%s", err, report.String(), got.JSON)
		}
		if unitAt(t, config, kubeadmUnitName) == nil {
			t.Errorf("no unit:\n%s", got.JSON)
		}
		if fileAt(t, config, kubeadmConfigPath) == nil && !strings.Contains(text, "kubeadm") && !strings.ContainsAny(text, `\!`) {
			t.Errorf("no configuration of kubeadm:\n%s", got.JSON)
		}
	})
}
