package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/faults"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// protobuf configures a client as typed clients in controllers are.
func protobuf(config *rest.Config) *rest.Config {
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return config
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Data: map[string]string{"k": "v"}}
}

func TestTypedClient(t *testing.T) {
	c := newTestCluster(t)
	ctx := t.Context()
	for name, config := range map[string]*rest.Config{"JSON": c.admin(t), "Protobuf": protobuf(c.admin(t))} {
		t.Run(name, func(t *testing.T) {
			client := clientFor(t, config).CoreV1().ConfigMaps("default")
			created, err := client.Create(ctx, configMap("typed"), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if created.UID == "" || created.ResourceVersion == "" || created.CreationTimestamp.IsZero() {
				t.Errorf("a created object must have an identity: %+v", created.ObjectMeta)
			}
			if _, err := client.Create(ctx, configMap("typed"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
				t.Errorf("creating it again: %v, want AlreadyExists", err)
			}
			stale := created.DeepCopy()
			created.Data["k"] = "w"
			updated, err := client.Update(ctx, created, metav1.UpdateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if updated.ResourceVersion == stale.ResourceVersion || updated.UID != stale.UID {
				t.Errorf("an update must result in a new version of the same object: %+v", updated.ObjectMeta)
			}
			if _, err := client.Update(ctx, stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
				t.Errorf("updating an old version: %v, want Conflict", err)
			}
			same, err := client.Update(ctx, updated, metav1.UpdateOptions{})
			if err != nil || same.ResourceVersion != updated.ResourceVersion {
				t.Errorf("an update without changes must not result in a new version: %v, %v", same.ResourceVersion, err)
			}
			wrong := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(types.UID("other"))}}
			if err := client.Delete(ctx, "typed", wrong); !apierrors.IsConflict(err) {
				t.Errorf("deleting another UID: %v, want Conflict", err)
			}
			if err := client.Delete(ctx, "typed", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := client.Get(ctx, "typed", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("reading a deleted object: %v, want NotFound", err)
			}
		})
	}
}

func TestDryRunAndGenerateName(t *testing.T) {
	c := newTestCluster(t)
	client := c.client(t).CoreV1().ConfigMaps("default")
	generated := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "g-"}}
	dry, err := client.Create(t.Context(), generated, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil || len(dry.Name) != len("g-")+5 {
		t.Errorf("a dry run must return the object: %q, %v", dry.Name, err)
	}
	if list, err := client.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 0 {
		t.Errorf("a dry run must not store the object: %v, %v", list.Items, err)
	}
}

func TestFinalizersAndStatus(t *testing.T) {
	c := newTestCluster(t)
	ctx, client := t.Context(), c.client(t)
	pods := client.CoreV1().Pods("default")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Finalizers: []string{"example.com/wait"}},
		Spec:       corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	created, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if created.Status.Phase != corev1.PodPending {
		t.Errorf("the phase of a new Pod is %s, want Pending", created.Status.Phase)
	}
	created.Status.Phase = corev1.PodRunning
	created.Spec.NodeName = "other"
	running, err := pods.UpdateStatus(ctx, created, metav1.UpdateOptions{})
	if err != nil || running.Status.Phase != corev1.PodRunning || running.Spec.NodeName != "n" || running.Generation != 1 {
		t.Errorf("the status subresource must only change the status: %+v, %v", running, err)
	}
	if err := pods.Delete(ctx, "p", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	terminating, err := pods.Get(ctx, "p", metav1.GetOptions{})
	if err != nil || terminating.DeletionTimestamp == nil {
		t.Fatalf("an object with a finalizer must still exist: %+v, %v", terminating, err)
	}
	patch := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := pods.Patch(ctx, "p", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := pods.Get(ctx, "p", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("an object without finalizers: %v, want NotFound", err)
	}
}

func TestOwnersAndSelectors(t *testing.T) {
	c := newTestCluster(t)
	ctx, client := t.Context(), c.client(t)
	owner, err := client.CoreV1().ConfigMaps("default").Create(ctx, configMap("owner"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	reference := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}
	for i, node := range []string{"a", "b", "b"} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("p%d", i), Labels: map[string]string{"n": fmt.Sprint(i)}, OwnerReferences: []metav1.OwnerReference{reference},
			},
			Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c"}}},
		}
		if _, err := client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		reason  string
		options metav1.ListOptions
		want    []string
	}{
		{"all", metav1.ListOptions{}, []string{"p0", "p1", "p2"}},
		{"by node", metav1.ListOptions{FieldSelector: "spec.nodeName=b"}, []string{"p1", "p2"}},
		{"by node and phase", metav1.ListOptions{FieldSelector: "spec.nodeName=b,status.phase!=Pending"}, nil},
		{"by name", metav1.ListOptions{FieldSelector: "metadata.name=p0"}, []string{"p0"}},
		{"by label", metav1.ListOptions{LabelSelector: "n in (0,2)"}, []string{"p0", "p2"}},
	} {
		list, err := client.CoreV1().Pods("").List(ctx, test.options)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range list.Items {
			names = append(names, p.Name)
		}
		if diff := cmp.Diff(test.want, names); diff != "" {
			t.Errorf("%s: %s", test.reason, diff)
		}
	}
	if _, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.color=red"}); !apierrors.IsBadRequest(err) {
		t.Errorf("an unknown field: %v, want BadRequest", err)
	}
	if err := client.CoreV1().ConfigMaps("default").Delete(ctx, "owner", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("dependents of a deleted object: %d, %v", len(list.Items), err)
	}
}

func TestServerSideApply(t *testing.T) {
	c := newTestCluster(t)
	ctx, maps := t.Context(), c.client(t).CoreV1().ConfigMaps("default")
	apply := func(manager, key, value string, force bool) (*corev1.ConfigMap, error) {
		return maps.Apply(ctx, applycorev1.ConfigMap("ssa", "default").WithData(map[string]string{key: value}),
			metav1.ApplyOptions{FieldManager: manager, Force: force})
	}
	first, err := apply("one", "a", "1", false)
	if err != nil {
		t.Fatal(err)
	}
	again, err := apply("one", "a", "1", false)
	if err != nil || again.ResourceVersion != first.ResourceVersion {
		t.Errorf("applying again must not result in a new version: %v", err)
	}
	if _, err := apply("two", "b", "2", false); err != nil {
		t.Fatal(err)
	}
	if _, err := apply("two", "a", "2", false); !apierrors.IsConflict(err) {
		t.Errorf("applying another manager's field: %v, want Conflict", err)
	}
	if _, err := apply("two", "a", "2", true); err != nil {
		t.Errorf("force must take over a field: %v", err)
	}
	final, err := apply("one", "c", "3", false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "2", "c": "3"}, final.Data); diff != "" {
		t.Errorf("only fields without a manager must be removed: %s", diff)
	}
	var managers []string
	for _, entry := range final.ManagedFields {
		managers = append(managers, entry.Manager+" "+string(entry.Operation))
	}
	if diff := cmp.Diff([]string{"one Apply", "two Apply"}, managers); diff != "" {
		t.Error(diff)
	}
}

func TestManagersOfUpdates(t *testing.T) {
	c := newTestCluster(t)
	nodes := c.client(t).CoreV1().Nodes()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	if _, err := nodes.Create(t.Context(), node, metav1.CreateOptions{FieldManager: "kubelet"}); err != nil {
		t.Fatal(err)
	}
	patch := []byte(`{"metadata":{"labels":{"a":"b"}}}`)
	patched, err := nodes.Patch(t.Context(), "n", types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: "labeller"})
	if err != nil {
		t.Fatal(err)
	}
	if len(patched.ManagedFields) == 0 || patched.ManagedFields[len(patched.ManagedFields)-1].Manager != "labeller" {
		t.Errorf("the manager of a label: %v", patched.ManagedFields)
	}
}

func TestDynamicAndMetadataClients(t *testing.T) {
	c := newTestCluster(t)
	ctx := t.Context()
	client, err := dynamic.NewForConfig(c.admin(t))
	if err != nil {
		t.Fatal(err)
	}
	deployments := client.Resource(appsv1.SchemeGroupVersion.WithResource("deployments")).Namespace("default")
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "d", "labels": map[string]any{"x": "y"}},
		"spec":     map[string]any{"selector": map[string]any{}, "template": map[string]any{}},
	}}
	created, err := deployments.Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if replicas, _, _ := unstructured.NestedInt64(created.Object, "spec", "replicas"); replicas != 1 {
		t.Errorf("the default of replicas is %d", replicas)
	}
	scale := []byte(`{"spec":{"replicas":5}}`)
	scaled, err := deployments.Patch(ctx, "d", types.MergePatchType, scale, metav1.PatchOptions{}, "scale")
	if err != nil || scaled.GetKind() != "Scale" {
		t.Errorf("updating the scale subresource: %v, %v", scaled, err)
	}
	partial, err := metadata.NewForConfig(c.admin(t))
	if err != nil {
		t.Fatal(err)
	}
	list, err := partial.Resource(appsv1.SchemeGroupVersion.WithResource("deployments")).List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].Labels["x"] != "y" || list.Items[0].Generation != 2 {
		t.Errorf("listing metadata: %+v, %v", list, err)
	}
	if err := deployments.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "x=y"}); err != nil {
		t.Fatal(err)
	}
	if _, err := deployments.Get(ctx, "d", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("reading from a deleted collection: %v, want NotFound", err)
	}
}

func TestEviction(t *testing.T) {
	c := newTestCluster(t)
	ctx, client := t.Context(), c.client(t)
	populate(t, c.group)
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "one"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(1)),
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"component": "kube-apiserver"}},
		},
	}
	if _, err := client.PolicyV1().PodDisruptionBudgets("kube-system").Create(ctx, budget, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "kube-apiserver-cp-0", Namespace: "kube-system"}}
	rejected := client.CoreV1().Pods("kube-system").EvictV1(ctx, eviction)
	if !apierrors.IsTooManyRequests(rejected) || !apierrors.HasStatusCause(rejected, policyv1.DisruptionBudgetCause) {
		t.Errorf("evicting the last Pod of a budget: %v, want TooManyRequests", rejected)
	}
	if _, err := store.Ensure(c.group, staticPod("kube-apiserver", "cp-1")); err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().Pods("kube-system").EvictV1(ctx, eviction); err != nil {
		t.Errorf("evicting one of two Pods: %v", err)
	}
}

func TestAuthorization(t *testing.T) {
	c := newTestCluster(t)
	ctx := t.Context()
	admin := c.client(t)
	for _, args := range []string{
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"kubeadm:get-nodes"},` +
			`"rules":[{"apiGroups":[""],"resources":["nodes"],"verbs":["get"]}]}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"kubeadm:get-nodes"},` +
			`"roleRef":{"kind":"ClusterRole","name":"kubeadm:get-nodes"},"subjects":[{"kind":"Group","name":"readers"}]}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"kubeadm:cluster-admins"},` +
			`"roleRef":{"kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"Group","name":"kubeadm:cluster-admins"}]}`,
	} {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON([]byte(args)); err != nil {
			t.Fatal(err)
		}
		resource := map[string]string{"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings"}[u.GetKind()]
		if err := admin.RbacV1().RESTClient().Post().Resource(resource).Body([]byte(args)).Do(ctx).Error(); err != nil {
			t.Fatal(err)
		}
	}
	other := newTestCA(t, "another CA")
	untrusted := c.admin(t)
	untrusted.CertData, untrusted.KeyData = pemPair(t, other.pair(t, "kubernetes-admin", "system:masters"))
	anonymous := c.admin(t)
	anonymous.CertData, anonymous.KeyData = nil, nil

	get := func(k *kubernetes.Clientset) error {
		_, err := k.CoreV1().Nodes().Get(ctx, "none", metav1.GetOptions{})
		return err
	}
	list := func(k *kubernetes.Clientset) error {
		_, err := k.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return err
	}
	version := func(k *kubernetes.Clientset) error {
		_, err := k.ServerVersion()
		return err
	}
	none := func(err error) bool { return err == nil }
	for _, test := range []struct {
		reason string
		config *rest.Config
		do     func(*kubernetes.Clientset) error
		is     func(error) bool
	}{
		{"masters may list", c.admin(t), list, none},
		{"a user bound to cluster-admin may list", c.config(t, "a", "kubeadm:cluster-admins"), list, none},
		{"readers can get", c.config(t, "r", "readers"), get, apierrors.IsNotFound},
		{"readers cannot list", c.config(t, "r", "readers"), list, apierrors.IsForbidden},
		{"a user without a role has no permissions", c.config(t, "x"), get, apierrors.IsForbidden},
		{"a certificate of another CA is not trusted", untrusted, list, apierrors.IsUnauthorized},
		{"a client without a certificate is rejected", anonymous, list, apierrors.IsUnauthorized},
		{"the version is public", anonymous, version, none},
	} {
		if err := test.do(clientFor(t, test.config)); !test.is(err) {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}

func TestUnknownPathsAreNotFound(t *testing.T) {
	c := newTestCluster(t)
	for _, path := range []string{"/apis/example.com/v1/things", "/api/v1/widgets", "/api/v2/pods", "/nothing",
		"/api/v1/namespaces/default/pods/p/exec/more"} {
		err := c.client(t).RESTClient().Get().AbsPath(path).Do(t.Context()).Error()
		if !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestFaultsOfAPIServer(t *testing.T) {
	c := newTestCluster(t)
	populate(t, c.group)
	nodes := clientFor(t, c.admin(t)).CoreV1().Nodes()
	set := func(f faults.Faults) {
		t.Helper()
		if err := c.group.SetFaults(f); err != nil {
			t.Fatal(err)
		}
	}
	list := func(ctx context.Context) error {
		_, err := nodes.List(ctx, metav1.ListOptions{})
		return err
	}
	set(faults.Faults{ErrorRate: 1})
	if err := list(t.Context()); !apierrors.IsInternalError(err) {
		t.Errorf("a request with an error rate of 1: %v, want InternalError", err)
	}
	set(faults.Faults{Unresponsive: true})
	answered := make(chan error, 1)
	go func() { answered <- list(t.Context()) }()
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := list(short); short.Err() == nil {
		t.Errorf("an unresponsive server responded: %v", err)
	}
	set(faults.Faults{})
	if err := <-answered; err != nil {
		t.Errorf("a pending request after the fault was removed: %v", err)
	}
	set(faults.Faults{DeadMachines: []string{"cp-0"}})
	// Without client-go, which would retry.
	transport, err := rest.TransportFor(c.admin(t))
	if err != nil {
		t.Fatal(err)
	}
	if response, err := (&http.Client{Transport: transport}).Get("https://" + c.endpoint.Address() + "/readyz"); err == nil {
		t.Errorf("the only API server's machine is dead, but it responded: %s", response.Status)
	}
	set(faults.Faults{})
	node, err := nodes.Get(t.Context(), "cp-0", metav1.GetOptions{})
	if err != nil || node.Status.Conditions[0].Status != corev1.ConditionTrue {
		t.Errorf("the Node of a machine with power again must be ready: %+v, %v", node, err)
	}
}
