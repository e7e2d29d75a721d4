package root

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
)

// cli runs clusterctl the way main does, with an environment of its own.
type cli struct {
	t   *testing.T
	env map[string]string
}

// result is what a user sees of one run.
type result struct {
	Out, Err string
	Failed   bool
}

// newCLI returns a clusterctl whose configuration knows the providers in testdata, without a kubeconfig.
func newCLI(t *testing.T) *cli {
	t.Helper()
	dir := t.TempDir()
	base, err := filepath.Abs("testdata/repository")
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "cluster-api", "clusterctl.yaml")
	if err := os.MkdirAll(filepath.Dir(config), 0o750); err != nil {
		t.Fatal(err)
	}
	content := fmt.Sprintf(`
providers:
- {name: cluster-api, type: CoreProvider, url: %[1]s/cluster-api/latest/core-components.yaml}
- {name: kubeadm, type: BootstrapProvider, url: %[1]s/bootstrap-kubeadm/latest/bootstrap-components.yaml}
- {name: kubeadm, type: ControlPlaneProvider, url: %[1]s/control-plane-kubeadm/latest/control-plane-components.yaml}
- {name: toy, type: InfrastructureProvider, url: %[1]s/infrastructure-toy/latest/infrastructure-components.yaml}
- {name: certified, type: AddonProvider, url: %[1]s/addon-certified/latest/addon-components.yaml}
cert-manager: {url: %[1]s/cert-manager/v1.14.4/cert-manager.yaml}
`, base)
	if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	// client-go reads KUBECONFIG and HOME from the process.
	t.Setenv("KUBECONFIG", filepath.Join(dir, "none"))
	return &cli{t: t, env: map[string]string{
		"XDG_CONFIG_HOME": dir, "HOME": dir, "CLUSTERCTL_DISABLE_VERSIONCHECK": "true",
	}}
}

// with returns a cli whose environment also has a variable.
func (c *cli) with(name, value string) *cli {
	env := maps.Clone(c.env)
	env[name] = value
	return &cli{t: c.t, env: env}
}

func (c *cli) run(args ...string) result {
	return c.runWithInput("", args...)
}

func (c *cli) runWithInput(input string, args ...string) result {
	c.t.Helper()
	streams, buffers := iostreams.Test()
	buffers.In.WriteString(input)
	f := factory.New(streams, func(name string) (string, bool) {
		v, ok := c.env[name]
		return v, ok
	}, nil)
	err := Run(c.t.Context(), f, args)
	return result{Out: buffers.Out.String(), Err: buffers.Err.String(), Failed: err != nil}
}

// fails runs a command that must fail and whose one error must contain each text.
func (c *cli) fails(reason string, args []string, texts ...string) {
	c.t.Helper()
	r := c.run(args...)
	if !r.Failed || strings.Count(r.Err, "Error: ") != 1 {
		c.t.Errorf("%s\nclusterctl %s: want one error, got:\n%s", reason, strings.Join(args, " "), r.Err)
	}
	if strings.Contains(r.Err, "Usage:") {
		c.t.Errorf("clusterctl %s: usage must not be printed with an error", strings.Join(args, " "))
	}
	for _, text := range texts {
		if !strings.Contains(r.Err, text) {
			c.t.Errorf("%s\nclusterctl %s: want an error with %q, got:\n%s", reason, strings.Join(args, " "), text, r.Err)
		}
	}
}

// works runs a command that must succeed.
func (c *cli) works(args ...string) result {
	c.t.Helper()
	r := c.run(args...)
	if r.Failed {
		c.t.Fatalf("clusterctl %s: %s", strings.Join(args, " "), r.Err)
	}
	return r
}
