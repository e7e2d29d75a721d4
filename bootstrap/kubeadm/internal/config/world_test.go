package config

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/pki"
	"sigs.k8s.io/cluster-api/provider/remote"
	"sigs.k8s.io/cluster-api/provider/step"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const ttl = 15 * time.Minute

// world is a management cluster and a workload cluster, both fake, and the controller over them.
type world struct {
	client.Client
	workload *workload
	clock    *testclock.FakePassiveClock
	c        *Controller
	runner   *step.Runner[*bootstrapv1.KubeadmConfig]
	// created are the objects that were created in the management cluster.
	created []string
	// failStatus is how many of the next status writes fail.
	failStatus bool
	// frozen is what the cache has of some objects: an older copy, or nil if it does not have the object yet.
	frozen map[string]client.Object
	// beforeWrite and afterWrite are called around each write to the management cluster. An error before drops the
	// write, one after it hides its result.
	beforeWrite, afterWrite func() error
}

// cache is how a controller with old caches reads; it writes to the API server.
type cache struct {
	client.Client
	world *world
}

func cacheKey(obj client.Object, name string) string { return fmt.Sprintf("%T %s", obj, name) }

// Get implements client.Reader.
func (c cache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
	old, ok := c.world.frozen[cacheKey(obj, key.Name)]
	switch {
	case !ok:
		return c.Client.Get(ctx, key, obj, o...)
	case old == nil:
		return apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, key.Name)
	}
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(old.DeepCopyObject()).Elem())
	return nil
}

// freeze makes the cache miss all changes of an object from now on.
func (w *world) freeze(t *testing.T, name string, obj client.Object) {
	t.Helper()
	err := w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, obj)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	key := cacheKey(obj, name)
	if err != nil {
		obj = nil
	}
	if w.frozen == nil {
		w.frozen = map[string]client.Object{}
	}
	w.frozen[key] = obj
}

// write sends a write through what disturbs writes.
func (w *world) write(forward func() error) error {
	if w.beforeWrite != nil {
		if err := w.beforeWrite(); err != nil {
			return err
		}
	}
	if err := forward(); err != nil {
		return err
	}
	if w.afterWrite != nil {
		return w.afterWrite()
	}
	return nil
}

// workload is a workload cluster; err is what asking for it answers.
type workload struct {
	client.Client
	err      error
	requests int
}

type workloads struct{ only *workload }

func (w workloads) Get(context.Context, types.NamespacedName) (*remote.Cluster, error) {
	if w.only.err != nil {
		return nil, w.only.err
	}
	return &remote.Cluster{Client: w.only}, nil
}

// labeled is a cache: of Secrets it has those with the cluster's label only.
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
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	var uids atomic.Int64
	w := &world{clock: testclock.NewFakePassiveClock(now), workload: &workload{}}
	w.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&bootstrapv1.KubeadmConfig{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
				obj.SetUID(types.UID(fmt.Sprintf("created-%d", uids.Add(1))))
				err := w.write(func() error { return c.Create(ctx, obj, o...) })
				if err == nil {
					w.created = append(w.created, fmt.Sprintf("%T %s", obj, obj.GetName()))
				}
				return err
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, o ...client.SubResourcePatchOption) error {
				if w.failStatus {
					return apierrors.NewServiceUnavailable("the process died here")
				}
				return w.write(func() error { return c.SubResource(sub).Patch(ctx, obj, p, o...) })
			},
			Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.DeleteOption) error {
				return w.write(func() error { return c.Delete(ctx, obj, o...) })
			},
		}).Build()
	count := func() { w.workload.requests++ }
	w.workload.Client = fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
			count()
			return c.Get(ctx, key, obj, o...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
			count()
			return c.Create(ctx, obj, o...)
		},
	}).Build()
	w.restart()
	return w
}

// restart is a new process over the same clusters.
func (w *world) restart() {
	w.c = &Controller{
		Outside: step.Outside{Client: cache{w.Client, w}, Live: w.Client, Recorder: record.NewFakeRecorder(10), Clock: w.clock},
		cached:  labeled{cache{w.Client, w}}, workloads: workloads{w.workload}, tokenTTL: ttl,
	}
	declared := w.c.declared()
	declared.Progress = nil // Status is written immediately.
	w.runner = declared.Runner(w.c.Outside)
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
	if err := from.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, obj); err != nil {
		t.Fatal(err)
	}
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
	if err := yaml.Unmarshal(get(t, w, name, &corev1.Secret{}).Data["value"], &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func newCluster() *clusterv1.Cluster {
	return &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "test", UID: "cluster-uid"},
		Spec: clusterv1.ClusterSpec{
			ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "10.0.0.1", Port: 6443},
			ClusterNetwork: &clusterv1.ClusterNetwork{
				Services: &clusterv1.NetworkRanges{CIDRBlocks: []string{"10.128.0.0/12"}}, Pods: &clusterv1.NetworkRanges{CIDRBlocks: []string{"192.168.0.0/16", "fd00::/48"}},
				ServiceDomain: "example.local",
			},
		},
		Status: clusterv1.ClusterStatus{InfrastructureReady: true},
	}
}

func initialized(c *clusterv1.Cluster) *clusterv1.Cluster {
	c.Status.Conditions = clusterv1.Conditions{{Type: clusterv1.ControlPlaneInitializedCondition, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now)}}
	return c
}

func newMachine(name string, controlPlane bool) *clusterv1.Machine {
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name + "-machine-uid"), Labels: map[string]string{clusterv1.ClusterNameLabel: "test"}},
		Spec:       clusterv1.MachineSpec{ClusterName: "test", Version: ptr.To("v1.31.0")},
	}
	if controlPlane {
		m.Labels[clusterv1.MachineControlPlaneLabel] = ""
	}
	return m
}

// newConfig belongs to the Machine of the same name.
func newConfig(name string, spec bootstrapv1.KubeadmConfigSpec) *bootstrapv1.KubeadmConfig {
	return &bootstrapv1.KubeadmConfig{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(name + "-config-uid"), Labels: map[string]string{clusterv1.ClusterNameLabel: "test"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: clusterv1.MachineKind, Name: name,
				UID: types.UID(name + "-machine-uid"), Controller: ptr.To(true)}},
		},
		Spec: spec,
	}
}

func clusterSpec() bootstrapv1.KubeadmConfigSpec {
	return bootstrapv1.KubeadmConfigSpec{ClusterConfiguration: &bootstrapv1.ClusterConfiguration{}}
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
	for _, c := range of.GetConditions() {
		out[c.Type] = string(c.Status)
		if c.Reason != "" {
			out[c.Type] += " " + string(c.Severity) + " " + c.Reason
		}
	}
	return out
}
