// Package bootstrapdata defines what bootstrap data is rendered from: the input of packages cloudinit and ignition.
//
// What does not belong here: reading the input, and rendering it.
package bootstrapdata

import (
	"strings"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
)

// Input is the content of a machine's bootstrap data. Indexes of Files, Users and so on are those of the spec, so that errors
// can name the field.
type Input struct {
	// Certificates are the files with the certificates and keys of a control plane machine. They are written before Files.
	Certificates []bootstrapv1.File
	// Files are the user's files, with their contents resolved.
	Files []bootstrapv1.File
	// BootCommands run early in every boot. Ignition does not support them.
	BootCommands []string
	PreCommands  []string
	// PostCommands run after kubeadm has succeeded.
	PostCommands []string
	// Users are the users, with their passwords resolved.
	Users []bootstrapv1.User
	// NTP is nil unless the time service is configured.
	NTP       *bootstrapv1.NTP
	DiskSetup bootstrapv1.DiskSetup
	Mounts    []bootstrapv1.MountPoints
	// Verbosity is passed to kubeadm if set.
	Verbosity *int32
	// Kubeadm is kubeadm's configuration as YAML.
	Kubeadm string
	// Restore fills etcd's data directory before kubeadm init runs; nil for none.
	Restore *Restore
}

// Restore is a script, with its configuration, that fills etcd's data directory. If it fails, or does not run, kubeadm must not run: it
// would found an empty cluster.
type Restore struct {
	Script, Config string
	// DataDir is the directory; empty for the script's default.
	DataDir string
}

// Files returns the files of the script; none for nil. They are not below /run, where Ignition cannot create files.
func (r *Restore) Files() []bootstrapv1.File {
	if r == nil {
		return nil
	}
	return []bootstrapv1.File{
		{Path: fleetv1.RestoreScriptPath, Owner: "root:root", Permissions: "0700", Content: r.Script},
		{Path: fleetv1.RestoreConfigPath, Owner: "root:root", Permissions: "0600", Content: r.Config},
	}
}

// Command returns the command that runs the script.
func (r *Restore) Command() string {
	command := "/bin/sh " + fleetv1.RestoreScriptPath
	if r.DataDir != "" {
		command += " '" + strings.ReplaceAll(r.DataDir, "'", `'\''`) + "'"
	}
	return command
}

// Of returns the input that is in a spec itself: contents and passwords from Secrets, certificates and kubeadm's configuration
// are empty.
func Of(spec *bootstrapv1.KubeadmConfigSpec) Input {
	in := Input{
		Files: spec.Files, BootCommands: spec.BootCommands, PreCommands: spec.PreKubeadmCommands, PostCommands: spec.PostKubeadmCommands,
		Users: spec.Users, DiskSetup: spec.DiskSetup, Mounts: spec.Mounts, Verbosity: spec.Verbosity,
	}
	if kubeadm.Defined(spec.NTP) {
		in.NTP = &spec.NTP
	}
	return in
}
