package ignition

import (
	"strconv"
	"strings"
	"testing"

	"github.com/flatcar/ignition/config/v2_3/types"
	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/providers/bootstrap-kubeadm/internal/bootstrapdata"
)

func TestFiles(t *testing.T) {
	secret := strings.Repeat("s3cr3t", 10)
	tests := []struct {
		reason string
		files  []bootstrapv1.File
		path   string // Empty: the path of the first file
		want   *types.File
		text   string
		err    string
	}{
		{reason: "defaults", files: []bootstrapv1.File{{Path: "/f", Content: "x"}}, want: &types.File{FileEmbedded1: types.FileEmbedded1{Mode: ptr.To(0o644)}}, text: "x"},
		{reason: "an empty file", files: []bootstrapv1.File{{Path: "/f"}}, want: &types.File{FileEmbedded1: types.FileEmbedded1{Mode: ptr.To(0o644)}}},
		{reason: "mode, names and append", files: []bootstrapv1.File{{Path: "/f", Permissions: "0o600", Owner: "etcd:etcd", Append: ptr.To(true), Content: "é\n"}},
			want: &types.File{Node: types.Node{User: &types.NodeUser{Name: "etcd"}, Group: &types.NodeGroup{Name: "etcd"}}, FileEmbedded1: types.FileEmbedded1{Mode: ptr.To(0o600), Append: true}}, text: "é\n"},
		{reason: "IDs, and no group", files: []bootstrapv1.File{{Path: "/f", Owner: "0"}},
			want: &types.File{Node: types.Node{User: &types.NodeUser{ID: ptr.To(0)}}, FileEmbedded1: types.FileEmbedded1{Mode: ptr.To(0o644)}}},
		{reason: "binary content", files: []bootstrapv1.File{{Path: "/f", Encoding: bootstrapv1.Base64, Content: "AP8="}}, want: &types.File{FileEmbedded1: types.FileEmbedded1{Mode: ptr.To(0o644)}}, text: "\x00\xff"},
		{reason: "a path is cleaned, so that it does not leave the root", files: []bootstrapv1.File{{Path: "/../..//a/./f"}}, path: "/a/f", want: &types.File{FileEmbedded1: types.FileEmbedded1{Mode: ptr.To(0o644)}}},
		{reason: "the user's file replaces a certificate", files: []bootstrapv1.File{{Path: "/etc/kubernetes/pki/ca.crt", Content: "mine"}}, want: &types.File{FileEmbedded1: types.FileEmbedded1{Mode: ptr.To(0o644)}}, text: "mine"},
		{reason: "and can extend one", files: []bootstrapv1.File{{Path: "/etc/kubernetes/pki/ca.crt", Append: ptr.To(true), Content: "mine\n"}}, text: certificates()[0].Content + "mine\n",
			want: &types.File{Node: types.Node{User: &types.NodeUser{Name: "root"}, Group: &types.NodeGroup{Name: "root"}}, FileEmbedded1: types.FileEmbedded1{Mode: ptr.To(0o640)}}},
		{reason: "a relative path", files: []bootstrapv1.File{{Path: "f"}}, err: "spec.files[0].path: must be an absolute path"},
		{reason: "no path", files: []bootstrapv1.File{{}}, err: "spec.files[0].path: must be an absolute path"},
		{reason: "a long path", files: []bootstrapv1.File{{Path: "/" + strings.Repeat("x", 5000)}}, err: "spec.files[0].path: must be an absolute path of at most 4095 bytes"},
		{reason: "the root", files: []bootstrapv1.File{{Path: "/"}}, err: "spec.files[0].path: must be the path of a file"},
		{reason: "a directory", files: []bootstrapv1.File{{Path: "/f/"}}, err: "spec.files[0].path: must be the path of a file"},
		{reason: "another notation of a directory", files: []bootstrapv1.File{{Path: "/f/g/.."}}, err: "spec.files[0].path: must be the path of a file"},
		{reason: "lines in a path", files: []bootstrapv1.File{{Path: "/f\n"}}, err: "spec.files[0].path: must be one line"},
		{reason: "two notations of one path", files: []bootstrapv1.File{{Path: "/f"}, {Path: "//f"}}, err: "spec.files[1].path: /f is in the document already"},
		{reason: "the script is not the user's", files: []bootstrapv1.File{{Path: "/etc/kubeadm.sh"}}, err: "spec.files[0].path: /etc/kubeadm.sh is in the document already"},
		{reason: "nor is kubeadm's configuration", files: []bootstrapv1.File{{Path: "/etc/./kubeadm.yml"}}, err: "spec.files[0].path: /etc/kubeadm.yml is in the document already"},
		{reason: "a mode that is not octal", files: []bootstrapv1.File{{Path: "/f", Permissions: "0689"}}, err: "spec.files[0].permissions: must be an octal mode"},
		{reason: "a mode that is too large", files: []bootstrapv1.File{{Path: "/f", Permissions: "10000"}}, err: "spec.files[0].permissions: must be an octal mode"},
		{reason: "an owner that is no name", files: []bootstrapv1.File{{Path: "/f", Owner: "a b:c"}}, err: "spec.files[0].owner: must be the names or IDs"},
		{reason: "an owner with too many parts", files: []bootstrapv1.File{{Path: "/f", Owner: "a:b:c"}}, err: "spec.files[0].owner: must be the names or IDs"},
		{reason: "content that is not base64", files: []bootstrapv1.File{{Path: "/f", Encoding: bootstrapv1.Base64, Content: secret + "!"}}, err: "spec.files[0].content: must be base64"},
		{reason: "gzip", files: []bootstrapv1.File{{Path: "/f", Encoding: bootstrapv1.Gzip}}, err: "spec.files[0].encoding: is not supported"},
		{reason: "gzip with base64", files: []bootstrapv1.File{{Path: "/f", Encoding: bootstrapv1.GzipBase64, Content: secret}}, err: "spec.files[0].encoding: is not supported"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			got, err := Join(bootstrapdata.Input{Certificates: certificates(), Files: tt.files}, bootstrapv1.IgnitionSpec{})
			wantError(t, err, tt.err, secret)
			if err != nil {
				return
			}
			path := tt.path
			if path == "" {
				path = tt.files[0].Path
			}
			f := fileAt(t, parse(t, got), path)
			if f == nil {
				t.Fatalf("no file %s", path)
			}
			if text := content(t, *f); text != tt.text {
				t.Errorf("content %q, want %q", text, tt.text)
			}
			tt.want.Filesystem, tt.want.Path, f.Contents = root, path, types.FileContents{}
			if diff := cmp.Diff(tt.want, f); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestUsers(t *testing.T) {
	hash := "$6$hunter2"
	tests := []struct {
		reason string
		users  []bootstrapv1.User
		want   []types.PasswdUser
		files  map[string]string
		err    string
	}{
		{reason: "a name is enough", users: []bootstrapv1.User{{Name: "u"}}, want: []types.PasswdUser{{Name: "u"}}},
		{reason: "groups are a list", users: []bootstrapv1.User{{Name: "u", Groups: " a,b ,,c"}}, want: []types.PasswdUser{{Name: "u", Groups: []types.Group{"a", "b", "c"}}}},
		{reason: "a password works on the console only, by default", users: []bootstrapv1.User{{Name: "u", Passwd: hash}}, want: []types.PasswdUser{{Name: "u", PasswordHash: &hash}}},
		{reason: "a locked password is not set", users: []bootstrapv1.User{{Name: "u", Passwd: hash, LockPassword: ptr.To(true)}}, want: []types.PasswdUser{{Name: "u"}}},
		{reason: "an empty password would need none to log in", users: []bootstrapv1.User{{Name: "u", Passwd: "", LockPassword: ptr.To(false)}}, want: []types.PasswdUser{{Name: "u"}}},
		{reason: "users with a password may use SSH", users: []bootstrapv1.User{{Name: "u", Passwd: hash, LockPassword: ptr.To(false)}, {Name: "v"}, {Name: "w", Passwd: hash, LockPassword: ptr.To(false)}},
			want:  []types.PasswdUser{{Name: "u", PasswordHash: &hash}, {Name: "v"}, {Name: "w", PasswordHash: &hash}},
			files: map[string]string{sshdPath: sshdDefaults + "\nMatch User u,w\n  PasswordAuthentication yes\n"}},
		{reason: "sudo", users: []bootstrapv1.User{{Name: "a.b", Sudo: "ALL=(ALL) NOPASSWD:ALL\n"}}, want: []types.PasswdUser{{Name: "a.b"}},
			files: map[string]string{"/etc/sudoers.d/a_b": "a.b ALL=(ALL) NOPASSWD:ALL\n"}},
		{reason: "no name", users: []bootstrapv1.User{{}}, err: "spec.users[0].name: must be the name of an account"},
		{reason: "a name that is a path", users: []bootstrapv1.User{{Name: "../u"}}, err: "spec.users[0].name: must be the name of an account"},
		{reason: "a long name", users: []bootstrapv1.User{{Name: strings.Repeat("u", 33)}}, err: "spec.users[0].name: must be the name of an account"},
		{reason: "a name twice", users: []bootstrapv1.User{{Name: "u"}, {Name: "u"}}, err: "spec.users[1].name: must be unique"},
		{reason: "two users with one sudoers file", users: []bootstrapv1.User{{Name: "a_b", Sudo: "x"}, {Name: "a.b", Sudo: "x"}}, err: "spec.users[1].name: the sudo rule of another user"},
		{reason: "a rule with lines", users: []bootstrapv1.User{{Name: "u", Sudo: "x\nroot y"}}, err: "spec.users[0].sudo: must be one line"},
		{reason: "a rule that continues", users: []bootstrapv1.User{{Name: "u", Sudo: `x \`}}, err: "spec.users[0].sudo: must not end with a backslash"},
		{reason: "inactive", users: []bootstrapv1.User{{Name: "u", Inactive: ptr.To(true)}}, err: "spec.users[0].inactive: is not supported"},
		{reason: "a colon in a column of passwd", users: []bootstrapv1.User{{Name: "u", Gecos: "a:b"}}, err: "spec.users[0].gecos: must not contain a colon"},
		{reason: "a relative home", users: []bootstrapv1.User{{Name: "u", HomeDir: "home"}}, err: "spec.users[0].homeDir: must be an absolute path"},
		{reason: "a relative shell", users: []bootstrapv1.User{{Name: "u", Shell: "bash"}}, err: "spec.users[0].shell: must be an absolute path"},
		{reason: "a password with lines is not quoted", users: []bootstrapv1.User{{Name: "u", Passwd: "$6$hunter2\nx"}}, err: "spec.users[0].passwd: must be one line"},
		{reason: "a group that is no name", users: []bootstrapv1.User{{Name: "u", Groups: "a b"}}, err: "spec.users[0].groups: must be the name of an account"},
		{reason: "a primary group that is no name", users: []bootstrapv1.User{{Name: "u", PrimaryGroup: "-x"}}, err: "spec.users[0].primaryGroup: must be the name of an account"},
		{reason: "several keys in one", users: []bootstrapv1.User{{Name: "u", SSHAuthorizedKeys: []string{"a", "b\nc"}}}, err: "spec.users[0].sshAuthorizedKeys[1]: must be one line"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			got, err := Join(bootstrapdata.Input{Users: tt.users}, bootstrapv1.IgnitionSpec{})
			wantError(t, err, tt.err, "hunter2")
			if err != nil {
				return
			}
			config := parse(t, got)
			if diff := cmp.Diff(tt.want, config.Passwd.Users); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			files := map[string]string{}
			for _, f := range config.Storage.Files {
				if f.Path != scriptPath && f.Path != kubeadmConfigPath {
					files[f.Path] = content(t, f)
					if *f.Mode != 0o600 {
						t.Errorf("%s has mode %o", f.Path, *f.Mode)
					}
				}
			}
			if len(tt.files) != len(files) || len(files) > 0 && !cmp.Equal(tt.files, files) {
				t.Errorf("files %q, want %q", files, tt.files)
			}
		})
	}
}

func TestNTP(t *testing.T) {
	tests := []struct {
		reason  string
		ntp     *bootstrapv1.NTP
		config  string
		enabled *bool
		err     string
	}{
		{reason: "neither servers nor a unit", ntp: &bootstrapv1.NTP{}},
		{reason: "enabled with the servers of the image", ntp: &bootstrapv1.NTP{Enabled: ptr.To(true)}, enabled: ptr.To(true)},
		{reason: "disabled", ntp: &bootstrapv1.NTP{Enabled: ptr.To(false)}, enabled: ptr.To(false)},
		{reason: "servers, and the image decides", ntp: &bootstrapv1.NTP{Servers: []string{"a", "2001:db8::1"}}, config: "server a\nserver 2001:db8::1\n" + ntpRestrictions},
		{reason: "two words", ntp: &bootstrapv1.NTP{Servers: []string{"a", "b prefer"}}, err: "spec.ntp.servers[1]: must be a host name"},
		{reason: "two lines", ntp: &bootstrapv1.NTP{Servers: []string{"a\nrestrict default"}}, err: "spec.ntp.servers[0]: must be one line"},
		{reason: "a comment", ntp: &bootstrapv1.NTP{Servers: []string{"#"}}, err: "spec.ntp.servers[0]: must be a host name"},
		{reason: "an option", ntp: &bootstrapv1.NTP{Servers: []string{"-4"}}, err: "spec.ntp.servers[0]: must be a host name"},
		{reason: "nothing", ntp: &bootstrapv1.NTP{Servers: []string{""}}, err: "spec.ntp.servers[0]: must be a host name"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			got, err := Join(bootstrapdata.Input{NTP: tt.ntp}, bootstrapv1.IgnitionSpec{})
			wantError(t, err, tt.err, "")
			if err != nil {
				return
			}
			config := parse(t, got)
			text := ""
			if f := fileAt(t, config, ntpPath); f != nil {
				text = content(t, *f)
			}
			if text != tt.config {
				t.Errorf("configuration %q, want %q", text, tt.config)
			}
			var want *types.Unit
			if tt.enabled != nil {
				want = &types.Unit{Name: ntpUnitName, Enabled: tt.enabled}
			}
			if diff := cmp.Diff(want, unitAt(t, config, ntpUnitName)); diff != "" {
				t.Errorf("unit, -want +got:\n%s", diff)
			}
		})
	}
}

func TestDisks(t *testing.T) {
	long := strings.Repeat("x", 20)
	tests := []struct {
		reason      string
		setup       bootstrapv1.DiskSetup
		disks       []types.Disk
		filesystems []types.Filesystem
		err         string
	}{
		{reason: "one partition, unless there is one", setup: bootstrapv1.DiskSetup{Partitions: []bootstrapv1.Partition{{Device: "/dev/sdb", Layout: ptr.To(true)}}},
			disks: []types.Disk{{Device: "/dev/sdb", Partitions: []types.Partition{{Number: 1}}}}},
		{reason: "only wiped", setup: bootstrapv1.DiskSetup{Partitions: []bootstrapv1.Partition{{Device: "/dev/sdb", Overwrite: ptr.To(true)}}}, disks: []types.Disk{{Device: "/dev/sdb", WipeTable: true}}},
		{reason: "a file system without label", setup: bootstrapv1.DiskSetup{Filesystems: []bootstrapv1.Filesystem{{Device: "/dev/sdb", Filesystem: "xfs"}}},
			filesystems: []types.Filesystem{{Mount: &types.Mount{Device: "/dev/sdb", Format: "xfs"}}}},
		{reason: "a relative device", setup: bootstrapv1.DiskSetup{Partitions: []bootstrapv1.Partition{{Device: "sdb"}}}, err: "spec.diskSetup.partitions[0].device: must be an absolute path"},
		{reason: "a device twice", setup: bootstrapv1.DiskSetup{Partitions: []bootstrapv1.Partition{{Device: "/dev/sdb"}, {Device: "/dev//sdb"}}}, err: "spec.diskSetup.partitions[1].device: must be unique"},
		{reason: "another kind of table", setup: bootstrapv1.DiskSetup{Partitions: []bootstrapv1.Partition{{Device: "/dev/sdb", TableType: "mbr"}}}, err: "spec.diskSetup.partitions[0].tableType: only gpt is supported"},
		{reason: "a kind of file system that Ignition does not have", setup: bootstrapv1.DiskSetup{Filesystems: []bootstrapv1.Filesystem{{Device: "/dev/sdb", Filesystem: "ext3"}}}, err: "spec.diskSetup.filesystems[0].filesystem: must be btrfs, ext4"},
		{reason: "a relative device of a file system", setup: bootstrapv1.DiskSetup{Filesystems: []bootstrapv1.Filesystem{{Device: "sdb", Filesystem: "ext4"}}}, err: "spec.diskSetup.filesystems[0].device: must be an absolute path"},
		{reason: "a long label", setup: bootstrapv1.DiskSetup{Filesystems: []bootstrapv1.Filesystem{{Device: "/dev/sdb", Filesystem: "ext4", Label: long}}}, err: "spec.diskSetup.filesystems[0].label: must be at most 16 bytes for ext4"},
		{reason: "the name of the root", setup: bootstrapv1.DiskSetup{Filesystems: []bootstrapv1.Filesystem{{Device: "/dev/sdb", Filesystem: "ext4", Label: "root"}}}, err: `spec.diskSetup.filesystems[0].label: must not be "root"`},
		{reason: "a partition", setup: bootstrapv1.DiskSetup{Filesystems: []bootstrapv1.Filesystem{{Device: "/dev/sdb", Filesystem: "ext4", Partition: "1"}}}, err: "spec.diskSetup.filesystems[0].partition: is not supported"},
		{reason: "what may be replaced", setup: bootstrapv1.DiskSetup{Filesystems: []bootstrapv1.Filesystem{{Device: "/dev/sdb", Filesystem: "ext4", ReplaceFS: "ntfs"}}}, err: "spec.diskSetup.filesystems[0].replaceFS: is not supported"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			got, err := Join(bootstrapdata.Input{DiskSetup: tt.setup}, bootstrapv1.IgnitionSpec{})
			wantError(t, err, tt.err, "")
			if err != nil {
				return
			}
			config := parse(t, got)
			if diff := cmp.Diff([]any{tt.disks, tt.filesystems}, []any{config.Storage.Disks, config.Storage.Filesystems}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestMounts(t *testing.T) {
	tests := []struct {
		reason string
		mount  bootstrapv1.MountPoints
		unit   string
		lines  []string
		none   []string
		err    string
	}{
		{reason: "a device", mount: bootstrapv1.MountPoints{"/dev/sdb1", "/var/lib/etcd"}, unit: "var-lib-etcd.mount",
			lines: []string{"What=/dev/sdb1", "Where=/var/lib/etcd", "Before=kubeadm.service", "RequiredBy=kubeadm.service", "WantedBy=multi-user.target"}, none: []string{"Type=", "Options="}},
		{reason: "a mount that may fail does not keep kubeadm from running", mount: bootstrapv1.MountPoints{"/dev/sdb1", "/x", "auto", "rw,nofail"}, unit: "x.mount",
			lines: []string{"Type=auto", "Options=rw,nofail", "Before=kubeadm.service"}, none: []string{"RequiredBy="}},
		{reason: "systemd waits for a label by its link", mount: bootstrapv1.MountPoints{`LABEL="a b/c"`, "/x"}, unit: "x.mount", lines: []string{`What=/dev/disk/by-label/a\x20b\x2fc`}},
		{reason: "and for an ID", mount: bootstrapv1.MountPoints{"PARTUUID=1-2", "/x"}, unit: "x.mount", lines: []string{"What=/dev/disk/by-partuuid/1-2"}},
		{reason: "specifiers are escaped", mount: bootstrapv1.MountPoints{"/dev/%n", "/a-b/%i", "x%u", "o%t"}, unit: `a\x2db-\x25i.mount`,
			lines: []string{"What=/dev/%%n", "Where=/a-b/%%i", "Type=x%%u", "Options=o%%t"}},
		{reason: "no mount point", mount: bootstrapv1.MountPoints{"/dev/sdb1"}, err: "spec.mounts[0]: must have between 2 and 6 elements"},
		{reason: "too many columns", mount: bootstrapv1.MountPoints{"a", "/b", "c", "d", "e", "f", "g"}, err: "spec.mounts[0]: must have between 2 and 6 elements"},
		{reason: "no device", mount: bootstrapv1.MountPoints{"", "/x"}, err: "spec.mounts[0][0]: must be a device"},
		{reason: "swap has no mount point", mount: bootstrapv1.MountPoints{"/dev/sdb1", "none", "swap"}, err: "spec.mounts[0][1]: must be an absolute path"},
		{reason: "the root", mount: bootstrapv1.MountPoints{"/dev/sdb1", "/"}, err: "spec.mounts[0][1]: must not be /"},
		{reason: "a mount point without a unit", mount: bootstrapv1.MountPoints{"/dev/sdb1", "/" + strings.Repeat("é", 100)}, err: "spec.mounts[0][1]: must not be /, and its unit"},
		{reason: "lines", mount: bootstrapv1.MountPoints{"/dev/sdb1", "/x", "auto", "rw\n[Install]\nx=y"}, err: "spec.mounts[0][3]: must be one line"},
		{reason: "a long line", mount: bootstrapv1.MountPoints{"/dev/sdb1", "/x", "auto", strings.Repeat("o,", 1200)}, err: "spec.mounts[0]: a line of its unit has more than 2000 bytes"},
		{reason: "a continued line", mount: bootstrapv1.MountPoints{"/dev/sdb1", "/x", "auto", `rw\`}, err: "spec.mounts[0][3]: must not end with a backslash"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			got, err := Join(bootstrapdata.Input{Mounts: []bootstrapv1.MountPoints{tt.mount}}, bootstrapv1.IgnitionSpec{})
			wantError(t, err, tt.err, "")
			if err != nil {
				return
			}
			u := unitAt(t, parse(t, got), tt.unit)
			if u == nil || !*u.Enabled {
				t.Fatalf("unit %+v", u)
			}
			text := "\n" + u.Contents
			for _, line := range tt.lines {
				if !strings.Contains(text, "\n"+line+"\n") {
					t.Errorf("no line %s in:%s", line, text)
				}
			}
			for _, line := range tt.none {
				if strings.Contains(text, "\n"+line) {
					t.Errorf("a line %s in:%s", line, text)
				}
			}
		})
	}
	twice := bootstrapdata.Input{Mounts: []bootstrapv1.MountPoints{{"/dev/sdb1", "/x"}, {"/dev/sdc1", "/x/"}}}
	_, err := Join(twice, bootstrapv1.IgnitionSpec{})
	wantError(t, err, "spec.mounts[1][1]: must be unique", "")
	got, err := Join(bootstrapdata.Input{Mounts: []bootstrapv1.MountPoints{{"/dev/sdb1", "/x", "auto", "noauto"}}}, bootstrapv1.IgnitionSpec{})
	if err != nil {
		t.Fatal(err)
	}
	if u := unitAt(t, parse(t, got), "x.mount"); u == nil || *u.Enabled {
		t.Errorf("noauto: unit %+v", u)
	}
}

// A spec with as many elements as fit into an object is rendered, in linear time: comparing all pairs would make this test slow.
func TestManyElements(t *testing.T) {
	const many = 20_000
	in := bootstrapdata.Input{DiskSetup: bootstrapv1.DiskSetup{}}
	var units, users strings.Builder
	for i := range many {
		name := "n" + strconv.Itoa(i)
		in.Files = append(in.Files, bootstrapv1.File{Path: "/" + name})
		in.Users = append(in.Users, bootstrapv1.User{Name: name})
		in.Mounts = append(in.Mounts, bootstrapv1.MountPoints{"x", "/" + name})
		in.DiskSetup.Partitions = append(in.DiskSetup.Partitions, bootstrapv1.Partition{Device: "/" + name})
		in.DiskSetup.Filesystems = append(in.DiskSetup.Filesystems, bootstrapv1.Filesystem{Device: "/" + name, Filesystem: "xfs"})
		if i < many/10 {
			units.WriteString("  - {name: " + name + ".mount}\n")
			users.WriteString("  - {name: " + name + "}\n")
		}
	}
	got, err := Join(in, additional("systemd:\n  units:\n"+units.String()+"passwd:\n  users:\n"+users.String(), false))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(got.JSON), `"name":"n19999.mount"`) {
		t.Error("a mount is missing")
	}
}
