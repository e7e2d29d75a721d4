package v1beta1

import bootstrapv1beta2 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"

// Encoding is how the content of a file is encoded in the API object.
// +kubebuilder:validation:Enum=base64;gzip;gzip+base64
type Encoding string

const (
	// Base64 content is decoded before it is written.
	Base64 Encoding = "base64"

	// Gzip content is decompressed before it is written.
	Gzip Encoding = "gzip"

	// GzipBase64 content is decoded, then decompressed, before it is written.
	GzipBase64 Encoding = "gzip+base64"
)

// File is a file to write on the machine. Its content comes from either Content or ContentFrom.
type File struct {
	// path is the absolute path of the file; it must be unique among the files.
	Path string `json:"path"`

	// owner is the owner in the form `user:group`, for example `root:root`.
	// +optional
	Owner string `json:"owner,omitempty"`

	// permissions are the octal file mode, for example `0640`.
	// +optional
	Permissions string `json:"permissions,omitempty"`

	// encoding of the content; plain text when unset.
	// +optional
	Encoding Encoding `json:"encoding,omitempty"`

	// append adds the content to an existing file instead of replacing it.
	// +optional
	Append bool `json:"append,omitempty"`

	// content is the literal content.
	// +optional
	Content string `json:"content,omitempty"`

	// contentFrom takes the content from another object.
	// +optional
	ContentFrom *FileSource `json:"contentFrom,omitempty"`

	// contentFormat is how the content, of either source, is interpreted: Raw, the default, or Template.
	// +optional
	ContentFormat FileContentFormat `json:"contentFormat,omitempty"`
}

// FileContentFormat is how the content of a file is interpreted.
type FileContentFormat = bootstrapv1beta2.FileContentFormat

const (
	// FileContentFormatRaw content is written as it is; it is the default.
	FileContentFormatRaw = bootstrapv1beta2.FileContentFormatRaw
	// FileContentFormatTemplate content is a Go text/template. Its data is `.controlPlane.version`, the Kubernetes version of
	// the control plane; `.controlPlane` is absent when that is unknown. The result is limited to 1 MiB.
	FileContentFormatTemplate = bootstrapv1beta2.FileContentFormatTemplate
)

// FileSource is the source of a file's content.
type FileSource struct {
	// secret holds the content; it must be in the namespace of the KubeadmConfig.
	Secret SecretFileSource `json:"secret"`
}

// SecretFileSource references a key of a Secret.
type SecretFileSource struct {
	// name of the Secret.
	Name string `json:"name"`

	// key of the entry in the Secret's data.
	Key string `json:"key"`
}

// PasswdSource is the source of a user's hashed password.
type PasswdSource struct {
	// secret holds the hashed password; it must be in the namespace of the KubeadmConfig.
	Secret SecretPasswdSource `json:"secret"`
}

// SecretPasswdSource references a key of a Secret.
type SecretPasswdSource struct {
	// name of the Secret.
	Name string `json:"name"`

	// key of the entry in the Secret's data.
	Key string `json:"key"`
}

// User is an account to create on the machine. Its password comes from either Passwd or PasswdFrom.
type User struct {
	// name is the login name.
	Name string `json:"name"`

	// gecos is the comment field of the account, usually the full name.
	// +optional
	Gecos *string `json:"gecos,omitempty"`

	// groups is a comma-separated list of additional groups.
	// +optional
	Groups *string `json:"groups,omitempty"`

	// homeDir is the home directory.
	// +optional
	HomeDir *string `json:"homeDir,omitempty"`

	// inactive creates the account disabled; not supported by the Ignition format.
	// +optional
	Inactive *bool `json:"inactive,omitempty"`

	// shell is the login shell.
	// +optional
	Shell *string `json:"shell,omitempty"`

	// passwd is the hashed password.
	// +optional
	Passwd *string `json:"passwd,omitempty"`

	// passwdFrom takes the hashed password from another object.
	// +optional
	PasswdFrom *PasswdSource `json:"passwdFrom,omitempty"`

	// primaryGroup is the main group of the account.
	// +optional
	PrimaryGroup *string `json:"primaryGroup,omitempty"`

	// lockPassword disables login by password.
	// +optional
	LockPassword *bool `json:"lockPassword,omitempty"`

	// sudo is the account's rule in sudoers syntax, without the leading name.
	// +optional
	Sudo *string `json:"sudo,omitempty"`

	// sshAuthorizedKeys are public keys that may log in.
	// +optional
	SSHAuthorizedKeys []string `json:"sshAuthorizedKeys,omitempty"`
}

// NTP configures time synchronization.
type NTP struct {
	// servers are the NTP servers.
	// +optional
	Servers []string `json:"servers,omitempty"`

	// enabled turns the time service on or off; defaults to the image's.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}

// DiskSetup describes partitions and file systems to create at first boot.
type DiskSetup struct {
	// partitions to create.
	// +optional
	Partitions []Partition `json:"partitions,omitempty"`

	// filesystems to create.
	// +optional
	Filesystems []Filesystem `json:"filesystems,omitempty"`
}

// Partition describes how one device is partitioned.
type Partition struct {
	// device is the path of the device.
	Device string `json:"device"`

	// layout true creates one partition that spans the device; false creates none, unless diskLayout is set.
	Layout bool `json:"layout"`

	// diskLayout lists the partitions to create, in the order on the device; their percentages add up to 100 at most.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	DiskLayout []PartitionSpec `json:"diskLayout,omitempty"`

	// overwrite replaces an existing partition table, and with it the data on the device.
	// +optional
	Overwrite *bool `json:"overwrite,omitempty"`

	// tableType is the kind of partition table: `mbr`, the default, or `gpt`. The Ignition format supports gpt only.
	// +optional
	TableType *string `json:"tableType,omitempty"`
}

// PartitionSpec describes one partition of a device.
type PartitionSpec struct {
	// percentage of the device that the partition has.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Percentage int32 `json:"percentage"`

	// partitionType is Linux, LinuxSwap, LinuxRAID, LVM, Fat32, NTFS, LinuxExtended, or the GUID of a GPT partition type.
	// Defaults to Linux.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:Pattern=`^(Linux|LinuxSwap|LinuxRAID|LVM|Fat32|NTFS|LinuxExtended|[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$`
	PartitionType string `json:"partitionType,omitempty"`
}

// Filesystem describes one file system.
type Filesystem struct {
	// device is the path of the device.
	Device string `json:"device"`

	// filesystem is the kind of file system, for example `ext4`.
	Filesystem string `json:"filesystem"`

	// label is the label given to the file system; empty for none. It is always written.
	// +optional
	Label string `json:"label"`

	// partition to use: `auto`, `any`, `none` or a partition number; not supported by the Ignition format.
	// +optional
	Partition *string `json:"partition,omitempty"`

	// overwrite replaces an existing file system.
	// +optional
	Overwrite *bool `json:"overwrite,omitempty"`

	// replaceFS, with partition `auto` or `any`, is the kind of file system that may be replaced; not supported by the
	// Ignition format.
	// +optional
	ReplaceFS *string `json:"replaceFS,omitempty"`

	// extraOpts are additional arguments of the command that creates the file system.
	// +optional
	ExtraOpts []string `json:"extraOpts,omitempty"`
}

// MountPoints are the columns of one fstab line, device first.
type MountPoints []string
