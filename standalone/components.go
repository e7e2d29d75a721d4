package standalone

import (
	"context"
	"io"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"

	kubeadmbootstrap "sigs.k8s.io/cluster-api/providers/bootstrap-kubeadm"
	kubeadmcontrolplane "sigs.k8s.io/cluster-api/providers/control-plane-kubeadm"
	"sigs.k8s.io/cluster-api/providers/core"
	"sigs.k8s.io/cluster-api/providers/fleet"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster"
	"sigs.k8s.io/cluster-api/providers/operator"
	"sigs.k8s.io/cluster-api/providers/runtime-extension-test"
	"sigs.k8s.io/cluster-api/sdk/manager"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/standalone/internal/host"
)

// Components lists what the program hosts, by the last element of the image's name in a Deployment.
func Components() map[string]host.Program { return hosted(constructors()...) }

// constructors returns those of all components.
func constructors() []func() manager.Component {
	return []func() manager.Component{
		core.NewComponent,
		kubeadmbootstrap.NewComponent,
		kubeadmcontrolplane.NewComponent,
		inmemory.NewComponent,
		docker.NewComponent,
		incluster.NewComponent,
		fleet.NewComponent,
		testextension.NewComponent,
		operator.NewComponent,
	}
}

// adapted returns default arguments for components in this process, for the flags that they have: a data directory in
// place of a volume, no debug port, BackupStores on this machine and a server of their data for simulated machines, and keys that are
// generated fast: users of other versions of Cluster API do not rely on what a new program generates. Arguments of the Deployment
// override them.
func adapted(c manager.Component, p host.Process) []string {
	if c.AddFlags == nil {
		return nil
	}
	flags := pflag.NewFlagSet(c.Name, pflag.ContinueOnError)
	c.AddFlags(flags)
	var args []string
	for _, flag := range [][2]string{
		{"data-dir", p.DataDir}, {"debug-address", ""}, {"key-algorithm", string(pki.ECDSA)}, {"allow-local-stores", "true"},
		{"serve-address", "127.0.0.1:0"},
	} {
		if flags.Lookup(flag[0]) != nil {
			args = append(args, "--"+flag[0]+"="+flag[1])
		}
	}
	return args
}

// hosted turns components into programs, by name. Every run creates a new component, because flags and feature gates
// belong to one run.
func hosted(components ...func() manager.Component) map[string]host.Program {
	programs := make(map[string]host.Program, len(components))
	for _, component := range components {
		programs[component().Name] = func(ctx context.Context, args []string, p host.Process) error {
			args = append(adapted(component(), p), args...) // of another one: flags are registered once
			return manager.Run(ctx, component(), args, manager.Host{
				Config:    p.Config,
				Namespace: p.Namespace,
				Listen:    p.Listen,
				Lead:      p.Lead,
				Dial:      p.Dial,
				CertDir:   p.CertDir,
				Getenv:    p.Getenv,
				Logger:    p.Logger,
				Stdout:    lines{p.Logger},
				Stderr:    lines{p.Logger},

				WrapWorkload: p.WrapWorkload,
			})
		}
	}
	return programs
}

// lines logs the output of a component.
type lines struct{ logger logr.Logger }

var _ io.Writer = lines{}

// Write implements io.Writer.
func (l lines) Write(text []byte) (int, error) {
	l.logger.Info(string(text))
	return len(text), nil
}
