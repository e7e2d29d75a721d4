package userdata

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const head = "## template: jinja\n#cloud-config\n\n"

func zipped(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

func file(path, content string) File { return File{Path: path, Mode: 0o644, Content: []byte(content)} }

func shell(i, n int, text string) Command {
	return Command{Name: fmt.Sprintf("command %d of %d in runcmd", i, n), Shell: text}
}

func TestReadCloudConfig(t *testing.T) {
	const files = head + "write_files:\n"
	for _, tt := range []struct {
		reason, value, format string
		want                  *Data
		fails                 string
	}{
		{reason: "the format defaults to cloud-config", value: head + "runcmd: [ls]\n", want: &Data{Commands: []Command{shell(1, 1, "ls")}}},
		{reason: "the template header is optional", value: "#cloud-config\nruncmd: [ls]\n", format: "cloud-config", want: &Data{Commands: []Command{shell(1, 1, "ls")}}},
		{reason: "a file with defaults", value: files + "- {path: /a/b, content: text}\n", want: &Data{Files: []File{file("/a/b", "text")}}},
		{reason: "owner, permissions and append", value: files + "- {path: /a, content: x, owner: 'etcd:etcd', permissions: '0640', append: true}\n",
			want: &Data{Files: []File{{Path: "/a", Owner: "etcd:etcd", Mode: 0o640, Append: true, Content: []byte("x")}}}},
		{reason: "permissions without quotes are a number to YAML", value: files + "- {path: /a, content: x, permissions: 0600}\n", want: &Data{Files: []File{{Path: "/a", Mode: 0o600, Content: []byte("x")}}}},
		{reason: "base64 may have line breaks", value: files + "- path: /a\n  encoding: b64\n  content: |\n    dGV\n    4dA==\n", want: &Data{Files: []File{file("/a", "text")}}},
		{reason: "gzip in base64", value: files + "- {path: /a, encoding: gzip+base64, content: " + zipped(t, "text") + "}\n", want: &Data{Files: []File{file("/a", "text")}}},
		{reason: "a number is text", value: files + "- {path: /a, content: 42}\n", want: &Data{Files: []File{file("/a", "42")}}},
		{reason: "a file without content is empty", value: files + "- {path: /a}\n", want: &Data{Files: []File{file("/a", "")}}},
		{reason: "templates are not rendered", value: files + "- {path: /a, content: '{{ ds.meta_data.hostname }}'}\n", want: &Data{Files: []File{file("/a", "{{ ds.meta_data.hostname }}")}}},
		{reason: "a command as a list does not pass through a shell", value: head + "runcmd:\n- [echo, $HOME, 1]\n- null\n",
			want: &Data{Commands: []Command{{Name: "command 1 of 2 in runcmd", Args: []string{"echo", "$HOME", "1"}}}}},
		{reason: "all other modules are ignored", value: head + "users: [{name: a}]\nntp: {}\nmounts: []\nruncmd: []\n", want: &Data{Ignored: []string{`cloud-init module "mounts"`, `cloud-init module "ntp"`, `cloud-init module "users"`}}},

		{reason: "empty data", value: " \n", fails: "is empty"},
		{reason: "too much data", value: head + strings.Repeat("#", maxData), fails: "the limit is 1048576"},
		{reason: "an unknown format", value: "x", format: "talos", fails: `format "talos" is not supported`},
		{reason: "a script", value: "#!/bin/sh\nkubeadm init\n", fails: "not a cloud-config"},
		{reason: "a header in the wrong place", value: "runcmd: []\n#cloud-config\n", fails: "not a cloud-config"},
		{reason: "invalid YAML is not quoted", value: head + "s3cret: [", fails: "is not valid YAML"},
		{reason: "aliases that expand", value: head + "x: &a " + strings.Repeat("x", 10_000) + "\ny: [" + strings.Repeat("*a, ", 2000) + "]\n", fails: "expand to more than"},
		{reason: "a relative path", value: files + "- {path: a, content: x}\n", fails: "not an absolute path"},
		{reason: "a path with a line break", value: files + "- {path: \"/a\\nb\", content: x}\n", fails: "control characters"},
		{reason: "the root directory", value: files + "- {path: /.., content: x}\n", fails: "not an absolute path"},
		{reason: "an owner that is an option", value: files + "- {path: /a, owner: --reference=/etc/shadow}\n", fails: "invalid owner"},
		{reason: "permissions that are not octal", value: files + "- {path: /a, permissions: '0888'}\n", fails: "invalid permissions"},
		{reason: "permissions out of range", value: files + "- {path: /a, permissions: '17777'}\n", fails: "invalid permissions"},
		{reason: "an unknown encoding", value: files + "- {path: /a, encoding: rot13, content: x}\n", fails: `encoding "rot13" is not supported`},
		{reason: "invalid base64 is not quoted", value: files + "- {path: /a, encoding: base64, content: '%s3cret'}\n", fails: "not valid base64"},
		{reason: "gzip without base64 cannot be text", value: files + "- {path: /a, encoding: gzip, content: x}\n", fails: "not valid gzip"},
		{reason: "gzip that expands", value: files + "- {path: /a, encoding: gz+b64, content: " + zipped(t, strings.Repeat("x", maxContent+1)) + "}\n", fails: "more than 8388608 bytes"},
		{reason: "content from elsewhere is not downloaded", value: files + "- {path: /a, source: {uri: 'http://example.com'}}\n", want: &Data{Files: []File{{Path: "/a", Mode: 0o644, External: true, Content: []byte{}}}}},
		{reason: "content that is not text", value: files + "- {path: /a, content: {b: c}}\n", fails: "not a text"},
		{reason: "files that are no list", value: head + "write_files: {a: b}\n", fails: "not a list of files"},
		{reason: "commands that are no list", value: head + "runcmd: ls\n", fails: "not a list of commands"},
		{reason: "a command that is a map", value: head + "runcmd: [{a: b}]\n", fails: "command 1 of 1 in runcmd is neither"},
		{reason: "a NUL character", value: head + "runcmd: [\"a\\0b\"]\n", fails: "contains a NUL character"},
		{reason: "too many files", value: files + strings.Repeat("- {path: /a}\n", maxEntries+1), fails: "more than 2000 files"},
	} {
		t.Run(tt.reason, func(t *testing.T) { check(t, tt.value, tt.format, tt.want, tt.fails) })
	}
}

func check(t *testing.T, value, format string, want *Data, fails string) {
	t.Helper()
	got, err := Read([]byte(value), format)
	if fails != "" {
		if err == nil || !strings.Contains(err.Error(), fails) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("error %v, want one with %q", err, fails)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range got.Files {
		if got.Files[i].Content == nil {
			got.Files[i].Content = []byte{}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// restart is the command that makes a running unit use its changed configuration.
func restart(unit string) Command {
	return Command{Name: "systemctl restart " + unit, Shell: "if systemctl is-active --quiet -- '" + unit + "'; then systemctl restart -- '" + unit + "'; fi"}
}

func TestReadIgnitionUnits(t *testing.T) {
	reload := Command{Name: "systemctl daemon-reload", Args: []string{"systemctl", "daemon-reload"}}
	systemctl := func(verb string, args ...string) Command {
		unit := args[len(args)-1]
		return Command{Name: "systemctl " + verb + " " + unit, Args: append(append([]string{"systemctl", verb}, args[:len(args)-1]...), "--", unit)}
	}
	const required = "[Mount]\nWhat=/srv/etcd\n[Install]\nRequiredBy=kubeadm.service\n"
	device := strings.Replace(required, "/srv/etcd", "/dev/disk/by-label/etcd", 1)
	for _, tt := range []struct {
		reason, storage, units string
		want                   *Data
	}{
		{reason: "a drop-in of containerd, which runs already", units: `{"name": "containerd.service", "dropins": [{"name": "10-proxy.conf", "contents": "x"}]}`,
			want: &Data{Files: []File{file("/etc/systemd/system/containerd.service.d/10-proxy.conf", "x")}, Commands: []Command{reload, restart("containerd.service")}}},
		{reason: "the same as a file", storage: `{"path": "/etc/systemd/system/containerd.service.d/10-proxy.conf", "contents": {"source": "data:,x"}}`,
			want: &Data{Files: []File{{Path: "/etc/systemd/system/containerd.service.d/10-proxy.conf", Owner: "0:0", Mode: 0o644, Content: []byte("x")}},
				Commands: []Command{reload, restart("containerd.service")}}},
		{reason: "the configuration of containerd", storage: `{"path": "/etc/containerd/certs.d/x/hosts.toml", "contents": {"source": "data:,x"}}`,
			want: &Data{Files: []File{{Path: "/etc/containerd/certs.d/x/hosts.toml", Owner: "0:0", Mode: 0o644, Content: []byte("x")}},
				Commands: []Command{reload, restart("containerd.service")}}},
		{reason: "a unit that the image may not have", units: `{"name": "ntpd.service", "enabled": true}`,
			want: &Data{Commands: []Command{reload, {Name: "systemctl enable ntpd.service",
				Shell: "if systemctl cat -- 'ntpd.service' >/dev/null 2>&1; then systemctl enable -- 'ntpd.service' && systemctl start --no-block -- 'ntpd.service'; else echo 'no such unit'; fi"}}}},
		{reason: "a unit that is disabled does not matter", units: `{"name": "ntpd.service", "enabled": false}`, want: &Data{}},
		{reason: "kubeadm waits for a mount that it requires", units: `{"name": "var-lib-etcd.mount", "enabled": true, "contents": ` + quoted(required) + `}`,
			want: &Data{Files: []File{file("/etc/systemd/system/var-lib-etcd.mount", required)}, Commands: []Command{
				reload, restart("var-lib-etcd.mount"), systemctl("enable", "var-lib-etcd.mount"), systemctl("start", "var-lib-etcd.mount")}}},
		{reason: "but not for a device, which a container does not have", units: `{"name": "var-lib-etcd.mount", "enabled": true, "contents": ` + quoted(device) + `}`,
			want: &Data{Files: []File{file("/etc/systemd/system/var-lib-etcd.mount", device)}, Commands: []Command{
				reload, restart("var-lib-etcd.mount"), systemctl("enable", "var-lib-etcd.mount"), systemctl("start", "--no-block", "var-lib-etcd.mount")}}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			check(t, `{"ignition": {"version": "2.3.0"}, "storage": {"files": [`+tt.storage+`]}, "systemd": {"units": [`+tt.units+`]}}`, "ignition", tt.want, "")
		})
	}
}

// quoted returns a text as a JSON string.
func quoted(text string) string { return `"` + strings.ReplaceAll(text, "\n", `\n`) + `"` }

func TestReadIgnition(t *testing.T) {
	const kubeadm = `{"name": "kubeadm.service", "enabled": true, "contents": "[Service]\nType=oneshot\nExecStart=/etc/kubeadm.sh\n"}`
	doc := func(rest string) string { return `{"ignition": {"version": "2.3.0"}, ` + rest + `}` }
	for _, tt := range []struct {
		reason, value string
		want          *Data
		fails         string
	}{
		{reason: "files and the unit of kubeadm", value: doc(`"storage": {"files": [
			{"filesystem": "root", "path": "/etc/kubeadm.sh", "mode": 448, "contents": {"source": "data:,set%20-e%0Akubeadm%20init%20--config%20%2Fetc%2Fkubeadm.yml%0A"}},
			{"filesystem": "root", "path": "/etc/x", "append": true, "user": {"name": "etcd"}, "group": {"id": 7}, "contents": {"source": "data:text/plain;charset=utf-8;base64,dGV4dA=="}}
			]}, "systemd": {"units": [` + kubeadm + `]}`),
			want: &Data{Files: []File{
				{Path: "/etc/kubeadm.sh", Owner: "0:0", Mode: 0o700, Content: []byte("set -e\nkubeadm init --config /etc/kubeadm.yml\n")},
				{Path: "/etc/x", Owner: "etcd:7", Mode: 0o644, Append: true, Content: []byte("text")},
			}, Commands: []Command{{Name: "kubeadm.service", Args: []string{"/etc/kubeadm.sh"}}}}},
		{reason: "compressed contents", value: doc(`"storage": {"files": [{"path": "/a", "contents": {"compression": "gzip", "source": "data:;base64,` + zipped(t, "text") + `"}}]}`),
			want: &Data{Files: []File{{Path: "/a", Owner: "0:0", Mode: 0o644, Content: []byte("text")}}}},
		{reason: "directories and links", value: doc(`"storage": {"directories": [{"path": "/o'p", "mode": 493}], "links": [{"path": "/l/x", "target": "../t"}]}`),
			want: &Data{
				Before:   []Command{{Name: "the creation of directory /o'p", Shell: `mkdir -p '/o'\''p' && chown '0:0' '/o'\''p' && chmod 755 '/o'\''p'`}},
				Commands: []Command{{Name: "the creation of link /l/x", Shell: `mkdir -p '/l' && ln -sfn -- '../t' '/l/x'`}},
			}},
		{reason: "other units are started without waiting, and kubeadm is last", value: doc(`"systemd": {"units": [` + kubeadm + `,
			{"name": "var-lib.mount", "enable": true, "contents": "[Mount]\n", "dropins": [{"name": "10-x.conf", "contents": "[Unit]\n"}]}, {"name": "locksmithd.service", "mask": true}, {"name": "off.service", "contents": "x"}]}`),
			want: &Data{
				Files: []File{file("/etc/systemd/system/var-lib.mount", "[Mount]\n"), file("/etc/systemd/system/var-lib.mount.d/10-x.conf", "[Unit]\n"), file("/etc/systemd/system/off.service", "x")},
				Commands: []Command{
					{Name: "systemctl daemon-reload", Args: []string{"systemctl", "daemon-reload"}},
					restart("off.service"), restart("var-lib.mount"),
					{Name: "systemctl enable var-lib.mount", Args: []string{"systemctl", "enable", "--", "var-lib.mount"}},
					{Name: "systemctl start var-lib.mount", Args: []string{"systemctl", "start", "--no-block", "--", "var-lib.mount"}},
					{Name: "systemctl mask locksmithd.service", Args: []string{"systemctl", "mask", "--", "locksmithd.service"}},
					{Name: "kubeadm.service", Args: []string{"/etc/kubeadm.sh"}},
				},
			}},
		{reason: "users and groups exist before files", value: doc(`"passwd": {"groups": [{"name": "g", "gid": 7}], "users": [{"name": "root", "sshAuthorizedKeys": ["k"]},
			{"name": "u", "uid": 1000, "gecos": "it's u", "primaryGroup": "p", "groups": ["g", "h"], "shell": "/bin/sh", "passwordHash": "s3cret"}]}`),
			want: &Data{
				Before: []Command{
					{Name: "the creation of group g", Args: []string{"groupadd", "--force", "--gid", "7", "g"}},
					{Name: "the creation of user u", Shell: `id -u 'u' >/dev/null 2>&1 || { groupadd --force p && groupadd --force g && groupadd --force h && 'useradd' '--uid' '1000' '--comment' 'it'\''s u' '--gid' 'p' '--groups' 'g,h' '--shell' '/bin/sh' '--create-home' 'u'; }`},
				},
				Ignored: []string{"password and SSH keys of user root", "password and SSH keys of user u"},
			}},
		{reason: "what has no meaning in a container is listed", value: `{"ignition": {"version": "2.2.0", "config": {"append": [{"source": "http://example.com"}]}},
			"storage": {"disks": [{}], "raid": [{}], "filesystems": [{}], "files": [{"filesystem": "data", "path": "/a"}]}, "networkd": {"units": [{}]},
			"systemd": {"units": [{"name": "kubeadm.service", "enabled": true, "contents": "ExecStart=/etc/kubeadm.sh", "dropins": [{"name": "a.conf"}]}]}}`,
			want: &Data{Commands: []Command{{Name: "kubeadm.service", Args: []string{"/etc/kubeadm.sh"}}},
				Ignored: []string{"drop-ins of kubeadm.service", `files of file system "data"`, "ignition.config", "networkd", "storage.disks", "storage.filesystems", "storage.raid"}}},
		{reason: "a unit of kubeadm that is not enabled does not run", value: doc(`"systemd": {"units": [{"name": "kubeadm.service"}]}`), want: &Data{Commands: nil}},

		{reason: "invalid JSON is not quoted", value: `{"s3cret`, fails: "not a valid Ignition document"},
		{reason: "another version", value: `{"ignition": {"version": "3.4.0"}}`, fails: `version "3.4.0" is not supported`},
		{reason: "no version", value: `{}`, fails: "has no ignition.version"},
		{reason: "downloads", value: doc(`"storage": {"files": [{"path": "/a", "contents": {"source": "http://example.com/s3cret"}}]}`), want: &Data{Files: []File{{Path: "/a", Owner: "0:0", Mode: 0o644, External: true, Content: []byte{}}}}},
		{reason: "an invalid data URL", value: doc(`"storage": {"files": [{"path": "/a", "contents": {"source": "data:,%zz"}}]}`), fails: "not a valid data URL"},
		{reason: "an unknown compression", value: doc(`"storage": {"files": [{"path": "/a", "contents": {"compression": "xz"}}]}`), fails: `compression "xz"`},
		{reason: "an owner that is an option", value: doc(`"storage": {"files": [{"path": "/a", "user": {"name": "--x"}}]}`), fails: "invalid owner"},
		{reason: "a group that is a command", value: doc(`"passwd": {"users": [{"name": "u", "groups": ["g;reboot"]}]}`), fails: "invalid name"},
		{reason: "a user that is an option", value: doc(`"passwd": {"users": [{"name": "-u"}]}`), fails: "invalid name"},
		{reason: "a unit in another folder", value: doc(`"systemd": {"units": [{"name": "../a.service"}]}`), fails: "invalid name"},
		{reason: "a drop-in in another folder", value: doc(`"systemd": {"units": [{"name": "a.service", "dropins": [{"name": "../../x"}]}]}`), fails: "invalid name"},
		{reason: "kubeadm's unit without a program", value: doc(`"systemd": {"units": [{"name": "kubeadm.service", "enabled": true}]}`), fails: "has no ExecStart"},
		{reason: "kubeadm's unit with what only systemd expands", value: doc(`"systemd": {"units": [{"name": "kubeadm.service", "enabled": true, "contents": "ExecStart=/bin/sh -c 'x'"}]}`), fails: "has no ExecStart"},
		{reason: "a link without a target", value: doc(`"storage": {"links": [{"path": "/a"}]}`), fails: "has no target"},
	} {
		t.Run(tt.reason, func(t *testing.T) { check(t, tt.value, "ignition", tt.want, tt.fails) })
	}
}
