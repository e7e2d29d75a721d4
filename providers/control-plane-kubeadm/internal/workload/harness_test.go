package workload

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
)

var (
	key   = types.NamespacedName{Namespace: "default", Name: "c"}
	start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
)

// recorder records the requests to an API server, and returns the errors in fail.
type recorder struct {
	mu   sync.Mutex
	seen []string
	fail map[string]error
}

func (r *recorder) note(verb string, obj client.Object) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	kind := fmt.Sprintf("%T", obj)
	request := fmt.Sprintf("%s %s %s", verb, kind[len("*v1."):], obj.GetName())
	r.seen = append(r.seen, request)
	return r.fail[request]
}

// requests returns the requests since the last call.
func (r *recorder) requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := slices.Clone(r.seen)
	r.seen = nil
	return seen
}

func (r *recorder) client(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			obj.SetName(key.Name)
			if err := r.note("get", obj); err != nil {
				return err
			}
			return c.Get(ctx, key, obj, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if err := r.note("create", obj); err != nil {
				return err
			}
			return c.Create(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := r.note("patch", obj); err != nil {
				return err
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	}).Build()
}

// newCluster returns a workload cluster with these objects.
func newCluster(t *testing.T, objects ...client.Object) (*Cluster, *recorder) {
	t.Helper()
	r := &recorder{fail: map[string]error{}}
	return &Cluster{Client: r.client(t, objects...), clock: clocktesting.NewFakePassiveClock(start)}, r
}

func controlPlane(version string, config *bootstrapv1.ClusterConfiguration) *controlplanev1.KubeadmControlPlane {
	kcp := &controlplanev1.KubeadmControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "cp"}}
	kcp.Spec.Version = version
	if config != nil {
		kcp.Spec.KubeadmConfigSpec.ClusterConfiguration = *config
	}
	return kcp
}

func system(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name}
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: system(name), Data: data}
}

// data returns the data of a ConfigMap in kube-system.
func data(t *testing.T, c *Cluster, name string) map[string]string {
	t.Helper()
	stored := &corev1.ConfigMap{}
	if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: name}, stored); err != nil {
		t.Fatal(err)
	}
	return stored.Data
}
