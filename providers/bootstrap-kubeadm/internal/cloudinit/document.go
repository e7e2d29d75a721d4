package cloudinit

import (
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	"k8s.io/utils/ptr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
)

// document is a cloud-config, in the documented order of its sections.
type document struct {
	Files       []file        `yaml:"write_files"`
	Boot        []quoted      `yaml:"bootcmd,omitempty"`
	Commands    []quoted      `yaml:"runcmd"`
	NTP         *ntp          `yaml:"ntp,omitempty"`
	Users       []user        `yaml:"users,omitempty"`
	Disks       map[line]disk `yaml:"disk_setup,omitempty"`
	Filesystems []filesystem  `yaml:"fs_setup,omitempty"`
	Mounts      [][]line      `yaml:"mounts,omitempty"`
}

// quoted is a string that is always quoted, so that a command is never parsed as another YAML type.
type quoted string

// MarshalYAML implements yaml.Marshaler.
func (q quoted) MarshalYAML() (any, error) {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: string(q)}, nil
}

// text is a string that is written as a literal block. If it starts with white space, it is quoted:
// parsers disagree about the indentation of such blocks.
type text string

// MarshalYAML implements yaml.Marshaler.
func (t text) MarshalYAML() (any, error) {
	if strings.TrimLeft(string(t), " \t\r\n") != string(t) {
		return quoted(t).MarshalYAML()
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.LiteralStyle, Value: string(t)}, nil
}

// line is a string that usually has one line, and is written in the default style. Otherwise it is quoted: as a block it would be
// misread if it starts with white space. Text that is not UTF-8 is an error, as everywhere here: it would become a binary value,
// which cloud-init does not expect.
type line string

// MarshalYAML implements yaml.Marshaler.
func (l line) MarshalYAML() (any, error) {
	if strings.ContainsAny(string(l), "\n\r\u0085\u2028\u2029") || !utf8.ValidString(string(l)) {
		return quoted(l).MarshalYAML()
	}
	return string(l), nil
}

func lines(in []string) []line {
	var out []line
	for _, s := range in {
		out = append(out, line(s))
	}
	return out
}

type file struct {
	Path        line   `yaml:"path"`
	Encoding    line   `yaml:"encoding,omitempty"`
	Owner       line   `yaml:"owner,omitempty"`
	Permissions quoted `yaml:"permissions,omitempty"`
	Append      bool   `yaml:"append,omitempty"`
	Content     text   `yaml:"content"`
}

func writeFiles(files []bootstrapv1.File) []file {
	out := make([]file, 0, len(files))
	for _, f := range files {
		out = append(out, file{
			Path: line(f.Path), Encoding: line(f.Encoding), Owner: line(f.Owner),
			Permissions: quoted(f.Permissions), Append: ptr.Deref(f.Append, false), Content: text(f.Content),
		})
	}
	return out
}

type ntp struct {
	Enabled *bool  `yaml:"enabled,omitempty"`
	Servers []line `yaml:"servers,omitempty"`
}

func ntpOf(in *bootstrapv1.NTP) *ntp {
	if in == nil {
		return nil
	}
	return &ntp{Enabled: in.Enabled, Servers: lines(in.Servers)}
}

type user struct {
	Name         line   `yaml:"name"`
	Passwd       quoted `yaml:"passwd,omitempty"`
	Gecos        quoted `yaml:"gecos,omitempty"`
	Groups       quoted `yaml:"groups,omitempty"`
	HomeDir      quoted `yaml:"homedir,omitempty"`
	Inactive     *bool  `yaml:"inactive,omitempty"`
	LockPassword *bool  `yaml:"lock_passwd,omitempty"`
	Shell        quoted `yaml:"shell,omitempty"`
	PrimaryGroup quoted `yaml:"primary_group,omitempty"`
	Sudo         quoted `yaml:"sudo,omitempty"`
	Keys         []line `yaml:"ssh_authorized_keys,omitempty"`
}

func usersOf(in []bootstrapv1.User) []user {
	var out []user
	for _, u := range in {
		out = append(out, user{
			Name:         line(u.Name),
			Passwd:       quoted(u.Passwd),
			Gecos:        quoted(u.Gecos),
			Groups:       quoted(u.Groups),
			HomeDir:      quoted(u.HomeDir),
			Inactive:     u.Inactive,
			LockPassword: u.LockPassword,
			Shell:        quoted(u.Shell),
			PrimaryGroup: quoted(u.PrimaryGroup),
			Sudo:         quoted(u.Sudo),
			Keys:         lines(u.SSHAuthorizedKeys),
		})
	}
	return out
}

type disk struct {
	TableType line  `yaml:"table_type,omitempty"`
	Layout    any   `yaml:"layout"`
	Overwrite *bool `yaml:"overwrite,omitempty"`
}

// layout returns whether a device has one partition, or a list of partitions: percentages, or pairs of these and a partition type.
func layout(p bootstrapv1.Partition) any {
	if len(p.DiskLayout) == 0 {
		return ptr.Deref(p.Layout, false)
	}
	var out []any
	for _, part := range p.DiskLayout {
		if part.PartitionType == "" {
			out = append(out, part.Percentage)
			continue
		}
		out = append(out, []any{part.Percentage, partitionCode(part.PartitionType)})
	}
	return out
}

// partitionCode returns the code of a partition type, which cloud-init translates for tables of type gpt. GUIDs are their own code.
func partitionCode(partitionType string) quoted {
	codes := map[string]quoted{
		"Linux": "83", "LinuxSwap": "82", "LinuxRAID": "fd", "LVM": "8e", "Fat32": "0c", "NTFS": "07", "LinuxExtended": "85",
	}
	if code, ok := codes[partitionType]; ok {
		return code
	}
	return quoted(partitionType)
}

func disksOf(in []bootstrapv1.Partition) map[line]disk {
	out := map[line]disk{}
	for _, p := range in {
		out[line(p.Device)] = disk{TableType: line(p.TableType), Layout: layout(p), Overwrite: p.Overwrite}
	}
	return out
}

type filesystem struct {
	Label      line   `yaml:"label"`
	Filesystem line   `yaml:"filesystem"`
	Device     line   `yaml:"device"`
	Partition  line   `yaml:"partition,omitempty"`
	Overwrite  *bool  `yaml:"overwrite,omitempty"`
	ReplaceFS  line   `yaml:"replace_fs,omitempty"`
	ExtraOpts  []line `yaml:"extra_opts,omitempty"`
}

func filesystemsOf(in []bootstrapv1.Filesystem) []filesystem {
	var out []filesystem
	for _, f := range in {
		out = append(out, filesystem{
			Label: line(f.Label), Filesystem: line(f.Filesystem), Device: line(f.Device), Partition: line(f.Partition),
			Overwrite: f.Overwrite, ReplaceFS: line(f.ReplaceFS), ExtraOpts: lines(f.ExtraOpts),
		})
	}
	return out
}

func mountsOf(in []bootstrapv1.MountPoints) [][]line {
	var out [][]line
	for _, m := range in {
		out = append(out, lines(m))
	}
	return out
}
