package ignition

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/flatcar/ignition/config/v2_3/types"
	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/providers/bootstrap-kubeadm/internal/bootstrapdata"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func additional(text string, strict bool) bootstrapv1.IgnitionSpec {
	return bootstrapv1.IgnitionSpec{ContainerLinuxConfig: bootstrapv1.ContainerLinuxConfig{AdditionalConfig: text, Strict: ptr.To(strict)}}
}

func TestAdditionalConfig(t *testing.T) {
	const at = "spec.ignition.containerLinuxConfig.additionalConfig: "
	bomb := "x: &a " + strings.Repeat("x", 10_000) + "\ny: [" + strings.Repeat("*a, ", 2000) + "]\n"
	tests := []struct {
		reason, text string
		strict       bool
		warning, err string
	}{
		{reason: "empty", text: " \n"},
		{reason: "valid and strict", text: "passwd: {users: [{name: core, ssh_authorized_keys: [k]}]}\n", strict: true},
		{reason: "an unknown key is a warning", text: "passwd: {}\nbogus: x\n", warning: at + "line 2, column 1: "},
		{reason: "or an error", text: "passwd: {}\nbogus: x\n", strict: true, err: at + "line 2, column 1: "},
		{reason: "a file without mode is a warning", text: "storage: {files: [{path: /f, contents: {inline: x}}]}\n", warning: at + "line 1, column 19: mode unspecified"},
		{reason: "a comment is an empty config", text: "# nothing\n", warning: at + "Configuration is empty"},
		{reason: "not YAML", text: "a: [", err: at + "must be YAML: "},
		{reason: "not a config", text: "- a\n", err: at},
		{reason: "two documents, of which one would be ignored", text: "passwd: {}\n---\npasswd: {}\n", err: at + "must be one YAML document"},
		{reason: "aliases that expand", text: bomb, err: at + "the YAML aliases expand"},
		{reason: "files of the manager", text: "storage: {files: [{path: /f, mode: 0644, contents: {local: /etc/passwd}}]}\n", err: at + "line 1, column 60: local files require"},
		{reason: "variables of a platform", text: "etcd: {version: 3.3.9, name: \"{HOSTNAME}\"}\n", err: at},
		{reason: "another version", text: "version: 1\n", err: at + "line 1, column 10: Invalid version"},
		{reason: "a unit without a kind", text: "systemd: {units: [{name: x}]}\n", err: at},
		{reason: "a relative path", text: "storage: {files: [{path: f, mode: 0644}]}\n", err: at},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			got, err := Join(least(), additional(tt.text, tt.strict))
			wantError(t, err, tt.err, "")
			if err != nil {
				return
			}
			if len(got.Warnings) > 1 || !strings.HasPrefix(strings.Join(got.Warnings, ""), tt.warning) || (len(got.Warnings) == 0) != (tt.warning == "") {
				t.Errorf("warnings %q, want %q", got.Warnings, tt.warning)
			}
			if _, report, err := parseWithWarnings(got); err != nil {
				t.Errorf("Ignition rejects the document: %v, %s", err, report.String())
			}
		})
	}
	if _, err := Join(least(), additional("# "+strings.Repeat("x", 1<<20), false)); err == nil || !strings.Contains(err.Error(), "must be at most 1048576 bytes") {
		t.Errorf("a large config: %v", err)
	}
}

func TestMerge(t *testing.T) {
	in := full()
	tests := []struct {
		reason, text string
		check        func(*testing.T, types.Config) (want, got any)
	}{
		{"a drop-in keeps the unit", "systemd: {units: [{name: kubeadm.service, dropins: [{name: 10-x.conf, contents: \"[Unit]\\nAfter=x.service\\n\"}]}]}",
			func(t *testing.T, c types.Config) (any, any) {
				want := kubeadmUnit()
				want.Dropins = []types.SystemdDropin{{Name: "10-x.conf", Contents: "[Unit]\nAfter=x.service\n"}}
				return &want, unitAt(t, c, kubeadmUnitName)
			}},
		{"a unit can be replaced, and disabled", "systemd: {units: [{name: kubeadm.service, enabled: false, contents: \"[Service]\\nExecStart=/x\\n\"}]}",
			func(t *testing.T, c types.Config) (any, any) {
				return &types.Unit{Name: kubeadmUnitName, Enabled: ptr.To(false), Contents: "[Service]\nExecStart=/x\n"}, unitAt(t, c, kubeadmUnitName)
			}},
		{"other units are added", "systemd: {units: [{name: x.service, mask: true}]}",
			func(t *testing.T, c types.Config) (any, any) {
				return &types.Unit{Name: "x.service", Mask: true}, unitAt(t, c, "x.service")
			}},
		{"a file is replaced", "storage: {files: [{path: /etc//kubeadm.sh, mode: 0755, contents: {inline: x}}]}",
			func(t *testing.T, c types.Config) (any, any) {
				return (*types.File)(nil), fileAt(t, c, scriptPath)
			}},
		{"by a link, too", "storage: {links: [{path: /opt/data, target: /x}]}",
			func(t *testing.T, c types.Config) (any, any) { return (*types.File)(nil), fileAt(t, c, "/opt/data") }},
		{"and by a directory", "storage: {directories: [{path: /opt/data, mode: 0755}]}",
			func(t *testing.T, c types.Config) (any, any) { return (*types.File)(nil), fileAt(t, c, "/opt/data") }},
		{"a file on another file system is another file", "storage: {filesystems: [{name: x, mount: {device: /dev/sdc, format: ext4}}], files: [{path: /opt/data, filesystem: x, mode: 0644}]}",
			func(_ *testing.T, c types.Config) (any, any) {
				n := 0
				for _, f := range c.Storage.Files {
					if f.Path == "/opt/data" {
						n++
					}
				}
				return 2, n
			}},
		{"fields of a user are replaced, and keys added", "passwd: {users: [{name: capi, shell: /bin/sh, groups: [wheel], ssh_authorized_keys: [other]}, {name: core}]}",
			func(_ *testing.T, c types.Config) (any, any) {
				return []types.PasswdUser{{
					Name: "capi", Gecos: "CAPI user", HomeDir: "/home/capi", Shell: "/bin/sh", PasswordHash: &in.Users[0].Passwd, PrimaryGroup: "capi",
					Groups: []types.Group{"wheel", "users", "admin"}, SSHAuthorizedKeys: []types.SSHAuthorizedKey{"other", "ssh-ed25519 AAAA capi@example"},
				}, {Name: "core"}}, c.Passwd.Users
			}},
		{"a user in the deprecated form is valid", "passwd: {users: [{name: capi, create: {shell: /bin/sh}}]}",
			func(_ *testing.T, c types.Config) (any, any) {
				return []types.PasswdUser{{Name: "capi", PasswordHash: &in.Users[0].Passwd, Create: &types.Usercreate{Shell: "/bin/sh"},
					SSHAuthorizedKeys: []types.SSHAuthorizedKey{"ssh-ed25519 AAAA capi@example"}}}, c.Passwd.Users
			}},
		{"disks are replaced by device", "storage: {disks: [{device: /dev/sdb, partitions: [{number: 2, size: 1GiB}]}]}",
			func(_ *testing.T, c types.Config) (any, any) {
				return []types.Disk{{Device: "/dev/sdb", Partitions: []types.Partition{{Number: 2, SizeMiB: ptr.To(1024)}}}}, c.Storage.Disks
			}},
		{"file systems by device or name", "storage: {filesystems: [{name: y, mount: {device: /dev/sdb1, format: xfs}}]}",
			func(_ *testing.T, c types.Config) (any, any) {
				return []types.Filesystem{{Name: "y", Mount: &types.Mount{Device: "/dev/sdb1", Format: "xfs"}}}, c.Storage.Filesystems
			}},
		{"everything else is the user's", "ignition: {timeouts: {http_total: 5}}\nnetworkd: {units: [{name: 00-x.network, contents: \"[Match]\\nName=x\\n\"}]}\npasswd: {groups: [{name: g}]}",
			func(_ *testing.T, c types.Config) (any, any) {
				return []any{"2.3.0", ptr.To(5), []types.Networkdunit{{Name: "00-x.network", Contents: "[Match]\nName=x\n"}}, []types.PasswdGroup{{Name: "g"}}},
					[]any{c.Ignition.Version, c.Ignition.Timeouts.HTTPTotal, c.Networkd.Units, c.Passwd.Groups}
			}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			got, err := Init(in, additional(tt.text, false))
			if err != nil {
				t.Fatal(err)
			}
			config, report, err := parseWithWarnings(got)
			if err != nil {
				t.Fatal(err, report)
			}
			want, have := tt.check(t, config)
			if diff := cmp.Diff(want, have); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Invalid data URLs are rejected before the library sees them, which would leak a goroutine for each.
func TestDataURLs(t *testing.T) {
	const form = "x: &u %q\nstorage: {files: [{path: /f, mode: 0644, contents: {remote: {url: %s}}}]}\n"
	for source, valid := range map[string]bool{
		"data:,a%20b": true, "data:text/plain;charset=utf-8;base64,AA==": true, "data:": true, "https://example.org/%41": true,
		"data:,%": false, "data:,a%2": false, "data:;base64,%": false, "data:;base64,A": false, `data:x/y;a="%";base64,AA==`: false, "data:x/y;a=%zz,x": false,
	} {
		for _, url := range []string{strconv.Quote(source), "*u"} {
			before := runtime.NumGoroutine()
			for range 20 {
				_, err := Join(bootstrapdata.Input{}, additional(fmt.Sprintf(form, source, url), false))
				if source != "data:" && (err == nil) != valid && !(url == "*u" && valid) {
					t.Errorf("%s as %s: error %v", source, url, err)
				}
			}
			testenv.Eventually(t, "goroutines to end", func() error {
				if after := runtime.NumGoroutine(); after >= before+20 {
					return fmt.Errorf("%s: %d goroutines, then %d", source, before, after)
				}
				return nil
			})
		}
	}
}

// TestTheTranspilerPanics shows why panics of the library are caught: remove that, once it reports an error.
func TestTheTranspilerPanics(t *testing.T) {
	text := "storage: {files: [{path: /f, mode: 0644, contents: &c {remote: {url: \"https://example.org\"}}}, {path: /g, mode: 0644, contents: *c}]}\n"
	_, err := Join(bootstrapdata.Input{}, additional(text, false))
	wantError(t, err, "spec.ignition.containerLinuxConfig.additionalConfig: the conversion to Ignition failed: replace YAML aliases", "")
}
