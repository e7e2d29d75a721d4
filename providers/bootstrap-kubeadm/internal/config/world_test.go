package config

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

var (
	now   = object.Now()
	build = object.Builder{ClusterName: "test"}
)

const ttl = 15 * time.Minute

// world is a management cluster and a workload cluster, both fake, and the controller over them.
type world struct {
	*fakeapi.Server
	workload *fakeapi.Workload
	c        *Controller
	runner   *step.Runner[*bootstrapv1.KubeadmConfig]
}

// labeled is a cache of Secrets with the label of a Cluster.
type labeled struct{ client.Reader }

func (l labeled) Get(ctx context.Context, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
	err := l.Reader.Get(ctx, key, obj, o...)
	if secret, ok := obj.(*corev1.Secret); ok && err == nil && secret.Labels[clusterv1.ClusterNameLabel] == "" {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
	}
	return err
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{Server: fakeapi.New(t, fakeapi.Options{Kinds: []func(*runtime.Scheme) error{bootstrapv1.AddToScheme}, Objects: objects})}
	w.workload = w.NewWorkload(t)
	w.restart()
	return w
}

// restart starts a new process.
func (w *world) restart() {
	clients := w.ForController()
	w.c = &Controller{Clients: clients, cached: labeled{clients.Client}, workloads: w.workload, tokenTTL: ttl}
	w.c.external = external.Reader{Client: clients.Live, Versions: contract.APIVersions{Reader: clients.Client}}
	declared := w.c.declared()
	declared.Progress = nil // Status is written immediately.
	w.runner = declared.Runner(w.c.Clients)
}

// created returns the Secrets and ConfigMaps that were created since the world exists.
func (w *world) created(t *testing.T) []string {
	t.Helper()
	secrets, maps := &corev1.SecretList{}, &corev1.ConfigMapList{}
	testenv.Must(t, w.List(t.Context(), secrets), w.List(t.Context(), maps))
	var out []string
	add := func(obj client.Object) {
		if strings.HasPrefix(string(obj.GetUID()), "created-") {
			out = append(out, obj.GetName())
		}
	}
	for i := range secrets.Items {
		add(&secrets.Items[i])
	}
	for i := range maps.Items {
		add(&maps.Items[i])
	}
	return out
}

func (w *world) reconcile(t *testing.T, name string) (ctrl.Result, error) {
	t.Helper()
	return w.runner.Reconcile(t.Context(), request(name))
}

func request(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: name}}
}

func (w *world) mustReconcile(t *testing.T, name string) ctrl.Result {
	t.Helper()
	result, err := w.reconcile(t, name)
	if err != nil {
		t.Fatalf("reconciling %s: %v", name, err)
	}
	return result
}

func get[T client.Object](t *testing.T, from client.Reader, name string, obj T) T {
	t.Helper()
	testenv.Must(t, from.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, obj))
	return obj
}

func (w *world) config(t *testing.T, name string) *bootstrapv1.KubeadmConfig {
	t.Helper()
	return get(t, w, name, &bootstrapv1.KubeadmConfig{})
}

// document is the cloud-init document of a config.
type document struct {
	Files []struct {
		Path, Owner, Permissions, Content string
	} `yaml:"write_files"`
	Commands []string `yaml:"runcmd"`
	Users    []struct{ Name, Passwd string }
}

func (d document) file(path string) string {
	for _, f := range d.Files {
		if f.Path == path {
			return f.Content
		}
	}
	return ""
}

func (d document) paths() []string {
	var out []string
	for _, f := range d.Files {
		out = append(out, f.Path+" "+f.Permissions+" "+f.Owner)
	}
	return out
}

func (w *world) document(t *testing.T, name string) document {
	t.Helper()
	var d document
	testenv.Must(t, yaml.Unmarshal(get(t, w, name, &corev1.Secret{}).Data["value"], &d))
	return d
}

func newCluster() *clusterv1.Cluster {
	return build.Cluster(object.InfrastructureReady, func(c *clusterv1.Cluster) {
		c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "10.0.0.1", Port: 6443}
		c.Spec.ClusterNetwork = clusterv1.ClusterNetwork{
			Services: clusterv1.NetworkRanges{CIDRBlocks: []string{"10.128.0.0/12"}}, Pods: clusterv1.NetworkRanges{CIDRBlocks: []string{"192.168.0.0/16", "fd00::/48"}},
			ServiceDomain: "example.local",
		}
	})
}

func initialized(c *clusterv1.Cluster) *clusterv1.Cluster {
	object.Initialized(c)
	return c
}

func newMachine(name string, controlPlane bool) *clusterv1.Machine {
	m := build.Machine(name, func(m *clusterv1.Machine) { m.Spec.Version = "v1.31.0" })
	if controlPlane {
		object.ControlPlane(m)
	}
	return m
}

// newConfig belongs to the Machine of the same name.
func newConfig(name string, spec bootstrapv1.KubeadmConfigSpec) *bootstrapv1.KubeadmConfig {
	return object.ControlledBy(&bootstrapv1.KubeadmConfig{ObjectMeta: build.Meta("KubeadmConfig", name), Spec: spec}, build.Machine(name))
}

// uidOf is the UID of the config of a Machine.
func uidOf(machine string) types.UID { return object.UID("KubeadmConfig", machine) }

// olderConfig is newConfig as a client of v1beta1 writes it.
func olderConfig(t *testing.T, name string, spec bootstrapv1beta1.KubeadmConfigSpec) *bootstrapv1.KubeadmConfig {
	t.Helper()
	older := object.ControlledBy(&bootstrapv1beta1.KubeadmConfig{ObjectMeta: build.Meta("KubeadmConfig", name), Spec: spec}, build.Machine(name))
	config := &bootstrapv1.KubeadmConfig{}
	testenv.Must(t, conversion.Shared().Convert(t.Context(), older, config))
	return config
}

// clusterSpec is that of a machine that may initialize a control plane, with a default of kubeadm.
func clusterSpec() bootstrapv1.KubeadmConfigSpec {
	return bootstrapv1.KubeadmConfigSpec{ClusterConfiguration: bootstrapv1.ClusterConfiguration{CertificatesDir: "/etc/kubernetes/pki"}}
}

// secretOf returns a Secret of the cluster with a certificate, or key pair, for its purpose.
func secretOf(purpose pki.Purpose, withKey bool) *corev1.Secret {
	pair := pki.Pair{Certificate: []byte("certificate of " + string(purpose) + "\n")}
	if withKey {
		pair.Key = []byte("key of " + string(purpose) + "\n")
	}
	return pki.NewSecret(types.NamespacedName{Namespace: "default", Name: "test"}, purpose, pair.Data(), nil)
}

func realCA(t *testing.T) (*corev1.Secret, string) {
	t.Helper()
	ca, err := pki.NewCA(pki.ECDSA, now)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.PEM()
	if err != nil {
		t.Fatal(err)
	}
	return pki.NewSecret(types.NamespacedName{Namespace: "default", Name: "test"}, pki.ClusterCA, pair.Data(), nil), pki.PublicKeyHash(ca.Certificate)
}

func testCA(t *testing.T) *corev1.Secret {
	t.Helper()
	ca, _ := realCA(t)
	return ca
}

// states returns an object's conditions in short.
func states(of condition.Getter) map[clusterv1.ConditionType]string {
	out := map[clusterv1.ConditionType]string{}
	for _, c := range of.GetV1Beta1Conditions() {
		out[c.Type] = string(c.Status)
		if c.Reason != "" {
			out[c.Type] += " " + string(c.Severity) + " " + c.Reason
		}
	}
	return out
}
