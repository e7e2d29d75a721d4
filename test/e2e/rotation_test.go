package e2e

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/test/journey"
)

// rotation is a rotation of the authorities of a Cluster, and what its users do meanwhile.
type rotation struct {
	t   *testing.T
	api client.Client
	c   *journey.Subject
	obj *fleetv1.CertificateAuthorityRotation

	mu sync.Mutex
	// perStep is the kubeconfig that a user has read when the latest step was complete.
	perStep []byte
}

// kubeconfig returns the current kubeconfig in the management cluster.
func (r *rotation) kubeconfig(ctx context.Context) ([]byte, error) {
	secret := &corev1.Secret{}
	err := r.api.Get(ctx, client.ObjectKey{Namespace: r.c.Namespace, Name: pki.SecretName(r.c.Name, pki.Kubeconfig)}, secret)
	return secret.Data[pki.KubeconfigKey], err
}

// connected calls do with a client that has a connection of its own, and the credentials of a kubeconfig or a token.
func connected(kubeconfig []byte, token string, do func(kubernetes.Interface) error) error {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return err
	}
	if token != "" {
		config = rest.AnonymousClientConfig(config)
		config.BearerToken = token
	}
	config.Timeout = patience
	config.Dial = (&net.Dialer{}).DialContext // client-go keeps connections by configuration.
	connection, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer connection.CloseIdleConnections()
	api, err := kubernetes.NewForConfigAndClient(config, connection)
	if err != nil {
		return err
	}
	return do(api)
}

// writes probes the API server with a kubeconfig, over a new connection each time.
func (r *rotation) writes(what string, kubeconfig func(ctx context.Context) ([]byte, error)) *probe {
	return start(r.t, "writes with the kubeconfig "+what, func(ctx context.Context) error {
		config, err := kubeconfig(ctx)
		if err != nil {
			return err
		}
		return connected(config, "", func(api kubernetes.Interface) error {
			_, err := api.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "rotation-"}}, metav1.CreateOptions{})
			return err
		})
	})
}

func (r *rotation) latestStep(context.Context) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.perStep, nil
}

// until waits until a step of the rotation, or all of it, is complete.
func (r *rotation) until(step string) {
	r.t.Helper()
	err := wait.PollUntilContextTimeout(r.t.Context(), time.Second, 25*time.Minute, true, func(ctx context.Context) (bool, error) {
		if err := r.api.Get(ctx, client.ObjectKeyFromObject(r.obj), r.obj); err != nil {
			return false, nil // It is read again.
		}
		found := r.obj.Step(step)
		return found != nil && found.CompletionTime != nil, nil
	})
	if err != nil {
		r.t.Fatalf("step %s: %v: %+v", step, err, report.Get(r.obj, fleetv1.OperationCompletedCondition))
	}
	config, err := r.kubeconfig(r.t.Context())
	testenv.Must(r.t, err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.perStep = config
}

// TestRotation rotates all authorities of a Cluster, while its API server is written to.
func TestRotation(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	rotates(t, "rotated", 1, 1)
}

// TestRotationOfMany is TestRotation with 3 control plane machines and 2 workers.
func TestRotationOfMany(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	rotates(t, "rotated-many", 3, 2)
}

func rotates(t *testing.T, name string, controlPlanes, workers int) {
	t.Helper()
	w := shared.World(t)
	w.Patient()
	dir := filepath.Join(w.Tools.Root, "..", "shared", "facts", "data", "templates-v1.7", "docker")
	template := journey.Template{
		Cluster: filepath.Join(dir, "cluster-template-development.yaml"), Class: filepath.Join(dir, "clusterclass-quick-start.yaml"),
	}
	w.Class(template)
	cluster := w.Generated(template, name, older, controlPlanes, workers)
	cluster.Spec.Topology.Workers.MachinePools = nil
	networkSet(t, w, cluster)
	if result := w.Tools.Clusterctl(t.Context(), "", "init", "--kubeconfig", w.Kubeconfig, "--addon", "fleet", "--wait-providers"); result.Failed {
		t.Fatal(result)
	}
	scheme := runtime.NewScheme()
	testenv.Must(t, corev1.AddToScheme(scheme), fleetv1.AddToScheme(scheme))
	api, err := client.New(w.Config, client.Options{Scheme: scheme})
	testenv.Must(t, err)
	var c *journey.Subject
	stage(t, fmt.Sprintf("%d control plane machines and %d workers", controlPlanes, workers), func() {
		c = subject(t, w, cluster)
		c.Eventually("the Cluster becomes ready", journey.Ready, journey.ControlPlanes(controlPlanes), journey.Workers(workers), c.WorkloadMatches)
	})
	before := c.Snapshot()
	r := &rotation{t: t, api: api, c: c, obj: &fleetv1.CertificateAuthorityRotation{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "all"},
		Spec:       fleetv1.CertificateAuthorityRotationSpec{ClusterName: c.Name, Confirm: c.Name},
	}}
	old, err := r.kubeconfig(t.Context())
	testenv.Must(t, err)
	legacy, requested := r.tokens()
	usesTokens(t, c)
	r.perStep = old
	testenv.Must(t, api.Create(t.Context(), r.obj))
	accepted := requested
	for _, step := range []string{fleetv1.TrustBothStep, fleetv1.ReissueStep, fleetv1.DropOldStep} {
		if step == fleetv1.DropOldStep {
			var again string
			if again, accepted = r.tokens(); again == legacy {
				t.Error("the token in the Secret is not signed again")
			}
		}
		probes := []*probe{
			r.writes("read before step "+step, r.latestStep), r.writes("of now, in step "+step, r.kubeconfig),
			r.authenticates(accepted), r.authenticatesAsOfNow(), proxied(t, c),
		}
		stage(t, step, func() { r.until(step) })
		for _, p := range probes {
			p.end(15 * time.Second)
		}
		tokensWork(t, c)
	}
	c.Reconnect()
	c.Eventually("the Cluster is ready", journey.Ready, journey.ControlPlanes(controlPlanes), journey.Workers(workers), c.WorkloadMatches,
		journey.NewMachines(func(p *journey.Snapshot) []clusterv1.Machine { return p.Machines.Items }, before))
	if err := connected(old, "", func(api kubernetes.Interface) error {
		_, err := api.Discovery().ServerVersion()
		return err
	}); err == nil {
		t.Error("the kubeconfig of before the rotation is not refused")
	}
	r.refused(legacy, requested)
	testenv.Must(t, api.Delete(t.Context(), r.obj)) // It outlives its Cluster.
	stage(t, "deleted", func() { gone(t, c) })
}
