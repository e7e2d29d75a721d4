package controlplane_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/standalone/internal/controlplane"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	info, err := shared.kubernetes.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if info.GitVersion != controlplane.Version() || !strings.HasPrefix(info.GitVersion, "v"+info.Major+"."+info.Minor+".") {
		t.Errorf("the server has version %s (%s.%s), capi has %s", info.GitVersion, info.Major, info.Minor, controlplane.Version())
	}
	if strings.HasPrefix(info.GitVersion, "v0.") {
		t.Errorf("clients reject version %s", info.GitVersion)
	}
}

func TestKubeconfigIsPrivateAndTrustsTheCA(t *testing.T) {
	t.Parallel()
	info, err := os.Stat(shared.dir.Path("kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig has mode %o", info.Mode().Perm())
	}
	config, err := clientcmd.LoadFromFile(shared.dir.Path("kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	got := config.Clusters["capi"]
	ca, err := os.ReadFile(shared.control.Files.CACert)
	if err != nil {
		t.Fatal(err)
	}
	if got.InsecureSkipTLSVerify || string(got.CertificateAuthorityData) != string(ca) || got.Server != shared.control.Server {
		t.Errorf("the kubeconfig should verify %s with the cluster's CA, got %+v", shared.control.Server, got)
	}
}

func TestCheckKubeconfig(t *testing.T) {
	t.Parallel()
	tests := []struct {
		reason  string
		content string
		want    string
	}{
		{reason: "a kubeconfig of an earlier run may be replaced", content: "kind: Config\napiVersion: v1\nclusters:\n- name: capi\n  cluster: {server: https://localhost}\n"},
		{
			reason:  "a user's own kubeconfig is not overwritten",
			content: "kind: Config\napiVersion: v1\nclusters:\n- name: work\n  cluster: {server: https://localhost}\n",
			want:    ` contains other clusters ("work"), and would be overwritten: choose another file with --kubeconfig`,
		},
		{reason: "other files are not overwritten", content: "# notes\n- buy milk\n", want: " exists and is not a kubeconfig: choose another file with --kubeconfig"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			path := t.TempDir() + "/kubeconfig"
			if err := os.WriteFile(path, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			err := controlplane.CheckKubeconfig(path)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.HasPrefix(err.Error(), path+test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	if err := controlplane.CheckKubeconfig(t.TempDir() + "/absent"); err != nil {
		t.Errorf("a file that does not exist may be written: %v", err)
	}
}

// testKind creates a kind, which is stored as v1, and waits until it is served. more are further versions of it.
func testKind(t *testing.T, group string, more ...string) schema.GroupVersionKind {
	t.Helper()
	var versions []any
	for _, name := range append([]string{"v1"}, more...) {
		versions = append(versions, map[string]any{
			"name": name, "served": true, "storage": name == "v1",
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		})
	}
	gvk := schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Thing"}
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "things." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced",
			"names":    map[string]any{"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
			"versions": versions,
		},
	}}
	create(t, crd)
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(crd.GroupVersionKind())
	watcher, err := shared.client.Watch(ctx, list, client.MatchingFields{"metadata.name": crd.GetName()})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		conditions, _, _ := unstructured.NestedSlice(event.Object.(*unstructured.Unstructured).Object, "status", "conditions")
		for _, c := range conditions {
			if c := c.(map[string]any); c["type"] == "Established" && c["status"] == "True" {
				discovered(ctx, t, gvk.GroupVersion())
				return gvk
			}
		}
	}
	t.Fatalf("CRD %s is not established", crd.GetName())
	return gvk
}

// discovered waits until clients can find out what a group serves, a moment after its kinds are established.
func discovered(ctx context.Context, t *testing.T, gv schema.GroupVersion) {
	t.Helper()
	err := wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(context.Context) (bool, error) {
		_, err := shared.kubernetes.Discovery().ServerResourcesForGroupVersion(gv.String())
		return err == nil, nil // Not found is what it waits through.
	})
	if err != nil {
		t.Fatalf("%s is not served: %v", gv, err)
	}
}

func thing(gvk schema.GroupVersionKind, namespace, name string, owner client.Object) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(namespace)
	u.SetName(name)
	if owner != nil {
		kind := owner.GetObjectKind().GroupVersionKind()
		u.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: owner.GetName(), UID: owner.GetUID(),
		}})
	}
	return u
}

func listOf(gvk schema.GroupVersionKind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	return list
}

func create(t *testing.T, object client.Object) {
	t.Helper()
	if err := shared.client.Create(t.Context(), object); err != nil {
		t.Fatalf("creating %T %s: %v", object, object.GetName(), err)
	}
}

func newNamespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	create(t, ns)
	return ns.Name
}

func TestGarbageIsCollected(t *testing.T) {
	t.Parallel()
	configMap := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	tests := []struct {
		reason string
		kind   func(t *testing.T) schema.GroupVersionKind
	}{
		{"dependents of a built-in kind are deleted with their owner", func(*testing.T) schema.GroupVersionKind { return configMap }},
		{"dependents of a new kind, too", func(t *testing.T) schema.GroupVersionKind { return testKind(t, "garbage.example.com") }},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			kind, ns := test.kind(t), newNamespace(t)
			owner := thing(kind, ns, "owner", nil)
			create(t, owner)
			dependent := thing(kind, ns, "dependent", owner)
			create(t, dependent)
			other := thing(kind, ns, "other", nil)
			create(t, other)
			if err := shared.client.Delete(t.Context(), owner, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
				t.Fatal(err)
			}
			gone(t, dependent, listOf(kind))
			if err := shared.client.Get(t.Context(), client.ObjectKeyFromObject(other), other); err != nil {
				t.Errorf("objects without owner must be kept: %v", err)
			}
		})
	}
}

// The garbage collector has seen the dependent in the newest version. Then this version is removed, as when older definitions are installed
// again.
func TestGarbageOfARemovedVersionIsCollected(t *testing.T) {
	t.Parallel()
	kind, ns := testKind(t, "downgraded.example.com", "v2"), newNamespace(t)
	owned := func(suffix string) (owner, dependent client.Object) {
		owner = thing(kind, ns, "owner-"+suffix, nil)
		create(t, owner)
		dependent = thing(kind, ns, "dependent-"+suffix, owner)
		create(t, dependent)
		return owner, dependent
	}
	collected := func(owner, dependent client.Object) {
		t.Helper()
		if err := shared.client.Delete(t.Context(), owner, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			t.Fatal(err)
		}
		gone(t, dependent, listOf(kind))
	}
	owner, dependent := owned("later")
	collected(owned("now"))

	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName("things." + kind.Group)
	if err := shared.client.Patch(t.Context(), crd, client.RawPatch(types.JSONPatchType, []byte(`[{"op": "remove", "path": "/spec/versions/1"}]`))); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, timeout, true, func(context.Context) (bool, error) {
		_, err := shared.kubernetes.Discovery().ServerResourcesForGroupVersion(kind.Group + "/v2")
		return apierrors.IsNotFound(err), nil
	})
	if err != nil {
		t.Fatalf("v2 is still served: %v", err)
	}
	collected(owned("after")) // Now the garbage collector has noticed.
	collected(owner, dependent)
}

func TestNamespaceIsDeletedWithItsContent(t *testing.T) {
	t.Parallel()
	kind, name := testKind(t, "content.example.com"), newNamespace(t)
	inside := thing(kind, name, "inside", nil)
	create(t, inside)
	create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "inside"}})
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := shared.client.Delete(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	gone(t, ns, &corev1.NamespaceList{})
	if err := shared.client.Get(t.Context(), client.ObjectKeyFromObject(inside), inside); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace's content should be deleted, got: %v", err)
	}
}

func TestClusterRolesAreAggregated(t *testing.T) {
	t.Parallel()
	rules := []rbacv1.PolicyRule{{APIGroups: []string{"example.com"}, Resources: []string{"things"}, Verbs: []string{"get"}}}
	create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "part", Labels: map[string]string{"example.com/aggregate": "true"}}, Rules: rules})
	create(t, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "whole"},
		AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
			{MatchLabels: map[string]string{"example.com/aggregate": "true"}},
		}},
	})
	watcher, err := shared.client.Watch(t.Context(), &rbacv1.ClusterRoleList{}, client.MatchingFields{"metadata.name": "whole"})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	deadline := time.After(timeout)
	for {
		select {
		case event := <-watcher.ResultChan():
			if cmp.Equal(event.Object.(*rbacv1.ClusterRole).Rules, rules) {
				return
			}
		case <-deadline:
			t.Fatal("the aggregated ClusterRole did not get its rules")
		}
	}
}

func TestServiceAccountsAreRestrictedByRBAC(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "someone"}})
	token, err := shared.kubernetes.CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), "someone", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	review, err := shared.kubernetes.AuthenticationV1().TokenReviews().Create(t.Context(),
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token.Status.Token}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	user := "system:serviceaccount:" + ns + ":someone"
	if !review.Status.Authenticated || review.Status.User.Username != user {
		t.Errorf("the token should be %s's, got %+v", user, review.Status)
	}
	allowed, err := shared.kubernetes.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: ns, Verb: "list", Resource: "secrets"},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if allowed.Status.Allowed {
		t.Error("a ServiceAccount without a role may list Secrets")
	}
}

func TestServerSideApplyKeepsOwners(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	apply := func(owner, value string) error {
		_, err := shared.kubernetes.CoreV1().ConfigMaps(ns).Apply(t.Context(),
			applycorev1.ConfigMap("shared", ns).WithData(map[string]string{"k": value}), metav1.ApplyOptions{FieldManager: owner})
		return err
	}
	if err := apply("one", "a"); err != nil {
		t.Fatal(err)
	}
	if err := apply("two", "b"); !apierrors.IsConflict(err) {
		t.Errorf("a second owner's other value is a conflict, got: %v", err)
	}
}

func TestOnlyTheAPIServerListensOnAPort(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc, which only Linux has")
	}
	mine := map[string]bool{}
	descriptors, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, descriptor := range descriptors {
		if target, err := os.Readlink(descriptor); err == nil && strings.HasPrefix(target, "socket:[") {
			mine[strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")] = true
		}
	}
	var listening []string
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		content, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			// Columns: local address in hexadecimal, remote address, state (0A: listening), ..., inode.
			if columns := strings.Fields(line); columns[3] == "0A" && mine[columns[9]] {
				listening = append(listening, columns[1])
			}
		}
	}
	_, port, err := net.SplitHostPort(strings.TrimPrefix(shared.control.Server, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{fmt.Sprintf("0100007F:%04X", number)}, listening); diff != "" {
		t.Errorf("listening TCP sockets of the process (-want +got):\n%s", diff)
	}
}

// Quotas of namespaces also limit the number of objects of custom resources.
func TestQuota(t *testing.T) {
	t.Parallel()
	gvk := testKind(t, "quota.example.com")
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "limited"}}
	create(t, ns)
	limit := resource.MustParse("1")
	counted := corev1.ResourceName("count/things.quota.example.com")
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "things"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{counted: limit}},
	}
	create(t, quota)
	thing := func(name string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(gvk)
		o.SetNamespace(ns.Name)
		o.SetName(name)
		return o
	}
	// Until the quota is counted for the first time, the API server lets nothing in.
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		err := shared.client.Create(ctx, thing("first"))
		return err == nil, client.IgnoreAlreadyExists(ignoreForbidden(err))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := shared.client.Create(t.Context(), thing("second")); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota") {
		t.Errorf("a second one should exceed the quota: %v", err)
	}
}

// Quotas of what a Service has, such as node ports, are free again when it is changed.
func TestQuotaOfServices(t *testing.T) {
	t.Parallel()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ports"}}
	create(t, ns)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "ports"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			corev1.ResourceServicesNodePorts: resource.MustParse("1"), corev1.ResourceConfigMaps: resource.MustParse("9"),
		}},
	}
	create(t, quota)
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "s"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 443}}},
	}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		err := shared.client.Create(ctx, service)
		return err == nil, ignoreForbidden(err)
	})
	if err != nil {
		t.Fatal(err)
	}
	used := func(want string) {
		t.Helper()
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
			err := shared.client.Get(ctx, client.ObjectKeyFromObject(quota), quota)
			got := quota.Status.Used[corev1.ResourceServicesNodePorts]
			return got.String() == want, err
		})
		if err != nil {
			t.Fatalf("want %s used, got %v: %v", want, quota.Status.Used, err)
		}
	}
	used("1")
	if _, counted := quota.Status.Used[corev1.ResourceConfigMaps]; !counted {
		t.Errorf("ConfigMaps are not counted: %v", quota.Status.Used)
	}
	service.Spec.Type = corev1.ServiceTypeClusterIP
	service.Spec.Ports[0].NodePort = 0
	if err := shared.client.Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	used("0")
}

func ignoreForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// Requests are shared out by priority and fairness.
func TestFairness(t *testing.T) {
	t.Parallel()
	levels, err := shared.kubernetes.FlowcontrolV1().PriorityLevelConfigurations().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(levels.Items) == 0 {
		t.Errorf("there are %v, %v", levels, err)
	}
}
