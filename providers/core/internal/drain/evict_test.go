package drain

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func node(with ...func(*corev1.Node)) *corev1.Node { return object.Node("node-1", with...) }

func healthy(n *corev1.Node) {
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
}

// pod returns a Pod of a ReplicaSet on Node node-1, changed by with.
func pod(name string, with ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PodSpec{NodeName: "node-1"}}
	controlled("ReplicaSet")(p)
	for _, f := range with {
		f(p)
	}
	return p
}

func controlled(kind string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		owner := &metav1.ObjectMeta{Name: "owner", UID: "uid-owner"}
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind(kind))}
	}
}

func unmanaged(p *corev1.Pod) { p.OwnerReferences = nil }

func mirrored(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }

func finished(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }

func withData(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
}

// terminating uses the real clock, because kubectl's drain package does.
func terminating(since time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(-since)} }
}

func unresponsive(n *corev1.Node) {
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
}

// budget returns the error of an eviction that a disruption budget rejects.
func budget() error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 10)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "needs 1 healthy pods and has 1"}}
	return err
}

func TestDrainOnce(t *testing.T) {
	daemons := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner"}}
	namespaceGoes := apierrors.NewForbidden(corev1.Resource("pods"), "a", errors.New("namespace is being terminated"))
	namespaceGoes.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	cases := map[string]struct {
		reason  string
		node    *corev1.Node
		objects []runtime.Object
		err     error
		evicted []string
		want    Left
	}{
		"Empty":         {reason: "there are no Pods"},
		"Two":           {"both are evicted, in order", node(), []runtime.Object{pod("b"), pod("a")}, nil, []string{"a", "b"}, Left{Leaving: 2}},
		"Daemon":        {"its DaemonSet would create it again", node(), []runtime.Object{daemons, pod("a", controlled("DaemonSet"))}, nil, nil, Left{}},
		"OrphanDaemon":  {"its DaemonSet no longer exists", node(), []runtime.Object{pod("a", controlled("DaemonSet"))}, nil, []string{"a"}, Left{Leaving: 1}},
		"Mirror":        {"static Pods cannot be evicted", node(), []runtime.Object{pod("a", mirrored, unmanaged)}, nil, nil, Left{}},
		"Terminating":   {"it is not evicted again", node(), []runtime.Object{pod("a", terminating(time.Hour))}, nil, nil, Left{Stuck: []string{"default/a"}}},
		"Unconfirmed":   {"the unresponsive kubelet cannot confirm the deletion", node(unresponsive), []runtime.Object{pod("a", terminating(time.Hour))}, nil, nil, Left{}},
		"Recent":        {"it was evicted a moment ago", node(unresponsive), []runtime.Object{pod("a", terminating(0))}, nil, nil, Left{Leaving: 1}},
		"Soon":          {"a minute is enough", node(unresponsive), []runtime.Object{pod("a", terminating(time.Minute))}, nil, nil, Left{}},
		"Shortened":     {"its grace period ends in an hour, and the kubelet cannot use it", node(unresponsive), []runtime.Object{pod("a", terminating(-time.Hour))}, nil, []string{"a"}, Left{Leaving: 1}},
		"OwnGrace":      {"the kubelet responds: it may use its grace period", node(healthy), []runtime.Object{pod("a", terminating(-time.Hour))}, nil, nil, Left{Leaving: 1}},
		"BudgetHolds":   {"the budget applies to unreachable Nodes, too", node(unresponsive), []runtime.Object{pod("a")}, budget(), []string{"a"}, Left{Rejected: []Rejection{{"default/a", true, "its disruption budget does not allow it: needs 1 healthy pods and has 1"}}}},
		"Unmanaged":     {"it is evicted although no controller replaces it", node(), []runtime.Object{pod("a", unmanaged)}, nil, []string{"a"}, Left{Leaving: 1}},
		"Data":          {"it is evicted although its data is lost", node(), []runtime.Object{pod("a", withData)}, nil, []string{"a"}, Left{Leaving: 1}},
		"Finished":      {"finished Pods stay: they need the Node no longer", node(), []runtime.Object{pod("a", unmanaged, finished), pod("b")}, nil, []string{"b"}, Left{Leaving: 1}},
		"Budget":        {"its disruption budget rejects the eviction", node(), []runtime.Object{pod("a")}, budget(), []string{"a"}, Left{Rejected: []Rejection{{"default/a", true, "its disruption budget does not allow it: needs 1 healthy pods and has 1"}}}},
		"NamespaceGoes": {"its namespace is being deleted", node(), []runtime.Object{pod("a")}, namespaceGoes, []string{"a"}, Left{Rejected: []Rejection{{"default/a", false, "its namespace is being deleted"}}}},
		"GoneMeanwhile": {"it is deleted before the eviction", node(), []runtime.Object{pod("a"), pod("b")}, apierrors.NewNotFound(corev1.Resource("pods"), "a"), []string{"a", "b"}, Left{}},
		"Broken":        {"other errors are passed on", node(), []runtime.Object{pod("a")}, errors.New("two budgets"), []string{"a"}, Left{Rejected: []Rejection{{"default/a", false, "two budgets"}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.node == nil {
				tc.node = node()
			}
			set, evicted := evictions(tc.err, append(tc.objects, tc.node)...)
			set.PrependReactor("create", "pods", graceOf(t, tc.node))
			got, err := drainOnce(t.Context(), set, tc.node, nil)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: Pods left, -want +got:\n%s", tc.reason, diff)
			}
			if !slices.Equal(tc.evicted, *evicted) {
				t.Errorf("%s: evicted %q, want %q", tc.reason, *evicted, tc.evicted)
			}
			after, err := set.CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{})
			if err != nil || !after.Spec.Unschedulable {
				t.Errorf("%s: the Node is not cordoned: %v", tc.reason, err)
			}
		})
	}
}

// evictions returns an API server that responds to every eviction with an error, and the names of the evicted Pods.
func evictions(result error, objects ...runtime.Object) (*fake.Clientset, *[]string) {
	set := fake.NewClientset(objects...)
	set.Resources = []*metav1.APIResourceList{{GroupVersion: "v1", APIResources: []metav1.APIResource{
		{Name: "pods/eviction", Kind: "Eviction", Group: "policy", Version: "v1"},
	}}}
	evicted := &[]string{}
	set.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		create, ok := a.(clienttesting.CreateAction)
		if !ok || a.GetSubresource() != "eviction" {
			return false, nil, nil
		}
		eviction, ok := create.GetObject().(*policyv1.Eviction)
		if !ok {
			return true, nil, errors.New("not an eviction of policy/v1")
		}
		*evicted = append(*evicted, eviction.Name)
		return true, nil, result
	})
	return set, evicted
}

// graceOf checks the grace period of evictions, and passes them on.
func graceOf(t *testing.T, node *corev1.Node) clienttesting.ReactionFunc {
	return func(a clienttesting.Action) (bool, runtime.Object, error) {
		if create, ok := a.(clienttesting.CreateAction); ok && a.GetSubresource() == "eviction" {
			options := create.GetObject().(*policyv1.Eviction).DeleteOptions
			if short := options != nil && options.GracePeriodSeconds != nil && *options.GracePeriodSeconds == 1; short != Unreachable(node) {
				t.Errorf("the grace period is shortened: %t; the Node is unreachable: %t", short, Unreachable(node))
			}
		}
		return false, nil, nil
	}
}

func TestServerWithoutEvictions(t *testing.T) {
	set := fake.NewClientset(node(), pod("a"))
	set.Resources = []*metav1.APIResourceList{{GroupVersion: "v1"}}
	left, err := drainOnce(t.Context(), set, node(), nil)
	if err != nil || left.Pods() != 1 {
		t.Errorf("left = %v, err = %v", left, err)
	}
	if _, err := set.CoreV1().Pods("default").Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("err = %v; want the Pod to be deleted if the API server does not support evictions", err)
	}
}

func TestDrainFails(t *testing.T) {
	set, _ := evictions(nil)
	if _, err := drainOnce(t.Context(), set, node(), nil); err == nil {
		t.Error("want an error if the Node cannot be cordoned")
	}
	set, evicted := evictions(nil, node(), pod("a"))
	set.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no") })
	if _, err := drainOnce(t.Context(), set, node(), nil); err == nil || len(*evicted) != 0 {
		t.Errorf("err = %v, evicted %q; want an error if Pods cannot be listed", err, *evicted)
	}
}

// TestDrainTimesOut has an API server that does not respond.
func TestDrainTimesOut(t *testing.T) {
	done := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-done }))
	defer hangs.Close()
	defer close(done)
	_, err := Evictor{Timeout: 50 * time.Millisecond}.Drain(t.Context(), &remote.Cluster{Config: &rest.Config{Host: hangs.URL}}, node(), nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v, want a timeout", err)
	}
}

// TestDrainStopsAtItsDeadline leaves the remaining Pods to the next attempt.
func TestDrainStopsAtItsDeadline(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	set, evicted := evictions(nil, node(), pod("a"), pod("b"))
	set.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		cancel()
		return true, nil, context.Canceled
	})
	left, err := drainOnce(ctx, set, node(), nil)
	if err != nil || len(left.Rejected) != 0 || left.Pods() != 2 || len(*evicted) != 0 {
		t.Errorf("left = %+v, err = %v", left, err)
	}
}

func TestUnreachable(t *testing.T) {
	cases := map[string]struct {
		reason string
		node   *corev1.Node
		want   bool
	}{
		"Healthy": {"its kubelet responds", node(healthy), false},
		"Unresponsive": {"its state is unknown", node(func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
		}), true},
		"Recovered": {"its kubelet responds again; the taint is outdated", node(healthy, func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable}} }), false},
		"Tainted":   {"the node lifecycle controller has set the taint", node(func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable}} }), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Unreachable(tc.node); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}
