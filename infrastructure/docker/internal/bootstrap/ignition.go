package bootstrap

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
	unitFolder = "/etc/systemd/system/"
	// kubeadmUnit runs kubeadm at the first boot.
	kubeadmUnit          = "kubeadm.service"
	defaultDirectoryMode = 0o755
	rootFilesystem       = "root"
)

// ignitionConfig has the parts of an Ignition 2.x document that make sense in a container. All others are ignored.
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
func readIgnition(value []byte) (*Plan, error) {
	c := &ignitionConfig{}
	if err := json.Unmarshal(value, c); err != nil {
		return nil, errors.New("the bootstrap data is not a valid Ignition document") // The error may quote it.
	}
	if !strings.HasPrefix(c.Ignition.Version, "2.") {
		return nil, fmt.Errorf("Ignition version %.20q is not supported: use 2.3.0", c.Ignition.Version)
	}
	if len(c.Storage.Files)+len(c.Storage.Directories)+len(c.Storage.Links)+len(c.Systemd.Units)+len(c.Passwd.Users)+len(c.Passwd.Groups) > maxEntries {
		return nil, fmt.Errorf("the Ignition document has more than %d entries", maxEntries)
	}
	p := &Plan{}
	for _, read := range []func(*ignitionConfig) error{p.accounts, p.directories, p.ignitionFiles, p.links, p.units} {
		if err := read(c); err != nil {
			return nil, err
		}
	}
	p.ignore(c)
	return p, nil
}

// ignore lists what has no meaning in a container. Nothing is downloaded.
func (p *Plan) ignore(c *ignitionConfig) {
	for part, used := range map[string]bool{
		"ignition.config":     len(c.Ignition.Config) > 0,
		"storage.disks":       len(c.Storage.Disks) > 0,
		"storage.raid":        len(c.Storage.RAID) > 0,
		"storage.filesystems": len(c.Storage.Filesystems) > 0,
		"networkd":            len(c.Networkd.Units) > 0,
	} {
		if used {
			p.Ignored = append(p.Ignored, part)
		}
	}
}

func (p *Plan) accounts(c *ignitionConfig) error {
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
		p.Before = append(p.Before, Command{Name: "the creation of group " + g.Name, Args: append(args, g.Name)})
	}
	for _, u := range c.Passwd.Users {
		if !accountForm().MatchString(u.Name) {
			return fmt.Errorf("user %.40q in the Ignition document has an invalid name", u.Name)
		}
		if u.Password != "" || len(u.Keys) > 0 {
			p.Ignored = append(p.Ignored, "password and SSH keys of user "+u.Name)
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
		create.WriteString(quoteAll(u.add()))
		p.Before = append(p.Before, Command{
			Name:  "the creation of user " + u.Name,
			Shell: "id -u " + quote(u.Name) + " >/dev/null 2>&1 || { " + create.String() + "; }",
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

// inContainer reports whether a path is in the container's file system. Others are ignored.
func (p *Plan) inContainer(at ignitionPath) bool {
	if at.Filesystem == "" || at.Filesystem == rootFilesystem {
		return true
	}
	p.Ignored = append(p.Ignored, "files of file system "+shorten(at.Filesystem))
	return false
}

func (p *Plan) directories(c *ignitionConfig) error {
	for _, d := range c.Storage.Directories {
		if !p.inContainer(d.ignitionPath) {
			continue
		}
		d.Path = path.Clean(d.Path)
		if err := checkPath(d.Path); err != nil {
			return err
		}
		owner, err := d.owner()
		if err != nil {
			return err
		}
		p.Before = append(p.Before, Command{
			Name:  "the creation of directory " + d.Path,
			Shell: fmt.Sprintf("mkdir -p %[1]s && chown %[2]s %[1]s && chmod %[3]o %[1]s", quote(d.Path), quote(owner), d.mode(defaultDirectoryMode)),
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

func (p *Plan) ignitionFiles(c *ignitionConfig) error {
	left := maxContent
	for _, in := range c.Storage.Files {
		if !p.inContainer(in.ignitionPath) {
			continue
		}
		owner, err := in.owner()
		if err != nil {
			return err
		}
		content, err := in.content(left)
		if err != nil {
			return fmt.Errorf("file %.200q in the Ignition document: %w", in.Path, err)
		}
		left -= len(content)
		p.Files = append(p.Files, File{Path: path.Clean(in.Path), Owner: owner, Mode: in.mode(defaultMode), Content: content, Append: in.Append})
	}
	return nil
}

// content decodes the contents of a file. They must be part of the document: nothing is downloaded.
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
	if !ok || !strings.HasPrefix(strings.ToLower(kind), "data:") {
		return nil, errors.New("its source is not a data URL: downloads are not supported in containers")
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

func (p *Plan) links(c *ignitionConfig) error {
	for _, l := range c.Storage.Links {
		if !p.inContainer(l.ignitionPath) {
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
		p.Commands = append(p.Commands, Command{
			Name:  "the creation of link " + l.Path,
			Shell: fmt.Sprintf("mkdir -p %s && ln %s -- %s %s", quote(path.Dir(l.Path)), flags, quote(l.Target), quote(l.Path)),
		})
	}
	return nil
}

// units writes units, enables them, and ends with the command of kubeadm.
func (p *Plan) units(c *ignitionConfig) error {
	var systemctl []Command
	var kubeadm *Command
	for _, u := range c.Systemd.Units {
		if !unitForm().MatchString(u.Name) {
			return fmt.Errorf("unit %.80q in the Ignition document has an invalid name", u.Name)
		}
		enabled := u.Enable
		if u.Enabled != nil {
			enabled = *u.Enabled
		}
		if u.Name == kubeadmUnit && enabled && !u.Mask {
			args, err := u.program()
			if err != nil {
				return err
			}
			kubeadm = &Command{Name: kubeadmUnit, Args: args}
			if len(u.Dropins) > 0 {
				p.Ignored = append(p.Ignored, "drop-ins of "+kubeadmUnit)
			}
			continue
		}
		if err := p.unitFiles(u); err != nil {
			return err
		}
		systemctl = append(systemctl, u.commands(enabled)...)
	}
	if len(systemctl) > 0 {
		p.Commands = append(p.Commands, Command{Name: "systemctl daemon-reload", Args: []string{"systemctl", "daemon-reload"}})
		p.Commands = append(p.Commands, systemctl...)
	}
	if kubeadm != nil {
		p.Commands = append(p.Commands, *kubeadm)
	}
	return nil
}

// unitForm matches names of systemd units, and of their drop-ins.
func unitForm() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9:_\\@-][A-Za-z0-9:_.\\@-]{0,250}$`)
}

func (p *Plan) unitFiles(u ignitionUnit) error {
	if u.Contents != "" {
		p.Files = append(p.Files, File{Path: unitFolder + u.Name, Mode: defaultMode, Content: []byte(u.Contents)})
	}
	for _, d := range u.Dropins {
		if !unitForm().MatchString(d.Name) {
			return fmt.Errorf("drop-in %.80q of unit %s in the Ignition document has an invalid name", d.Name, u.Name)
		}
		p.Files = append(p.Files, File{Path: unitFolder + u.Name + ".d/" + d.Name, Mode: defaultMode, Content: []byte(d.Contents)})
	}
	return nil
}

// commands returns what enables and starts, or masks, the unit. Starting it does not wait: a mount of a device that a container
// does not have would take minutes to fail.
func (u *ignitionUnit) commands(enabled bool) []Command {
	command := func(args ...string) Command {
		args = append(args, "--", u.Name)
		return Command{Name: "systemctl " + args[0] + " " + u.Name, Args: append([]string{"systemctl"}, args...)}
	}
	switch {
	case u.Mask:
		return []Command{command("mask")}
	case enabled:
		return []Command{command("enable"), command("start", "--no-block")}
	}
	return nil
}

// program returns the command of ExecStart.
func (u *ignitionUnit) program() ([]string, error) {
	for line := range strings.Lines(u.Contents) {
		value, ok := strings.CutPrefix(strings.TrimSpace(line), "ExecStart=")
		if ok && value != "" {
			args := strings.Fields(strings.TrimLeft(value, "@-:+!"))
			if len(args) > 0 && path.IsAbs(args[0]) && !strings.ContainsAny(value, `"'\%$`) {
				return args, nil
			}
		}
	}
	return nil, fmt.Errorf("unit %s in the Ignition document has no ExecStart with an absolute path and plain arguments", u.Name)
}
