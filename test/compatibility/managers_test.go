package compatibility

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	kubeadmbootstrap "sigs.k8s.io/cluster-api/providers/bootstrap-kubeadm"
	kubeadmcontrolplane "sigs.k8s.io/cluster-api/providers/control-plane-kubeadm"
	"sigs.k8s.io/cluster-api/providers/core"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory"
	"sigs.k8s.io/cluster-api/sdk/manager"
)

// published is a manager of Cluster API v1.7 to v1.14.
type published struct {
	component func() manager.Component
	name      string
	// namespace and lease are those of leader election, which lasts for duration: a leader of another version is the only one.
	namespace, lease string
	duration         time.Duration
	// flags are the manager's own.
	flags []string
}

func publishedManagers() []published {
	return []published{
		{
			component: core.NewComponent, name: "cluster-api-controller", namespace: "capi-system", lease: "controller-leader-election-capi",
			duration: 15 * time.Second,
			flags: []string{
				"clustertopology-concurrency=10", "clusterclass-concurrency=10", "cluster-concurrency=10", "clustercachetracker-concurrency=10",
				"extensionconfig-concurrency=10", "machine-concurrency=10", "machineset-concurrency=10", "machinedeployment-concurrency=10",
				"machinepool-concurrency=10", "clusterresourceset-concurrency=10", "machinehealthcheck-concurrency=10",
				"node-drain-client-timeout-duration=10s",
				// v1.14
				"clustercache-concurrency=100", "clustercache-client-qps=20", "clustercache-client-burst=30", "remote-connection-grace-period=50s",
				"remote-conditions-grace-period=5m", "machineset-preflight-checks=All", "runtime-extension-client-cert-file=", "runtime-extension-client-key-file=",
				"additional-sync-machine-labels=example.com/.*", "additional-sync-machine-annotations=example.com/.*",
			},
		},
		{
			component: kubeadmbootstrap.NewComponent, name: "kubeadm-bootstrap-controller", namespace: "capi-kubeadm-bootstrap-system",
			lease: "kubeadm-bootstrap-manager-leader-election-capi", duration: 15 * time.Second,
			flags: []string{
				"kubeadmconfig-concurrency=10", "clustercachetracker-concurrency=10", "cluster-concurrency=10", "bootstrap-token-ttl=15m",
				// v1.14
				"clustercache-concurrency=100", "clustercache-client-qps=20", "clustercache-client-burst=30",
			},
		},
		{
			component: kubeadmcontrolplane.NewComponent, name: "kubeadm-control-plane-controller", namespace: "capi-kubeadm-control-plane-system",
			lease: "kubeadm-control-plane-manager-leader-election-capi", duration: time.Minute,
			flags: []string{
				"kubeadmcontrolplane-concurrency=10", "clustercachetracker-concurrency=10", "etcd-dial-timeout-duration=10s",
				"etcd-call-timeout-duration=15s",
				// v1.14
				"clustercache-concurrency=100", "clustercache-client-qps=20", "clustercache-client-burst=30", "remote-conditions-grace-period=5m",
				"runtime-extension-client-cert-file=", "runtime-extension-client-key-file=", "etcd-client-log-level=info",
			},
		},
		{
			component: docker.NewComponent, name: "capd-manager", namespace: "capd-system", lease: "controller-leader-election-capd",
			duration: 15 * time.Second, flags: []string{"concurrency=10", "clustercachetracker-concurrency=10", "clustercache-concurrency=100"},
		},
		{
			component: inmemory.NewComponent, name: "capim-manager", namespace: "capim-system", lease: "inmemory-controller-leader-election-capi",
			duration: 15 * time.Second, flags: []string{"cluster-concurrency=10", "machine-concurrency=10"},
		},
	}
}

// commonFlags are those of all managers.
func commonFlags() []string {
	const v17 = "MachinePool=true,ClusterResourceSet=true,ClusterTopology=true,RuntimeSDK=true,KubeadmBootstrapFormatIgnition=true," +
		"MachineSetPreflightChecks=true"
	const v114 = "MachineWaitForVolumeDetachConsiderVolumeAttachments=true,PriorityQueue=true,ReconcilerRateLimiting=true,InPlaceUpdates=true," +
		"MachineTaintPropagation=true"
	return []string{
		"leader-elect", "leader-elect-lease-duration=15s", "leader-elect-renew-deadline=10s", "leader-elect-retry-period=2s", "namespace=",
		"watch-filter=", "profiler-address=", "contention-profiling=false", "sync-period=10m", "kube-api-qps=20", "kube-api-burst=30",
		"webhook-port=9443", "webhook-cert-dir=/tmp/k8s-webhook-server/serving-certs/", "health-addr=:9440", "diagnostics-address=:8443",
		"insecure-diagnostics=false", "metrics-bind-addr=", "tls-min-version=VersionTLS12", "tls-cipher-suites=", "feature-gates=" + v17,
		"logging-format=text", "logging-format=json", "log-flush-frequency=5s", "v=2", "vmodule=", "log-json-info-buffer-size=0",
		"log-json-split-stream=false",
		// v1.14
		"webhook-cert-name=tls.crt", "webhook-key-name=tls.key", "skip-crd-migration-phases=", "feature-gates=" + v114,
	}
}

// TestManagersStartAsPublished checks that the managers run in the Deployments of Cluster API v1.7 to v1.14: they accept all flags, and wait
// for the leader of the other version.
func TestManagersStartAsPublished(t *testing.T) {
	for _, p := range publishedManagers() {
		t.Run(p.name, func(t *testing.T) {
			for _, flag := range append(commonFlags(), p.flags...) {
				printed := &bytes.Buffer{}
				err := manager.Run(t.Context(), p.component(), []string{"--" + flag, "--version"}, manager.Host{Stdout: printed, Stderr: &bytes.Buffer{}})
				if err != nil || !strings.HasPrefix(printed.String(), p.name) {
					t.Errorf("--%s: %q, error %v", flag, printed, err)
				}
			}
			if err := validated(t, p); err != nil {
				t.Error(err)
			}
			c := p.component()
			if c.Namespace != p.namespace || c.LeaderElectionID != p.lease {
				t.Errorf("the Lease is %s/%s, want %s/%s", c.Namespace, c.LeaderElectionID, p.namespace, p.lease)
			}
			if lease := c.LeaderElection.Lease; lease != p.duration && !(lease == 0 && p.duration == 15*time.Second) {
				t.Errorf("a leader is the only one for %s, want %s", lease, p.duration)
			}
		})
	}
}

// validated returns an error if the manager does not start with all flags together.
func validated(t *testing.T, p published) error {
	t.Helper()
	var args []string
	for _, flag := range append(commonFlags(), p.flags...) {
		args = append(args, "--"+flag)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // It ends when it tries to connect.
	err := manager.Run(ctx, p.component(), args, manager.Host{
		Config: &rest.Config{Host: "https://127.0.0.1:1"}, Namespace: p.namespace, Stderr: &bytes.Buffer{},
		Listen: func(string) (net.Listener, error) { return nil, errors.New("nothing listens in this test") },
	})
	if !errors.Is(err, context.Canceled) {
		return fmt.Errorf("it does not connect: %w", err)
	}
	return nil
}
