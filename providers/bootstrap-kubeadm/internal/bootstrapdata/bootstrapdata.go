// Package bootstrapdata defines what bootstrap data is rendered from: the input of packages cloudinit and ignition.
//
// What does not belong here: reading the input, and rendering it.
package bootstrapdata

import (
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
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
