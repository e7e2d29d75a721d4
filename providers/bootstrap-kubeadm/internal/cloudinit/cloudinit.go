package cloudinit

import (
	"bytes"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/providers/bootstrap-kubeadm/internal/bootstrapdata"
)

const (
	initConfigPath = "/run/kubeadm/kubeadm.yaml"
	// restoringConfigPath is where initConfigPath is while etcd's data directory is restored.
	restoringConfigPath = "/run/kubeadm/kubeadm.yaml.restoring"
	joinConfigPath      = "/run/kubeadm/kubeadm-join-config.yaml"
	placeholderPath     = "/run/cluster-api/placeholder"
	retryScriptPath     = "/usr/local/bin/kubeadm-bootstrap-script"
	// sentinel reports to the infrastructure provider that the machine has bootstrapped.
	sentinel = "echo success > /run/cluster-api/bootstrap-success.complete"

	rootOwner         = "root:root"
	kubeadmPermission = "0640"
	// header makes cloud-init replace instance metadata in the document.
	header = "## template: jinja\n#cloud-config\n\n"
)

// Init renders the document of the machine that initializes a control plane.
func Init(in bootstrapdata.Input) ([]byte, error) {
	if in.Restore != nil {
		in.PreCommands = append(slices.Clone(in.PreCommands), restoreCommand(in.Restore))
	}
	return render(in, initConfigPath, "kubeadm init --config "+initConfigPath+verbosity(in.Verbosity)+" && "+sentinel, nil)
}

// restoreCommand returns the command that restores etcd's data directory, after all commands of the user. cloud-init does not stop at a
// command that fails, and others that interpret its format run each command in a shell of its own. So kubeadm has no configuration until
// the script has succeeded. It has one during the commands of the user: by that file, many find out whether kubeadm init is going to run.
func restoreCommand(r *bootstrapdata.Restore) string {
	return "{ mv -f " + initConfigPath + " " + restoringConfigPath + " || test -e " + restoringConfigPath + "; } && " + r.Command() +
		" && mv " + restoringConfigPath + " " + initConfigPath + " || exit 1"
}

// Join renders the document of a machine that joins a cluster. With retry, a script retries the phases of
// kubeadm join.
func Join(in bootstrapdata.Input, controlPlane, retry bool) ([]byte, error) {
	if !retry {
		return render(in, joinConfigPath, "kubeadm join --config "+joinConfigPath+verbosity(in.Verbosity)+" && "+sentinel, nil)
	}
	script := bootstrapv1.File{
		Path: retryScriptPath, Owner: "root", Permissions: "0755", Content: retryScript(controlPlane, verbosity(in.Verbosity)),
	}
	return render(in, joinConfigPath, retryScriptPath+" && "+sentinel, &script)
}

func verbosity(v *int32) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf(" --v %d", *v)
}

func render(in bootstrapdata.Input, configPath, command string, script *bootstrapv1.File) ([]byte, error) {
	files := slices.Concat(in.Certificates, in.Files, in.Restore.Files())
	if script != nil {
		files = append(files, *script)
	}
	files = append(files,
		bootstrapv1.File{Path: configPath, Owner: rootOwner, Permissions: kubeadmPermission, Content: in.Kubeadm},
		bootstrapv1.File{Path: placeholderPath, Owner: rootOwner, Permissions: kubeadmPermission,
			Content: "This file creates its directory on every operating system. A file there marks a completed bootstrap."})
	doc := document{
		Files:       writeFiles(files),
		Boot:        quotedAll(in.BootCommands),
		Commands:    commands(in, command),
		NTP:         ntpOf(in.NTP),
		Users:       usersOf(in.Users),
		Disks:       disksOf(in.DiskSetup.Partitions),
		Filesystems: filesystemsOf(in.DiskSetup.Filesystems),
		Mounts:      mountsOf(in.Mounts),
	}
	var out bytes.Buffer
	out.WriteString(header)
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(doc); err != nil {
		return nil, fmt.Errorf("rendering cloud-init data: %w", err)
	}
	return out.Bytes(), encoder.Close()
}

func commands(in bootstrapdata.Input, kubeadm string) []quoted {
	return slices.Concat(quotedAll(in.PreCommands), []quoted{quoted(kubeadm)}, quotedAll(in.PostCommands))
}

func quotedAll(commands []string) []quoted {
	var out []quoted
	for _, c := range commands {
		out = append(out, quoted(c))
	}
	return out
}
