package e2e

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
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

// connected calls do with a client that has a connection of its own.
func connected(kubeconfig []byte, do func(kubernetes.Interface) error) error {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return err
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
		return connected(config, func(api kubernetes.Interface) error {
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
	token := legacyToken(t, old)
	r.perStep = old
	testenv.Must(t, api.Create(t.Context(), r.obj))
	for _, step := range []string{fleetv1.TrustBothStep, fleetv1.ReissueStep, fleetv1.DropOldStep} {
		perStep, current := r.writes("read before step "+step, r.latestStep), r.writes("of now, in step "+step, r.kubeconfig)
		stage(t, step, func() { r.until(step) })
		perStep.end(15 * time.Second)
		current.end(15 * time.Second)
	}
	c.Reconnect()
	c.Eventually("the Cluster is ready", journey.Ready, journey.ControlPlanes(controlPlanes), journey.Workers(workers), c.WorkloadMatches,
		journey.NewMachines(func(p *journey.Snapshot) []clusterv1.Machine { return p.Machines.Items }, before))
	if err := connected(old, func(api kubernetes.Interface) error {
		_, err := api.Discovery().ServerVersion()
		return err
	}); err == nil {
		t.Error("the kubeconfig of before the rotation is not refused")
	}
	r.authenticates(token)
	testenv.Must(t, api.Delete(t.Context(), r.obj)) // It outlives its Cluster.
	stage(t, "deleted", func() { gone(t, c) })
}

// legacyToken creates a Secret with a ServiceAccount token, and returns the token.
func legacyToken(t *testing.T, kubeconfig []byte) string {
	t.Helper()
	var token string
	testenv.Must(t, connected(kubeconfig, func(api kubernetes.Interface) error {
		_, err := api.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "legacy", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
			Type:       corev1.SecretTypeServiceAccountToken,
		}, metav1.CreateOptions{})
		return err
	}))
	testenv.Eventually(t, "the token is signed", func() error {
		return connected(kubeconfig, func(api kubernetes.Interface) error {
			secret, err := api.CoreV1().Secrets("default").Get(t.Context(), "legacy", metav1.GetOptions{})
			if err != nil {
				return err
			}
			if token = string(secret.Data[corev1.ServiceAccountTokenKey]); token == "" {
				return fmt.Errorf("the Secret has no token")
			}
			return nil
		})
	})
	return token
}

// authenticates checks that the token of the Secret is signed again, and the old one refused.
func (r *rotation) authenticates(old string) {
	r.t.Helper()
	config, err := r.kubeconfig(r.t.Context())
	testenv.Must(r.t, err)
	secret := &corev1.Secret{}
	testenv.Must(r.t, connected(config, func(api kubernetes.Interface) error {
		secret, err = api.CoreV1().Secrets("default").Get(r.t.Context(), "legacy", metav1.GetOptions{})
		return err
	}))
	if string(secret.Data[corev1.ServiceAccountTokenKey]) == old {
		r.t.Error("the token in the Secret is not signed again")
	}
	for token, want := range map[string]string{string(secret.Data[corev1.ServiceAccountTokenKey]): "forbidden", old: "Unauthorized"} {
		rest, err := clientcmd.RESTConfigFromKubeConfig(config)
		testenv.Must(r.t, err)
		rest.CertData, rest.KeyData, rest.BearerToken = nil, nil, token
		api, err := kubernetes.NewForConfig(rest)
		testenv.Must(r.t, err)
		_, err = api.CoreV1().Nodes().List(r.t.Context(), metav1.ListOptions{})
		if err == nil || !strings.Contains(err.Error(), want) {
			r.t.Errorf("with a token that should be %s: %v", want, err)
		}
	}
}
