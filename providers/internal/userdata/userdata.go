package userdata

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
)

// Limits of bootstrap data. A Secret has at most 1 MiB.
const (
	maxData = 1 << 20
	// maxContent is the total size of all files after decoding.
	maxContent = 8 << 20
	// maxEntries is the number of files, and of commands.
	maxEntries = 2000
	// maxPath is the length of a path on Linux.
	maxPath = 4096
)

// Data is what a machine does at its first boot: Before, Files and Commands, in this order, until one fails.
type Data struct {
	// Before are commands that the files depend on, such as the creation of their owners.
	Before []Command
	// Files are written in order.
	Files []File
	// Commands are run in order.
	Commands []Command
	// Ignored are the parts that have no meaning for a simulated machine or one in a container, such as partitions, sorted.
	Ignored []string
}

// File is a file to write.
type File struct {
	// Path is absolute and clean.
	Path string
	// Owner has the form "user:group" or "user", by name or number. Empty: root.
	Owner string
	// Mode has the permissions, with setuid, setgid and sticky bits as in chmod.
	Mode    uint32
	Content []byte
	// External is whether the content has to be downloaded, so that Content is empty.
	External bool
	// Append appends to an existing file.
	Append bool
}

// Command is a command to run. Either Args or Shell is set.
type Command struct {
	// Name describes the command in messages, without quoting it: it may contain secrets.
	Name string
	// Args are the program and its arguments.
	Args []string
	// Shell is a script for /bin/sh.
	Shell string
}

// ErrEmpty is the error for bootstrap data without any content.
var ErrEmpty = errors.New("the bootstrap data is empty")

// UnsupportedError is the error for data in a format that this package does not read. The data may be valid.
type UnsupportedError struct {
	// Format describes the format.
	Format string
}

// Error implements error.
func (e *UnsupportedError) Error() string { return e.Format }

// Read interprets the value of a bootstrap data Secret. The format is that of the Secret; empty means cloud-config. Errors do not
// quote contents of files or commands.
func Read(value []byte, format string) (*Data, error) {
	if len(value) > maxData {
		return nil, fmt.Errorf("the bootstrap data has %d bytes, the limit is %d", len(value), maxData)
	}
	if len(bytes.TrimSpace(value)) == 0 {
		return nil, ErrEmpty
	}
	var d *Data
	var err error
	switch bootstrapv1.Format(format) {
	case "", bootstrapv1.CloudConfig:
		d, err = readCloudConfig(value)
	case bootstrapv1.Ignition:
		d, err = readIgnition(value)
	default:
		err = &UnsupportedError{
			fmt.Sprintf("bootstrap data format %.40q is not supported: use %s or %s", format, bootstrapv1.CloudConfig, bootstrapv1.Ignition),
		}
	}
	if err != nil {
		return nil, err
	}
	if err := d.validate(); err != nil {
		return nil, err
	}
	slices.Sort(d.Ignored)
	d.Ignored = slices.Compact(d.Ignored)
	return d, nil
}

// validate checks limits and everything that may become part of a shell script.
func (d *Data) validate() error {
	if len(d.Files) > maxEntries || len(d.Commands)+len(d.Before) > maxEntries {
		return fmt.Errorf("the bootstrap data has more than %d files or commands", maxEntries)
	}
	total := 0
	for i := range d.Files {
		if err := d.Files[i].validate(); err != nil {
			return err
		}
		if total += len(d.Files[i].Content); total > maxContent {
			return fmt.Errorf("the files in the bootstrap data have more than %d bytes", maxContent)
		}
	}
	for _, c := range slices.Concat(d.Before, d.Commands) {
		if strings.ContainsRune(c.Shell, 0) || slices.ContainsFunc(c.Args, func(a string) bool { return strings.ContainsRune(a, 0) }) {
			return fmt.Errorf("%s contains a NUL character", c.Name)
		}
	}
	return nil
}

func (f *File) validate() error {
	if err := checkPath(f.Path); err != nil {
		return err
	}
	if f.Owner != "" && !ownerForm().MatchString(f.Owner) {
		return fmt.Errorf("file %s has the invalid owner %.80q: use user:group", f.Path, f.Owner)
	}
	if f.Mode > 0o7777 {
		return fmt.Errorf("file %s has the invalid permissions %o", f.Path, f.Mode)
	}
	return nil
}

// ownerForm matches "user" and "user:group".
func ownerForm() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,31})?$`)
}

// checkPath returns an error unless a path is absolute, clean, and printable.
func checkPath(p string) error {
	control := func(r rune) bool {
		return r < ' ' || r == 0x7f || r == '\u0085' || r == '\u2028' || r == '\u2029' || r == '\ufffd'
	}
	switch {
	case len(p) > maxPath:
		return fmt.Errorf("the path of a file has %d bytes, the limit is %d", len(p), maxPath)
	case strings.ContainsFunc(p, control):
		return fmt.Errorf("the path %.80q contains control characters", p)
	case !path.IsAbs(p) || path.Clean(p) != p || p == "/":
		return fmt.Errorf("the path %.80q is not an absolute path of a file", p)
	}
	return nil
}
