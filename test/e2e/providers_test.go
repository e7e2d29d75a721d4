package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/process"
	"sigs.k8s.io/cluster-api/test/journey"
	"sigs.k8s.io/cluster-api/test/managers"
)

// capim is the in-memory provider as it is installed. Its API servers are those of the simulated machines of other providers.
func capim() deployed {
	return deployed{"capim-manager", "capim-system", "capim-", "inmemory-controller-leader-election-capi"}
}

// TestProvidersOfOtherProjects installs released infrastructure providers of other projects in a cluster of 1+1, beside the managers of this
// project as Deployments, and takes them and their Clusters through the life that test/journey has on capi. Their managers have no image here:
// their Pods wait, and nothing answers at their Services. Webhooks and simulated machines are those of the journeys, outside of the cluster.
// The Clusters move to a management cluster of capi, and back, the first of them while nothing answers webhooks at first.
func TestProvidersOfOtherProjects(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	w := shared.World(t)
	w.Patient()
	m := newManagement(t, w, "providers", append(deployments()[:3], capim()))
	var p *journey.Providers
	stage(t, "installed this project's providers", func() {
		p = journey.NewProviders(t, journey.ProviderOptions{
			Tools: w.Tools, Config: m.config, Names: journey.ProviderNames(), Kubeconfig: m.kubeconfig, Host: gateway(t, m.subject), Simulate: m.outside,
		})
	})
	stage(t, "installed the providers of other projects", p.Install)
	stage(t, "applied their templates", p.Apply)
	stage(t, "their Clusters are ready", p.Provision)
	stage(t, "upgraded Kubernetes and the providers, and moved to capi", p.Live)
	stage(t, "moved back", p.MoveBack)
	m.memory()
	m.permitted()
	stage(t, "deleted the Clusters and their providers", p.Delete)
	stage(t, "deleted", func() { gone(t, m.subject) })
}

// permitted checks that the logs of the managers have no request that was forbidden to their ServiceAccounts.
func (m *management) permitted() {
	m.t.Helper()
	for _, d := range m.managers {
		for line := range strings.Lines(m.kubectl("--namespace", d.namespace, "logs", "deployment/"+d.prefix+"controller-manager")) {
			if strings.Contains(line, "is forbidden") {
				m.t.Errorf("%s: %s", d.image, line)
			}
		}
	}
}

// gateway returns the address of this machine in the network of a Cluster's containers.
func gateway(t *testing.T, c *journey.Subject) string {
	t.Helper()
	args := []string{"inspect", "--format", "{{range .NetworkSettings.Networks}}{{.Gateway}} {{end}}"}
	return must(t, append(args, containers(t, c.Name)...)...)[0]
}

// outside runs the in-memory provider on this machine, where a move to another management cluster leaves the addresses of its API servers
// valid. It is the leader; the Deployment, which waits, serves the webhooks.
func (m *management) outside(management *journey.Management, ports string) {
	m.t.Helper()
	d := capim()
	scale := func(replicas string) {
		m.kubectl("--namespace", d.namespace, "scale", "deployment/"+d.prefix+"controller-manager", "--replicas", replicas)
		m.kubectl("--namespace", d.namespace, "rollout", "status", "deployment/"+d.prefix+"controller-manager", "--timeout", "180s")
	}
	scale("0")
	host, err := os.Hostname()
	testenv.Must(m.t, err)
	port, err := managers.FreePort()
	testenv.Must(m.t, err)
	running, err := process.Start(filepath.Join(management.Tools.Root, "bin", d.image), filepath.Join(m.t.TempDir(), "capim.log"),
		[]string{"POD_NAMESPACE=" + d.namespace, "POD_IP=" + gateway(m.t, m.subject)},
		"--kubeconfig", m.kubeconfig, "--leader-elect", "--api-server-ports", ports, "--webhook-cert-dir", testenv.ServingCertificate(m.t),
		"--webhook-port", strconv.Itoa(port), "--health-addr", "127.0.0.1:0", "--diagnostics-address", "127.0.0.1:0", "--insecure-diagnostics", "--debug-address", "")
	testenv.Must(m.t, err)
	m.t.Cleanup(func() {
		if err := running.Stop(); err != nil {
			m.t.Error(err)
		}
	})
	m.until("the in-memory provider outside of the cluster is the leader", func() bool {
		lease := &coordinationv1.Lease{}
		err := m.client.Get(m.t.Context(), client.ObjectKey{Namespace: d.namespace, Name: d.lease}, lease)
		return err == nil && strings.HasPrefix(ptr.Deref(lease.Spec.HolderIdentity, ""), host+"_")
	})
	scale("1")
}
