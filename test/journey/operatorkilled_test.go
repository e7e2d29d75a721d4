package journey

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"

	"sigs.k8s.io/cluster-api/clusterctl/command/root"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// mostKills is more than any of the commands of TestOperatorCommandsKilled makes requests.
const mostKills = 400

// deletionStride is the distance of the requests after which a deletion is killed: most of them only read.
const deletionStride = 7

// secretLimit is the value of a variable.
const secretLimit = "1717Mi"

// killed runs a command of clusterctl, which is killed after its first request, then after more by the stride, and so on, until it
// completes. With an odd stride, the response to every other last request is lost.
func (o *operatorCluster) killed(stride int, config string, args ...string) {
	o.t.Helper()
	for n := 0; n < mostKills; n += stride {
		w := &testenv.Wire{Limit: n, Lose: n%2 == 1}
		messages, err := o.once(w, config, args)
		if len(w.Log()) <= n {
			if err != nil {
				o.t.Fatalf("%s, after %d requests: %v\n%s", strings.Join(args, " "), n, err, messages)
			}
			o.t.Logf("%s completes with %d requests", strings.Join(args, " "), n)
			return
		}
		if strings.Contains(messages, secretLimit) {
			o.t.Errorf("killed after %d requests, it prints the value of a variable: %s", n, messages)
		}
	}
	o.t.Fatalf("%s does not complete with %d requests", strings.Join(args, " "), mostKills)
}

// once runs the command like a new process.
func (o *operatorCluster) once(w *testenv.Wire, config string, args []string) (messages string, err error) {
	o.t.Helper()
	ctx, cancel := context.WithCancel(o.t.Context())
	defer cancel()
	w.Dead = cancel
	streams, buffers := iostreams.Test()
	env := map[string]string{"CAPI_MEMORY_LIMIT": secretLimit, "CLUSTERCTL_DISABLE_VERSIONCHECK": "true"}
	f := factory.New(streams, func(name string) (string, bool) { value, ok := env[name]; return value, ok }, nil)
	f.Connect = func(management.Kubeconfig) (*management.Cluster, error) {
		c, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig())
		if err != nil {
			return nil, err
		}
		c.QPS = -1
		c.Wrap(w.Wrap)
		return management.New(c, "default")
	}
	err = root.Run(ctx, f, append([]string{"--config", config}, args...))
	return buffers.Err.String() + buffers.Out.String(), err
}

// names returns the names of objects in all namespaces that begin with a prefix.
func (o *operatorCluster) names(kinds, prefix string) []string {
	o.t.Helper()
	var found []string
	for line := range strings.Lines(o.kubectl("", "get", kinds, "-A", "-o", `jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{"\n"}{end}`)) {
		if line = strings.TrimSpace(line); strings.Contains(line, prefix) {
			found = append(found, line)
		}
	}
	slices.Sort(found)
	return found
}

// TestOperatorCommandsKilled kills `clusterctl operator init` and `upgrade apply` after each of their requests, and `clusterctl delete --all` after many: the same command
// again completes them, with the same end.
func TestOperatorCommandsKilled(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	r := NewRepository(t, shared.Management(t).Tools)
	r.Release("v2.0.0")
	o := &operatorCluster{NewStandalone(t, r.Tools), t}
	o.killed(1, r.Tools.config, "operator", "init", "--infrastructure", "in-memory")
	want := []string{
		"BootstrapProvider capi-kubeadm-bootstrap-system/kubeadm",
		"ConfigMap capi-kubeadm-bootstrap-system/bootstrap-kubeadm-v2.0.0",
		"ConfigMap capi-kubeadm-control-plane-system/control-plane-kubeadm-v2.0.0",
		"ConfigMap capi-system/core-cluster-api-v2.0.0",
		"ConfigMap capim-system/infrastructure-in-memory-v2.0.0",
		"ControlPlaneProvider capi-kubeadm-control-plane-system/kubeadm",
		"CoreProvider capi-system/cluster-api",
		"Deployment capi-kubeadm-bootstrap-system/capi-kubeadm-bootstrap-controller-manager",
		"Deployment capi-kubeadm-control-plane-system/capi-kubeadm-control-plane-controller-manager",
		"Deployment capi-operator-system/capi-operator-controller-manager",
		"Deployment capi-system/capi-controller-manager",
		"Deployment capim-system/capim-controller-manager",
		"InfrastructureProvider capim-system/in-memory",
		"Secret capi-kubeadm-bootstrap-system/bootstrap-kubeadm-variables",
		"Secret capi-kubeadm-control-plane-system/control-plane-kubeadm-variables",
		"Secret capi-system/cluster-api-variables",
		"Secret capim-system/infrastructure-in-memory-variables",
	}
	const kinds = "secrets,deployments,configmaps,coreproviders,bootstrapproviders,controlplaneproviders,infrastructureproviders"
	if diff := cmp.Diff(want, slices.DeleteFunc(o.names(kinds, " capi"), func(name string) bool { return strings.HasSuffix(name, "-cert") })); diff != "" {
		t.Errorf("init: -want +got:\n%s", diff)
	}
	if hooks := o.names("validatingwebhookconfigurations,mutatingwebhookconfigurations", "capi-operator"); len(hooks) != 2 {
		t.Errorf("the operator has webhooks %v, want two", hooks)
	}
	for _, p := range declaredProviders() {
		o.installed(p, "v2.0.0")
	}

	r.Release("v2.0.1")
	o.killed(1, r.Tools.config, "operator", "upgrade", "apply", "--contract", "v1beta1")
	for _, p := range declaredProviders() {
		o.installed(p, "v2.0.1")
	}
	o.killed(deletionStride, r.Tools.config, "delete", "--all", "--include-crd")
	if left := o.names("secrets", "-variables"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	for _, kinds := range []string{"deployments", "clusterroles,clusterrolebindings", "validatingwebhookconfigurations,mutatingwebhookconfigurations", "services"} {
		if left := o.names(kinds, "capi"); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
	if crds := o.kubectl("", "get", "crds", "-o", "name"); strings.Contains(crds, "operator.cluster") || strings.Contains(crds, "kubeadm") {
		t.Errorf("left: %s", crds)
	}
}
