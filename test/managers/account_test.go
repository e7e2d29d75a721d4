package managers

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// serve starts an API server until the test ends. Without bin/capi, it skips the test, except in CI.
func serve(t *testing.T, o Options) *Server {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(capi(root)); err != nil && os.Getenv("CI") == "" && os.Getenv("CAPI_REQUIRE_ENV") == "" {
		t.Skipf("bin/capi is required: run make bin/capi: %v", err)
	}
	o.Root, o.Dir = root, filepath.Join(t.TempDir(), "server")
	s, err := StartServer(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestManagersConnectAsTheirOwnAccounts(t *testing.T) {
	s := serve(t, Options{Accounts: true})
	c, err := s.Connection(t.Context(), Programs()[1])
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	who, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const want = "system:serviceaccount:capi-kubeadm-bootstrap-system:capi-kubeadm-bootstrap-manager"
	if got := who.Status.UserInfo.Username; got != want || c.User != want {
		t.Errorf("the user of the kubeconfig is %q, that of the connection %q, want %q", got, c.User, want)
	}
	if _, err := client.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("a granted request failed: %v", err)
	}
	if _, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a request that is not granted: %v, want Forbidden", err)
	}
}

func TestAdministratorsWithoutAccounts(t *testing.T) {
	s := &Server{Kubeconfig: "admin"}
	c, err := s.Connection(t.Context(), Programs()[0])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Connection{Kubeconfig: "admin"}, c); diff != "" {
		t.Error(diff)
	}
}

func TestExpandReturnsSingleGrants(t *testing.T) {
	got := map[string]bool{}
	for _, g := range expand("capi-system", rbacv1.PolicyRule{
		Verbs: []string{"get", "list"}, APIGroups: []string{"", "a.b"}, Resources: []string{"c", "c/status"}, ResourceNames: []string{"n"},
	}) {
		got[g.String()] = true
	}
	want := map[string]bool{}
	for _, verb := range []string{"get", "list"} {
		for _, resource := range []string{"c", "c/status", "c.a.b", "c.a.b/status"} {
			want[verb+" "+resource+" capi-system/n"] = true
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
