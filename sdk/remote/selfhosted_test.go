package remote

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/sdk/pki"
)

// unreachable is an address at which nothing listens, of the host that the certificates of api are for.
const unreachable = "https://127.0.0.1:1"

// TestSelfHosted connects to clusters whose kubeconfig has an unreachable address. Only the management cluster itself is reached at
// another one: that of the manager's connection, with the credentials of the kubeconfig.
func TestSelfHosted(t *testing.T) {
	management, other := newAPI(t, serving), newAPI(t, serving)
	twin := newAPIOf(t, management.ca, serving)
	encoded, err := management.ca.PEM()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, encoded.Certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	own := &rest.Config{Host: management.URL, BearerToken: "of the manager", TLSClientConfig: rest.TLSClientConfig{CAFile: file}}
	tests := []struct {
		reason     string
		management *rest.Config
		ca         *pki.CA
		server     string
		want       string
	}{
		{"the management cluster is reached at the manager's address of it", own, management.ca, unreachable, management.URL},
		{"a name that its certificate does not have is another server", own, management.ca, "https://workload.example:1", "https://workload.example:1"},
		{"another CA is another cluster", own, other.ca, unreachable, unreachable},
		{"the address of the management cluster may be the same", own, management.ca, management.URL, management.URL},
		{"without a connection to compare with, the kubeconfig decides", nil, management.ca, unreachable, unreachable},
		{"if the management cluster does not respond, the kubeconfig decides", &rest.Config{Host: unreachable, TLSClientConfig: own.TLSClientConfig}, management.ca, twin.URL, twin.URL},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			kubeconfig, err := pki.NewKubeconfig("blue", tt.server, tt.ca, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			c, err := dial(t.Context(), kubeconfig, New(Options{
				Scheme: clientgoscheme.Scheme, Clock: clock.RealClock{}, Policy: Policy{Loopback: true}, Management: tt.management,
			}).options)
			if err != nil {
				t.Fatal(err)
			}
			if c.Config.Host != tt.want || c.Config.BearerToken != "" || len(c.Config.CertData) == 0 {
				t.Errorf("it connects to %s, want %s, and with the credentials of the kubeconfig only", c.Config.Host, tt.want)
			}
		})
	}
}

// TestSelfHostedCluster reads from the management cluster as from any other, although the address in the kubeconfig is unreachable.
func TestSelfHostedCluster(t *testing.T) {
	management := newAPI(t, serving, node("n", "fake://1", "1"))
	w := newWorld(t)
	encoded, err := management.ca.PEM()
	if err != nil {
		t.Fatal(err)
	}
	o := w.clusters.options
	o.Policy, o.dial = Policy{}, nil // The manager's own address is allowed, whatever kubeconfigs may use.
	o.Management = &rest.Config{Host: management.URL, TLSClientConfig: rest.TLSClientConfig{CAData: encoded.Certificate}}
	w.clusters = New(o)
	t.Cleanup(w.clusters.stop)
	w.listen()
	kubeconfig, err := pki.NewKubeconfig(blue.Name, unreachable, management.ca, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	w.secret(blue, kubeconfig)
	found := &corev1.NodeList{}
	if err := w.connected(blue).List(t.Context(), found); err != nil || len(found.Items) != 1 {
		t.Errorf("Nodes %v, %v, want that of the management cluster", found.Items, err)
	}
}
