package serving_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/sdk/manager/internal/serving"
	"sigs.k8s.io/cluster-api/sdk/manager/internal/webhookcert"
)

// started is a webhook server on a unix socket, and a way to call it. It is stopped when the test ends.
func started(t *testing.T, o serving.WebhookOptions) (*serving.Webhooks, func(*tls.Config) *http.Client) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "webhook.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	o.Listener = listener
	server := serving.NewWebhooks(o)
	server.Register("/answer", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.Proto)
	}))
	if err := server.StartedChecker()(nil); err == nil {
		t.Error("a server that was not started looks healthy")
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- server.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Errorf("stopping: %v", err)
		}
	})
	return server, func(config *tls.Config) *http.Client {
		transport := &http.Transport{
			TLSClientConfig:   config,
			ForceAttemptHTTP2: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", socket)
			},
		}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport}
	}
}

func TestWebhooksOnAnyListener(t *testing.T) {
	certificates := webhookcert.NewMemory(clock.RealClock{}, "capi-webhook-service.capi-system.svc")
	server, client := started(t, serving.WebhookOptions{
		GetCertificate: certificates.GetCertificate,
		MinVersion:     tls.VersionTLS12,
	})
	leaf, err := certificates.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf.Leaf)
	response, err := client(&tls.Config{RootCAs: roots}).Get("https://capi-webhook-service.capi-system.svc/answer")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "HTTP/2.0" {
		t.Errorf("API servers are answered over HTTP/2, got %q, %v", body, err)
	}
	if err := server.StartedChecker()(nil); err != nil {
		t.Errorf("a server that answers looks unhealthy: %v", err)
	}
}

func TestWebhooksTLS(t *testing.T) {
	certificates := webhookcert.NewMemory(clock.RealClock{}, "svc.ns.svc")
	tests := map[string]struct {
		reason  string
		server  serving.WebhookOptions
		client  *tls.Config
		wantErr string
	}{
		"version too low": {
			reason:  "the minimum version is enforced",
			server:  serving.WebhookOptions{MinVersion: tls.VersionTLS13},
			client:  &tls.Config{MaxVersion: tls.VersionTLS12},
			wantErr: "protocol version not supported",
		},
		"no common cipher suite": {
			reason:  "only the given cipher suites are offered",
			server:  serving.WebhookOptions{CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}},
			client:  &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384}},
			wantErr: "handshake failure",
		},
		"only HTTP/1.1": {
			reason: "a client without HTTP/2 is served as well",
			client: &tls.Config{NextProtos: []string{"http/1.1"}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.server.GetCertificate = certificates.GetCertificate
			_, client := started(t, tt.server)
			tt.client.InsecureSkipVerify = true
			response, err := client(tt.client).Get("https://svc.ns.svc/answer")
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("%s: got %v, want an error with %q", tt.reason, err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tt.reason, err)
			}
			response.Body.Close()
		})
	}
}
