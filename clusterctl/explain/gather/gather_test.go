package gather

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/clusterctl/explain"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

var (
	name       = types.NamespacedName{Namespace: "ns", Name: "c1"}
	toyMachine = schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1", Kind: "ToyMachine"}
)

func object(kind schema.GroupVersionKind, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(kind)
	u.SetNamespace("ns")
	u.SetName(name)
	u.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "c1"})
	return u
}

// podEvent returns a warning about a Pod.
func podEvent(pod string) client.Object {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "toy", Name: pod}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "toy", Name: pod},
		Type: corev1.EventTypeWarning, Reason: "FailedMount",
	}
}

// cluster returns a Cluster with this number of Machines.
func cluster(machines int) []client.Object {
	objects := []client.Object{
		object(tree.ClusterKind, "c1", map[string]any{
			"topology":          map[string]any{"class": "quick"},
			"infrastructureRef": map[string]any{"apiVersion": "gone.example.com/v1", "kind": "GoneCluster", "name": "c1"},
		}),
		object(explain.ClassKind, "quick", nil),
		object(explain.ClaimKind, "claim", nil),
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "toy", Name: "manager", Labels: map[string]string{providerLabel: "toy"}},
			Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "toy"}}},
		},
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "toy", Name: "manager-0", Labels: map[string]string{"app": "toy"}},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
			}}},
		},
		podEvent("manager-0"), podEvent("other"),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "toy", Name: "other"}},
		&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "e"}, Type: corev1.EventTypeWarning, Reason: "Failed"},
	}
	for i := range machines {
		m := fmt.Sprintf("m%03d", i)
		objects = append(objects, object(tree.MachineKind, m, map[string]any{
			"infrastructureRef": map[string]any{"apiVersion": toyMachine.GroupVersion().String(), "kind": toyMachine.Kind, "name": m},
		}), object(toyMachine, m, nil))
	}
	return objects
}

// server is an API server that records requests, and forbids lists of a kind.
type server struct {
	client.WithWatch
	mu       sync.Mutex
	requests []string
	forbid   string
	// afterList, if set, is called after each list, with its kind.
	afterList func(kind string)
}

func newServer(t *testing.T, objects ...client.Object) *server {
	t.Helper()
	scheme, err := management.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []schema.GroupVersionKind{
		tree.ClusterKind, tree.MachineKind, tree.MachineSetKind, tree.MachineDeploymentKind, tree.MachinePoolKind, tree.MachineHealthCheckKind,
		explain.ClaimKind, explain.ClassKind, explain.ResourceSetKind, toyMachine,
		appsv1.SchemeGroupVersion.WithKind("Deployment"), corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithKind("Event"),
	} {
		mapper.Add(kind, meta.RESTScopeNamespace)
		if !scheme.Recognizes(kind) {
			scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
			scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
		}
	}
	s := &server{}
	s.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).
		WithIndex(&corev1.Event{}, "type", func(o client.Object) []string { return []string{o.(*corev1.Event).Type} }).
		WithIndex(&corev1.Event{}, "involvedObject.name", func(o client.Object) []string { return []string{o.(*corev1.Event).InvolvedObject.Name} }).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.requests = append(s.requests, "get "+o.GetObjectKind().GroupVersionKind().Kind)
				return c.Get(ctx, key, o, opts...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				s.mu.Lock() // The fake client adds unknown kinds to its scheme.
				defer s.mu.Unlock()
				kind, err := c.GroupVersionKindFor(list)
				if err != nil {
					return err
				}
				s.requests = append(s.requests, "list "+kind.Kind)
				if kind.Kind == s.forbid {
					return apierrors.NewForbidden(schema.GroupResource{Resource: kind.Kind}, "", nil)
				}
				err = c.List(ctx, list, opts...)
				if s.afterList != nil {
					s.afterList(kind.Kind)
				}
				return err
			},
		}).Build()
	return s
}

// TestReadAsksOncePerKind checks that the number of requests does not grow with the number of Machines, and what is read.
func TestReadAsksOncePerKind(t *testing.T) {
	var requests [2][]string
	for i, machines := range []int{1, 200} {
		s := newServer(t, cluster(machines)...)
		in, err := Read(t.Context(), s, name, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(s.requests)
		requests[i] = s.requests
		if have := len(in.Objects.Of(tree.MachineKind, name)); have != machines {
			t.Errorf("%d Machines, want %d", have, machines)
		}
		if in.Objects.Get(explain.ClassKind.GroupKind(), types.NamespacedName{Namespace: "ns", Name: "quick"}) == nil ||
			in.Objects.Get(explain.ClaimKind.GroupKind(), types.NamespacedName{Namespace: "ns", Name: "claim"}) == nil {
			t.Errorf("the class or the claim is missing: %v", in.Objects.All())
		}
		if len(in.Providers) != 1 || len(in.Pods) != 1 || len(in.Events) != 1 || len(in.Unread) != 0 {
			t.Errorf("%d Deployments, %d Pods, %d Events, unread %v", len(in.Providers), len(in.Pods), len(in.Events), in.Unread)
		}
		if len(in.PodEvents) != 1 || in.PodEvents[0].Name != "manager-0" {
			t.Errorf("warnings about Pods %v, want that of the Pod whose containers are not created", in.PodEvents)
		}
		if !in.NoKind[schema.GroupKind{Group: "gone.example.com", Kind: "GoneCluster"}] || in.NoKind[toyMachine.GroupKind()] {
			t.Errorf("kinds that are not installed: %v", in.NoKind)
		}
	}
	if diff := cmp.Diff(requests[0], requests[1]); diff != "" {
		t.Errorf("requests (-1 Machine +200 Machines):\n%s", diff)
	}
	if n := len(requests[1]); n > 20 {
		t.Errorf("%d requests, want at most 20: %v", n, requests[1])
	}
}

func TestReadNotesWhatIsForbidden(t *testing.T) {
	s := newServer(t, cluster(1)...)
	s.forbid = "DeploymentList"
	in, err := Read(t.Context(), s, name, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Deployments of the providers: the user of the kubeconfig may not list them"}, in.Unread); diff != "" {
		t.Errorf("unread (-want +got):\n%s", diff)
	}
	s.forbid = "MachineList"
	if _, err := Read(t.Context(), s, name, time.Now()); !apierrors.IsForbidden(err) {
		t.Errorf("error %v, want that the Cluster's own objects are forbidden", err)
	}
}

func TestReadOfNothing(t *testing.T) {
	in, err := Read(t.Context(), newServer(t), name, time.Now())
	if err != nil || in.Objects.Cluster(name) != nil {
		t.Errorf("Cluster %v, error %v", in.Objects.Cluster(name), err)
	}
}

// TestReadVerifiesWhatIsMissing checks that a Machine whose infrastructure was deleted between two lists does not count if it was
// deleted itself, and that one request shows that.
func TestReadVerifiesWhatIsMissing(t *testing.T) {
	for reason, gone := range map[string]bool{"the Machine was deleted, too": true, "only the infrastructure was deleted": false} {
		t.Run(reason, func(t *testing.T) {
			machine := cluster(1)[len(cluster(0))]
			s := newServer(t, append(cluster(0), machine)...)
			s.afterList = func(kind string) {
				if kind == "MachineList" && gone {
					if err := s.Delete(t.Context(), machine.DeepCopyObject().(client.Object)); client.IgnoreNotFound(err) != nil {
						t.Error(err)
					}
				}
			}
			in, err := Read(t.Context(), s, name, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if have := in.Objects.Of(tree.MachineKind, name)[0].GetDeletionTimestamp() != nil; have != gone {
				t.Errorf("the Machine counts as deleted: %t, want %t", have, gone)
			}
		})
	}
}
