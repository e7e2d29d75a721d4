package ignition

import (
	"fmt"
	"strings"

	"github.com/flatcar/ignition/config/v2_3/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"sigs.k8s.io/cluster-api/providers/bootstrap-kubeadm/internal/bootstrapdata"
)

const (
	scriptPath        = "/etc/kubeadm.sh"
	kubeadmConfigPath = "/etc/kubeadm.yml"
	kubeadmUnitName   = "kubeadm.service"
	// sentinel reports to the infrastructure provider that the machine has bootstrapped. Its folder is on a file system in memory,
	// so Ignition cannot create it.
	sentinel = "mkdir -p /run/cluster-api\necho success > /run/cluster-api/bootstrap-success.complete\n"
)

// kubeadmUnit returns the unit that runs kubeadm, until it has succeeded once: then the script moves the configuration away.
func kubeadmUnit() types.Unit {
	return types.Unit{Name: kubeadmUnitName, Enabled: ptr.To(true), Contents: `[Unit]
Description=Run kubeadm, which creates or joins a Kubernetes cluster
ConditionPathExists=` + kubeadmConfigPath + `
Wants=network-online.target
After=network-online.target containerd.service crio.service

[Service]
Type=oneshot
ExecStart=` + scriptPath + `

[Install]
WantedBy=multi-user.target
`}
}

// kubeadmScript returns the script that runs the user's commands and kubeadm.
func kubeadmScript(in bootstrapdata.Input, command string, path *field.Path) (string, field.ErrorList) {
	before, all := block(in.PreCommands, path.Child("preKubeadmCommands"))
	after, errs := block(in.PostCommands, path.Child("postKubeadmCommands"))
	verbosity := ""
	if in.Verbosity != nil {
		verbosity = fmt.Sprintf(" --v %d", *in.Verbosity)
	}
	if in.Restore != nil {
		before += in.Restore.Command() + " || exit 1\n" // The user's commands may have changed what set -e does.
	}
	return "#!/bin/bash\nset -e\n" + before +
		"kubeadm " + command + " --config " + kubeadmConfigPath + verbosity + "\n" + sentinel +
		"mv " + kubeadmConfigPath + " /tmp/\n" + after, append(all, errs...)
}

// block returns lines that run commands, one after another, in the same shell, so that they share variables and may be parts
// of one statement. It is an argument of eval: an open quote, operator or here-document at the end does not include what
// follows, so that kubeadm always runs by itself, and success is only reported if it has run.
func block(commands []string, path *field.Path) (string, field.ErrorList) {
	if len(commands) == 0 {
		return "", nil
	}
	var all field.ErrorList
	for i, c := range commands {
		if strings.ContainsRune(c, 0) {
			all = append(all, invalid(path.Index(i), "must not contain null bytes"))
		}
	}
	text := strings.Join(commands, "\n")
	return "eval '\n" + strings.ReplaceAll(text, "'", `'\''`) + "\n'\n", all
}
