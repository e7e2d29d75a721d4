package journey

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestTenant works with a shared class as users who have Kubernetes' roles in their namespace, and nothing else.
func TestTenant(t *testing.T) {
	t.Parallel()
	w, platform := shared.World(t), shared.World(t)
	class := platform.Class(w.Tools.ProjectTemplate())
	editor, viewer := w.member("edit", "clusters"), w.member("view", "")
	file := filepath.Join(t.TempDir(), "web.yaml")
	testenv.Must(t, os.WriteFile(file, fmt.Appendf(nil, tenantCluster, class, platform.Namespace, 1), 0o600))

	r := editor.must("create", "cluster", "web", "--from", file)
	if !strings.Contains(r.Err+r.Out, "is ready") {
		t.Errorf("the tenant does not see that the cluster is ready: %s", r)
	}
	editor.must("wait", "cluster", "web")
	for _, user := range []*member{editor, viewer} {
		for _, args := range [][]string{{"get", "clusters"}, {"describe", "cluster", "web"}, {"explain", "web"}} {
			if r := user.must(args...); !strings.Contains(r.Out, "web") {
				t.Errorf("%s", r)
			}
		}
	}
	editor.must("get", "kubeconfig", "web")
	editor.must("rollout", "restart", "kubeadmcontrolplane/"+w.controlPlane("web"))
	editor.must("wait", "cluster", "web")

	viewer.forbidden("secrets", "get", "kubeconfig", "web")
	viewer.forbidden("clusters", "delete", "cluster", "web")
	for _, user := range []*member{editor, viewer} {
		user.forbidden("clusters", "get", "clusters", "-A")
		user.forbidden("", "get", "clusters", "-n", platform.Namespace)
		user.mayNot("create", "infrastructure.cluster.x-k8s.io", "inmemorymachinetemplates", w.Namespace)
		user.mayNot("get", "", "secrets", platform.Namespace)
		user.mayNot("get", "cluster.x-k8s.io", "clusterclasses", platform.Namespace)
	}
	w.plansAsAdministrators(editor, platform, class)
	editor.must("delete", "cluster", "web")
	for _, left := range w.Inventory() {
		if !strings.HasPrefix(left, "rolebindings/") && left != "serviceaccounts/default" {
			t.Errorf("%s is left", left)
		}
	}
}

// TestTenantWithItsOwnClass creates a Cluster and its class as the administrator of a namespace, who may not list providers.
func TestTenantWithItsOwnClass(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	admin := w.member("admin", "clusterclasses")
	r := admin.must("create", "cluster", "own", "--infrastructure", inMemory, "--kubernetes-version", "v1.31.2")
	if note := "Using the latest version of in-memory, because you may not list the installed providers"; strings.Count(r.Err, note) != 1 {
		t.Errorf("there is no note about the version: %s", r)
	}
	admin.must("delete", "cluster", "own")
	if r := admin.run("create", "cluster", "own", "--kubernetes-version", "v1.31.2"); !r.Failed || !strings.Contains(r.Err, "--infrastructure") {
		t.Errorf("%s", r)
	}
}

// tenantCluster is a Cluster of a class in another namespace. Its workers are the last argument.
const tenantCluster = `apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: web}
spec:
  topology:
    classRef: {name: %s, namespace: %s}
    version: v1.31.2
    controlPlane: {replicas: 1}
    workers:
      machineDeployments: [{class: default-worker, name: md-0, replicas: %d}]
`

// plansAsAdministrators compares the plan of a tenant who may read the class, but no definitions, with that of an administrator.
func (w *World) plansAsAdministrators(tenant *member, platform *World, class string) {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "more.yaml")
	testenv.Must(w.t, os.WriteFile(file, fmt.Appendf(nil, tenantCluster, class, platform.Namespace, 2), 0o600))
	tenant.forbidden("the ClusterRole view", "plan", "-f", file)
	platform.Applied(bound("view", tenant.name))
	tenant.allowed("get", "cluster.x-k8s.io", "clusterclasses", platform.Namespace)
	r := tenant.must("plan", "-f", file)
	if strings.Count(r.Err, "You may not read CustomResourceDefinitions") != 1 {
		w.t.Errorf("there is no note about definitions: %s", r)
	}
	want := w.Tools.Clusterctl(w.t.Context(), "", "plan", "-f", file, "-n", w.Namespace, "--kubeconfig", w.Kubeconfig)
	if diff := cmp.Diff(want.Out, r.Out); diff != "" || want.Failed || !strings.Contains(r.Out, "md-0") {
		w.t.Errorf("plans (-administrator +tenant):\n%s\n%s", diff, want)
	}
}

// controlPlane returns the name of a Cluster's control plane.
func (w *World) controlPlane(cluster string) string {
	w.t.Helper()
	c := &clusterv1.Cluster{}
	testenv.Must(w.t, w.Client.Get(w.t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: cluster}, c))
	return c.Spec.ControlPlaneRef.Name
}

// member is a user with one role in a namespace.
type member struct {
	w                *World
	name, kubeconfig string
}

// bound returns a RoleBinding of a ClusterRole to a user.
func bound(role, user string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}
}

// member returns a user with a ClusterRole in the namespace, when the permissions are effective; creates is what the role may create.
func (w *World) member(role, creates string) *member {
	w.t.Helper()
	m := &member{w: w, name: role + "-" + w.Namespace, kubeconfig: filepath.Join(w.t.TempDir(), role+".kubeconfig")}
	w.Applied(bound(role, m.name))
	config, err := clientcmd.LoadFromFile(w.Kubeconfig)
	testenv.Must(w.t, err)
	current := config.Contexts[config.CurrentContext]
	current.Namespace = w.Namespace
	config.AuthInfos[current.AuthInfo].Impersonate = m.name
	testenv.Must(w.t, clientcmd.WriteToFile(*config, m.kubeconfig))
	m.allowed("list", "cluster.x-k8s.io", "machines", w.Namespace)
	if creates != "" {
		m.allowed("create", "cluster.x-k8s.io", creates, w.Namespace)
	}
	return m
}

func (m *member) may(ctx context.Context, verb, group, resource, namespace string) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: m.name, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: group, Resource: resource, Namespace: namespace,
		},
	}}
	err := m.w.Client.Create(ctx, review)
	return review.Status.Allowed, err
}

// allowed waits until the user has a permission: the API server reads roles from a cache.
func (m *member) allowed(verb, group, resource, namespace string) {
	m.w.t.Helper()
	err := wait.PollUntilContextTimeout(m.w.t.Context(), 20*time.Millisecond, conditionTimeout, true, func(ctx context.Context) (bool, error) {
		return m.may(ctx, verb, group, resource, namespace)
	})
	if err != nil {
		m.w.t.Fatalf("%s may not %s %s in %s: %v", m.name, verb, resource, namespace, err)
	}
}

func (m *member) mayNot(verb, group, resource, namespace string) {
	m.w.t.Helper()
	if may, err := m.may(m.w.t.Context(), verb, group, resource, namespace); may || err != nil {
		m.w.t.Errorf("%s may %s %s in %s (%v)", m.name, verb, resource, namespace, err)
	}
}

func (m *member) run(args ...string) Result {
	return m.w.Tools.Clusterctl(m.w.t.Context(), "", append(args, "--kubeconfig", m.kubeconfig)...)
}

func (m *member) must(args ...string) Result {
	m.w.t.Helper()
	r := m.run(args...)
	if r.Failed {
		m.w.t.Fatalf("as %s: %s", m.name, r)
	}
	return r
}

// forbidden runs a command that fails for a permission, and says which.
func (m *member) forbidden(what string, args ...string) {
	m.w.t.Helper()
	if r := m.run(args...); !r.Failed || !strings.Contains(r.Err, "forbidden") || !strings.Contains(r.Err, what) {
		m.w.t.Errorf("as %s, without permission for %q: %s", m.name, what, r)
	}
}
