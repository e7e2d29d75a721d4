package manager

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"

	"sigs.k8s.io/cluster-api/sdk/feature"
)

func TestLimits(t *testing.T) {
	type limits struct {
		QPS   float32
		Burst int
	}
	tests := map[string]struct {
		reason string
		host   limits
		args   []string
		want   limits
	}{
		"defaults": {
			reason: "the documented defaults",
			want:   limits{100, 200},
		},
		"flags": {
			reason: "flags decide",
			args:   []string{"--kube-api-qps=300", "--kube-api-burst=400"},
			want:   limits{300, 400},
		},
		"host": {
			reason: "a host that shares an API server with its components knows better than defaults",
			host:   limits{-1, 1},
			want:   limits{-1, 1},
		},
		"host and flags": {
			reason: "but what a user asked for explicitly is done",
			host:   limits{-1, 1},
			args:   []string{"--kube-api-qps=20", "--kube-api-burst=30"},
			want:   limits{20, 30},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := testComponent()
			o, _, err := parse(c, tt.args)
			if err != nil {
				t.Fatal(err)
			}
			given := &rest.Config{Host: "https://example.com", QPS: tt.host.QPS, Burst: tt.host.Burst}
			config, err := connection(c, o, Host{Config: given})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, limits{config.QPS, config.Burst}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			if !strings.HasPrefix(config.UserAgent, "test-controller/v") {
				t.Errorf("user agent %q does not name the component", config.UserAgent)
			}
			if given.UserAgent != "" {
				t.Error("the host's configuration was changed")
			}
		})
	}
}

func TestNoConnection(t *testing.T) {
	if _, inCluster := os.LookupEnv("KUBERNETES_SERVICE_HOST"); inCluster {
		t.Skip("this test runs in a pod, so there is an API server to connect to")
	}
	_, err := connection(testComponent(), documented(nil), Host{})
	if err == nil || !strings.Contains(err.Error(), "--kubeconfig is required") {
		t.Errorf("outside of a cluster, the error must contain what is missing, got: %v", err)
	}
}

func TestDetectNamespace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "namespace")
	if err := os.WriteFile(file, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(value string) func(string) string {
		return func(name string) string { return map[string]string{"POD_NAMESPACE": value}[name] }
	}
	tests := map[string]struct {
		reason string
		host   Host
		file   string
		want   string
		found  bool
	}{
		"host":        {"the host decides", Host{Namespace: "from-host", Getenv: env("from-env")}, file, "from-host", true},
		"environment": {"then the environment", Host{Getenv: env("from-env")}, file, "from-env", true},
		"file":        {"then the pod's service account", Host{Getenv: env("")}, file, "from-file", true},
		"nowhere":     {"no pod, no namespace", Host{Getenv: env("")}, file + "-missing", "", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, found, err := detectNamespace(tt.host, tt.file)
			if err != nil || got != tt.want || found != tt.found {
				t.Errorf("%s: got %q, %t, %v", tt.reason, got, found, err)
			}
		})
	}
}

func TestKubernetesVersion(t *testing.T) {
	tests := map[string]struct {
		reason string
		status int
		body   string
		want   string
		err    string
	}{
		"release":  {reason: "a release", status: 200, body: `{"gitVersion":"v1.36.3"}`, want: "1.36.3"},
		"vendor":   {reason: "vendors append to the version", status: 200, body: `{"gitVersion":"v1.28.9-gke.100"}`, want: "1.28.9"},
		"nonsense": {reason: "what cannot be read is reported", status: 200, body: `{"gitVersion":"latest"}`, err: "reading the version of the API server"},
		"refused":  {reason: "an error response is reported", status: 403, body: `{}`, err: "requesting the version of the API server at http"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				_, _ = w.Write([]byte(tt.body))
			}))
			defer server.Close()
			got, err := kubernetesVersion(t.Context(), &rest.Config{Host: server.URL})
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%s: got error %v, want one with %q", tt.reason, err, tt.err)
				}
				return
			}
			if err != nil || got.String() != tt.want {
				t.Errorf("%s: got %v, %v", tt.reason, got, err)
			}
		})
	}
}

func TestCheckKubernetesVersion(t *testing.T) {
	tests := map[string]struct {
		reason  string
		version string
		used    []feature.Feature
		gates   string
		wantErr string
	}{
		"lowest":            {reason: "the lowest supported version", version: "v1.20.0"},
		"too old":           {reason: "one below it", version: "v1.19.16", wantErr: "runs Kubernetes v1.19.16: upgrade it to v1.20.0 or later"},
		"topology":          {reason: "topology needs more", version: "v1.21.14", used: []feature.Feature{feature.ClusterTopology}, gates: "ClusterTopology=true", wantErr: "upgrade it to v1.22.0 or later, or turn feature gate ClusterTopology off"},
		"topology, lowest":  {reason: "the lowest for topology", version: "v1.22.0", used: []feature.Feature{feature.ClusterTopology}, gates: "ClusterTopology=true"},
		"topology off":      {reason: "without ClusterTopology, older versions are supported", version: "v1.21.14", used: []feature.Feature{feature.ClusterTopology}},
		"topology not ours": {reason: "so they are for a component that does not support the gate", version: "v1.21.14", gates: "ClusterTopology=true"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			gates := feature.New(tt.used...)
			if err := gates.Set(tt.gates); err != nil {
				t.Fatal(err)
			}
			err := checkKubernetesVersion(utilversion.MustParseGeneric(tt.version), gates)
			if (err == nil) != (tt.wantErr == "") || err != nil && !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("%s: got error %v, want %q", tt.reason, err, tt.wantErr)
			}
		})
	}
}
