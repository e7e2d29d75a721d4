package userdata

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
)

const (
	defaultDirectoryMode = 0o755
	rootFilesystem       = "root"
)

// ignitionConfig has the parts of an Ignition 2.x document that have a meaning in a container. All others are ignored.
type ignitionConfig struct {
	Ignition struct {
		Version string                     `json:"version"`
		Config  map[string]json.RawMessage `json:"config"`
	} `json:"ignition"`
	Passwd struct {
		Users  []ignitionUser  `json:"users"`
		Groups []ignitionGroup `json:"groups"`
	} `json:"passwd"`
	Storage struct {
		Disks       []json.RawMessage   `json:"disks"`
		RAID        []json.RawMessage   `json:"raid"`
		Filesystems []json.RawMessage   `json:"filesystems"`
		Directories []ignitionDirectory `json:"directories"`
		Files       []ignitionFile      `json:"files"`
		Links       []ignitionLink      `json:"links"`
	} `json:"storage"`
	Systemd struct {
		Units []ignitionUnit `json:"units"`
	} `json:"systemd"`
	Networkd struct {
		Units []json.RawMessage `json:"units"`
	} `json:"networkd"`
}

// ignitionPath is what files, directories and links have in common.
type ignitionPath struct {
	Filesystem string        `json:"filesystem"`
	Path       string        `json:"path"`
	Mode       *uint32       `json:"mode"`
	User       ignitionOwner `json:"user"`
	Group      ignitionOwner `json:"group"`
}

type ignitionOwner struct {
	ID   *int   `json:"id"`
	Name string `json:"name"`
}

type ignitionDirectory struct {
	ignitionPath
}

type ignitionFile struct {
	ignitionPath
	Append   bool `json:"append"`
	Contents struct {
		Compression string `json:"compression"`
		Source      string `json:"source"`
	} `json:"contents"`
}

type ignitionLink struct {
	ignitionPath
	Target string `json:"target"`
	Hard   bool   `json:"hard"`
}

type ignitionUnit struct {
	Name     string           `json:"name"`
	Enable   bool             `json:"enable"` // The deprecated form of enabled.
	Enabled  *bool            `json:"enabled"`
	Mask     bool             `json:"mask"`
	Contents string           `json:"contents"`
	Dropins  []ignitionDropin `json:"dropins"`
}

type ignitionDropin struct {
	Name     string `json:"name"`
	Contents string `json:"contents"`
}

type ignitionUser struct {
	Name         string   `json:"name"`
	UID          *int     `json:"uid"`
	Gecos        string   `json:"gecos"`
	HomeDir      string   `json:"homeDir"`
	NoCreateHome bool     `json:"noCreateHome"`
	PrimaryGroup string   `json:"primaryGroup"`
	Groups       []string `json:"groups"`
	System       bool     `json:"system"`
	Shell        string   `json:"shell"`
	Password     string   `json:"passwordHash"`
	Keys         []string `json:"sshAuthorizedKeys"`
}

type ignitionGroup struct {
	Name   string `json:"name"`
	GID    *int   `json:"gid"`
	System bool   `json:"system"`
}

// readIgnition interprets an Ignition document. The unit of kubeadm becomes a command, so that its end and its exit code are
// known; systemd starts all other enabled units, and as on any machine, bootstrapping does not depend on them.
func readIgnition(value []byte) (*Data, error) {
	c := &ignitionConfig{}
	if err := json.Unmarshal(value, c); err != nil {
		return nil, errors.New("the bootstrap data is not a valid Ignition document") // The error may quote it.
	}
	if !strings.HasPrefix(c.Ignition.Version, "2.") {
		return nil, version(c.Ignition.Version)
	}
	entries := len(c.Storage.Files) + len(c.Storage.Directories) + len(c.Storage.Links) +
		len(c.Systemd.Units) + len(c.Passwd.Users) + len(c.Passwd.Groups)
	if entries > maxEntries {
		return nil, fmt.Errorf("the Ignition document has more than %d entries", maxEntries)
	}
	d := &Data{}
	for _, read := range []func(*ignitionConfig) error{d.accounts, d.directories, d.ignitionFiles, d.links, d.units} {
		if err := read(c); err != nil {
			return nil, err
		}
	}
	d.ignore(c)
	return d, nil
}

// version is the error for an Ignition document of another version.
func version(of string) error {
	if of == "" {
		return errors.New("the bootstrap data is not a valid Ignition document: it has no ignition.version")
	}
	return &UnsupportedError{fmt.Sprintf("Ignition version %.20q is not supported: use 2.3.0", of)}
}

// ignore lists what has no meaning in a container. Nothing is downloaded.
func (d *Data) ignore(c *ignitionConfig) {
	for part, used := range map[string]bool{
		"ignition.config":     len(c.Ignition.Config) > 0,
		"storage.disks":       len(c.Storage.Disks) > 0,
		"storage.raid":        len(c.Storage.RAID) > 0,
		"storage.filesystems": len(c.Storage.Filesystems) > 0,
		"networkd":            len(c.Networkd.Units) > 0,
	} {
		if used {
			d.Ignored = append(d.Ignored, part)
		}
	}
}

func (d *Data) accounts(c *ignitionConfig) error {
	for _, g := range c.Passwd.Groups {
		if !accountForm().MatchString(g.Name) {
			return fmt.Errorf("group %.40q in the Ignition document has an invalid name", g.Name)
		}
		args := []string{"groupadd", "--force"}
		if g.GID != nil {
			args = append(args, "--gid", strconv.Itoa(*g.GID))
		}
		if g.System {
			args = append(args, "--system")
		}
		d.Before = append(d.Before, Command{Name: "the creation of group " + g.Name, Args: append(args, g.Name)})
	}
	for _, u := range c.Passwd.Users {
		if !accountForm().MatchString(u.Name) {
			return fmt.Errorf("user %.40q in the Ignition document has an invalid name", u.Name)
		}
		if u.Password != "" || len(u.Keys) > 0 {
			d.Ignored = append(d.Ignored, "password and SSH keys of user "+u.Name)
		}
		if u.Name == "root" {
			continue
		}
		var create strings.Builder
		for _, group := range u.memberships() {
			if !accountForm().MatchString(group) {
				return fmt.Errorf("group %.40q of user %s in the Ignition document has an invalid name", group, u.Name)
			}
			create.WriteString("groupadd --force " + group + " && ") // Node images have fewer groups than operating systems.
		}
		create.WriteString(QuoteAll(u.add()))
		d.Before = append(d.Before, Command{
			Name:  "the creation of user " + u.Name,
			Shell: "id -u " + Quote(u.Name) + " >/dev/null 2>&1 || { " + create.String() + "; }",
		})
	}
	return nil
}

// accountForm matches names of users and groups.
func accountForm() *regexp.Regexp { return regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`) }

// memberships returns the groups of the user.
func (u *ignitionUser) memberships() []string {
	if u.PrimaryGroup == "" {
		return u.Groups
	}
	return append([]string{u.PrimaryGroup}, u.Groups...)
}

// add returns the command that creates the user.
func (u *ignitionUser) add() []string {
	args := []string{"useradd"}
	option := func(name, value string) {
		if value != "" {
			args = append(args, name, value)
		}
	}
	if u.UID != nil {
		option("--uid", strconv.Itoa(*u.UID))
	}
	option("--comment", u.Gecos)
	option("--home-dir", u.HomeDir)
	option("--gid", u.PrimaryGroup)
	option("--groups", strings.Join(u.Groups, ","))
	option("--shell", u.Shell)
	if u.System {
		args = append(args, "--system")
	}
	if u.NoCreateHome {
		args = append(args, "--no-create-home")
	} else {
		args = append(args, "--create-home")
	}
	return append(args, u.Name)
}

// inRoot reports whether a path is in the root file system. Others are ignored.
func (d *Data) inRoot(at ignitionPath) bool {
	if at.Filesystem == "" || at.Filesystem == rootFilesystem {
		return true
	}
	d.Ignored = append(d.Ignored, "files of file system "+shorten(at.Filesystem))
	return false
}

func (d *Data) directories(c *ignitionConfig) error {
	for _, in := range c.Storage.Directories {
		if !d.inRoot(in.ignitionPath) {
			continue
		}
		in.Path = path.Clean(in.Path)
		if err := checkPath(in.Path); err != nil {
			return err
		}
		owner, err := in.owner()
		if err != nil {
			return err
		}
		d.Before = append(d.Before, Command{
			Name: "the creation of directory " + in.Path,
			Shell: fmt.Sprintf("mkdir -p %[1]s && chown %[2]s %[1]s && chmod %[3]o %[1]s",
				Quote(in.Path), Quote(owner), in.mode(defaultDirectoryMode)),
		})
	}
	return nil
}

func (at *ignitionPath) mode(otherwise uint32) uint32 {
	if at.Mode == nil {
		return otherwise
	}
	return *at.Mode & 0o7777
}

// owner returns "user:group".
func (at *ignitionPath) owner() (string, error) {
	owner := at.User.text() + ":" + at.Group.text()
	if !ownerForm().MatchString(owner) {
		return "", fmt.Errorf("%.200q in the Ignition document has the invalid owner %.80q", at.Path, owner)
	}
	return owner, nil
}

func (o ignitionOwner) text() string {
	switch {
	case o.Name != "":
		return o.Name
	case o.ID != nil:
		return strconv.Itoa(*o.ID)
	}
	return "0"
}

func (d *Data) ignitionFiles(c *ignitionConfig) error {
	left := maxContent
	for _, in := range c.Storage.Files {
		if !d.inRoot(in.ignitionPath) {
			continue
		}
		owner, err := in.owner()
		if err != nil {
			return err
		}
		f := File{Path: path.Clean(in.Path), Owner: owner, Mode: in.mode(defaultMode), Append: in.Append, External: in.external()}
		if !f.External {
			if f.Content, err = in.content(left); err != nil {
				return fmt.Errorf("file %.200q in the Ignition document: %w", in.Path, err)
			}
		}
		left -= len(f.Content)
		d.Files = append(d.Files, f)
	}
	return nil
}

// external reports whether the contents of a file are not part of the document.
func (f *ignitionFile) external() bool {
	return f.Contents.Source != "" && !strings.HasPrefix(strings.ToLower(f.Contents.Source), "data:")
}

// content decodes the contents of a file.
func (f *ignitionFile) content(limit int) ([]byte, error) {
	content, err := dataURL(f.Contents.Source)
	if err != nil {
		return nil, err
	}
	switch f.Contents.Compression {
	case "":
		return content, nil
	case "gzip":
		return unzip(content, limit)
	}
	return nil, fmt.Errorf("compression %.20q is not supported: use gzip", f.Contents.Compression)
}

// dataURL decodes a URL such as "data:,text" or "data:text/plain;base64,dGV4dA==". An empty one is an empty file.
func dataURL(source string) ([]byte, error) {
	if source == "" {
		return nil, nil
	}
	kind, data, ok := strings.Cut(source, ",")
	if !ok {
		return nil, errors.New("its source is not a valid data URL")
	}
	text, err := url.PathUnescape(data)
	if err != nil {
		return nil, errors.New("its source is not a valid data URL") // The error would quote it.
	}
	if !strings.HasSuffix(kind, ";base64") {
		return []byte(text), nil
	}
	content, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("its source is not valid base64")
	}
	return content, nil
}

func (d *Data) links(c *ignitionConfig) error {
	for _, l := range c.Storage.Links {
		if !d.inRoot(l.ignitionPath) {
			continue
		}
		l.Path = path.Clean(l.Path)
		if err := checkPath(l.Path); err != nil {
			return err
		}
		if l.Target == "" {
			return fmt.Errorf("link %s in the Ignition document has no target", l.Path)
		}
		flags := "-sfn"
		if l.Hard {
			flags = "-fn"
		}
		d.Commands = append(d.Commands, Command{
			Name:  "the creation of link " + l.Path,
			Shell: fmt.Sprintf("mkdir -p %s && ln %s -- %s %s", Quote(path.Dir(l.Path)), flags, Quote(l.Target), Quote(l.Path)),
		})
	}
	return nil
}
