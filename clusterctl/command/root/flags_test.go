package root

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
)

// TestDocumentedFlags pins the documented flags, their shorthands and defaults: scripts depend on them. Other flags may be
// added.
func TestDocumentedFlags(t *testing.T) {
	const (
		cluster   = "kubeconfig= kubeconfig-context= "
		providers = "core= infrastructure,i=[] bootstrap,b=[] control-plane,c=[] ipam=[] runtime-extension=[] addon=[] "
		rollout   = cluster + "namespace,n= "
	)
	for command, flags := range map[string]string{
		"init":                  cluster + providers + "target-namespace,n= wait-providers=false wait-provider-timeout=300 validate=true",
		"init list-images":      cluster + providers,
		"generate cluster":      cluster + "target-namespace,n= kubernetes-version= control-plane-machine-count=1 worker-machine-count=0 infrastructure,i= flavor,f= from= from-config-map= from-config-map-namespace= from-config-map-key= list-variables=false write-to=",
		"generate provider":     "core= infrastructure,i= bootstrap,b= control-plane,c= ipam= runtime-extension= addon= target-namespace,n= describe=false raw=false write-to=",
		"generate yaml":         "from=- list-variables=false",
		"get kubeconfig":        cluster + "namespace,n=",
		"describe cluster":      cluster + "namespace,n= show-conditions= show-machinesets=false show-resourcesets=false show-templates=false echo=false grouping=true disable-grouping=false color,c=false",
		"upgrade plan":          cluster,
		"upgrade apply":         cluster + providers + "contract= wait-providers=false wait-provider-timeout=300",
		"config repositories":   "output,o=text",
		"version":               "output,o=",
		"move":                  cluster + "to-kubeconfig= to-kubeconfig-context= namespace,n= dry-run=false to-directory= from-directory=",
		"delete":                cluster + providers + "all=false include-namespace=false include-crd=false",
		"alpha rollout restart": rollout,
		"alpha rollout pause":   rollout,
		"alpha rollout resume":  rollout,
		"alpha rollout undo":    rollout + "to-revision=0",
		"alpha topology plan":   cluster + "namespace,n= file,f=[] cluster,c= output-directory,o=",
	} {
		t.Run(command, func(t *testing.T) {
			streams, _ := iostreams.Test()
			root := NewCmd(factory.New(streams, func(string) (string, bool) { return "", false }, nil))
			cmd, _, err := root.Find(strings.Fields(command))
			if err != nil {
				t.Fatal(err)
			}
			// Flags of parents become part of the command's when it parses its arguments.
			if err := cmd.ParseFlags(nil); err != nil {
				t.Fatal(err)
			}
			for _, documented := range append(strings.Fields(flags), "config=", "v,v=0") {
				name, value, _ := strings.Cut(documented, "=")
				name, short, _ := strings.Cut(name, ",")
				checkFlag(t, cmd.Flags().Lookup(name), name, short, value)
			}
		})
	}
}

func checkFlag(t *testing.T, f *pflag.Flag, name, short, value string) {
	t.Helper()
	switch {
	case f == nil:
		t.Errorf("--%s is missing", name)
	case f.Shorthand != short || f.DefValue != value:
		t.Errorf("--%s: want shorthand %q and default %q, got %q and %q", name, short, value, f.Shorthand, f.DefValue)
	}
}
