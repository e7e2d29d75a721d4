package v1beta2

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

// FileContentFormat is how the content of a file is interpreted.
// +kubebuilder:validation:Enum=Raw;Template
type FileContentFormat string

const (
	// FileContentFormatRaw content is written as it is; it is the default.
	FileContentFormatRaw FileContentFormat = "Raw"

	// FileContentFormatTemplate content is a Go text/template. Its data is `.controlPlane.version`, the Kubernetes version of
	// the control plane; `.controlPlane` is absent when that is unknown. The result is limited to 1 MiB.
	FileContentFormatTemplate FileContentFormat = "Template"
)

// File is a file to write on the machine. Its content comes from either Content or ContentFrom.
type File struct {
	// path is the absolute path of the file; it must be unique among the files.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path,omitempty"`

	// owner is the owner in the form `user:group`, for example `root:root`.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Owner string `json:"owner,omitempty"`

	// permissions are the octal file mode, for example `0640`.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16
	Permissions string `json:"permissions,omitempty"`

	// encoding of the content; plain text when unset.
	// +optional
	Encoding Encoding `json:"encoding,omitempty"`

	// append adds the content to an existing file instead of replacing it. Defaults to false.
	// +optional
	Append *bool `json:"append,omitempty"`

	// content is the literal content.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10240
	Content string `json:"content,omitempty"`

	// contentFrom takes the content from another object.
	// +optional
	ContentFrom FileSource `json:"contentFrom,omitempty,omitzero"`

	// contentFormat is how the content, of either source, is interpreted: Raw, the default, or Template.
	// +optional
	ContentFormat FileContentFormat `json:"contentFormat,omitempty"`
}

// FileSource is the source of a file's content.
type FileSource struct {
	// secret holds the content; it must be in the namespace of the KubeadmConfig.
	// +required
	Secret SecretFileSource `json:"secret,omitempty,omitzero"`
}

// SecretFileSource references a key of a Secret.
type SecretFileSource struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// key of the entry in the Secret's data.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Key string `json:"key,omitempty"`
}

// PasswdSource is the source of a user's hashed password.
type PasswdSource struct {
	// secret holds the hashed password; it must be in the namespace of the KubeadmConfig.
	// +required
	Secret SecretPasswdSource `json:"secret,omitempty,omitzero"`
}

// SecretPasswdSource references a key of a Secret.
type SecretPasswdSource struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// key of the entry in the Secret's data.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Key string `json:"key,omitempty"`
}

// User is an account to create on the machine. Its password comes from either Passwd or PasswdFrom.
type User struct {
	// name is the login name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`

	// gecos is the comment field of the account, usually the full name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Gecos string `json:"gecos,omitempty"`

	// groups is a comma-separated list of additional groups.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Groups string `json:"groups,omitempty"`

	// homeDir is the home directory.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	HomeDir string `json:"homeDir,omitempty"`

	// inactive creates the account disabled; not supported by the Ignition format.
	// +optional
	Inactive *bool `json:"inactive,omitempty"`

	// shell is the login shell.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Shell string `json:"shell,omitempty"`

	// passwd is the hashed password.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Passwd string `json:"passwd,omitempty"`

	// passwdFrom takes the hashed password from another object.
	// +optional
	PasswdFrom PasswdSource `json:"passwdFrom,omitempty,omitzero"`

	// primaryGroup is the main group of the account.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	PrimaryGroup string `json:"primaryGroup,omitempty"`

	// lockPassword disables login by password.
	// +optional
	LockPassword *bool `json:"lockPassword,omitempty"`

	// sudo is the account's rule in sudoers syntax, without the leading name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Sudo string `json:"sudo,omitempty"`

	// sshAuthorizedKeys are public keys that may log in.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=2048
	SSHAuthorizedKeys []string `json:"sshAuthorizedKeys,omitempty"`
}

// NTP configures time synchronization.
// +kubebuilder:validation:MinProperties=1
type NTP struct {
	// servers are the NTP servers.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	Servers []string `json:"servers,omitempty"`

	// enabled turns the time service on or off; defaults to the image's.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}

// DiskSetup describes partitions and file systems to create at first boot.
// +kubebuilder:validation:MinProperties=1
type DiskSetup struct {
	// partitions to create.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Partitions []Partition `json:"partitions,omitempty"`

	// filesystems to create.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Filesystems []Filesystem `json:"filesystems,omitempty"`
}

// Partition describes how one device is partitioned.
//
// +kubebuilder:validation:ExactlyOneOf=layout;diskLayout
type Partition struct {
	// device is the path of the device.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Device string `json:"device,omitempty"`

	// layout true creates one partition that spans the device; false creates none. Mutually exclusive with diskLayout.
	// +optional
	Layout *bool `json:"layout,omitempty"`

	// diskLayout lists the partitions to create, in the order on the device; their percentages add up to 100 at most.
	// Mutually exclusive with layout.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	DiskLayout []PartitionSpec `json:"diskLayout,omitempty"`

	// overwrite replaces an existing partition table, and with it the data on the device.
	// +optional
	Overwrite *bool `json:"overwrite,omitempty"`

	// tableType is the kind of partition table: `mbr`, the default, or `gpt`. The Ignition format supports gpt only.
	// +kubebuilder:validation:Enum=mbr;gpt
	// +optional
	TableType string `json:"tableType,omitempty"`
}

// PartitionSpec describes one partition of a device.
type PartitionSpec struct {
	// percentage of the device that the partition has.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Percentage int32 `json:"percentage,omitempty"`

	// partitionType is Linux, LinuxSwap, LinuxRAID, LVM, Fat32, NTFS, LinuxExtended, or the GUID of a GPT partition type.
	// Defaults to Linux.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:XValidation:rule="self.matches('^(Linux|LinuxSwap|LinuxRAID|LVM|Fat32|NTFS|LinuxExtended|[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$')",message="partitionType must be one of Linux, LinuxSwap, LinuxRAID, LVM, Fat32, NTFS, LinuxExtended or a full GPT partition GUID"
	PartitionType string `json:"partitionType,omitempty"`
}

// Filesystem describes one file system.
type Filesystem struct {
	// device is the path of the device.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Device string `json:"device,omitempty"`

	// filesystem is the kind of file system, for example `ext4`.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Filesystem string `json:"filesystem,omitempty"`

	// label is the label given to the file system.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Label string `json:"label,omitempty"`

	// partition to use: `auto`, `any`, `none` or a partition number; not supported by the Ignition format.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Partition string `json:"partition,omitempty"`

	// overwrite replaces an existing file system.
	// +optional
	Overwrite *bool `json:"overwrite,omitempty"`

	// replaceFS, with partition `auto` or `any`, is the kind of file system that may be replaced; not supported by the
	// Ignition format.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	ReplaceFS string `json:"replaceFS,omitempty"`

	// extraOpts are additional arguments of the command that creates the file system.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	ExtraOpts []string `json:"extraOpts,omitempty"`
}

// MountPoints are the columns of one fstab line, device first.
//
// +kubebuilder:validation:MinItems=1
// +kubebuilder:validation:MaxItems=100
// +kubebuilder:validation:items:MinLength=1
// +kubebuilder:validation:items:MaxLength=512
type MountPoints []string
