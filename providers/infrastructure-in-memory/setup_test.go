package inmemory

import (
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/apiserver"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
)

func TestListeners(t *testing.T) {
	server := apiserver.New(apiserver.Options{})
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	group, err := cloud.New(cloud.Options{}).EnsureGroup(types.NamespacedName{Namespace: "n", Name: "c"}, "uid")
	if err != nil {
		t.Fatal(err)
	}
	endpoint, err := server.Open(group, "127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	listeners(server.Addresses).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), "GET", "/listeners", nil))
	want := `{"n/c":"https://` + endpoint.Address() + `"}` + "\n"
	if diff := cmp.Diff(want, answer.Body.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestDefaultsOfFlags checks that the debug server, which has no authentication, only listens on loopback by default.
func TestDefaultsOfFlags(t *testing.T) {
	f, set := &flags{}, pflag.NewFlagSet("", pflag.ContinueOnError)
	f.register(set)
	host, _, err := net.SplitHostPort(f.debugAddress)
	if err != nil || !net.ParseIP(host).IsLoopback() {
		t.Errorf("--debug-address is %q, %v", f.debugAddress, err)
	}
	if err := f.validate(); err != nil {
		t.Error(err)
	}
	if err := set.Set("api-server-ports", "1-65535"); err != nil {
		t.Fatal(err)
	}
	if err := f.validate(); err == nil || !strings.Contains(err.Error(), "--api-server-ports") {
		t.Errorf("validating privileged ports: %v", err)
	}
}
