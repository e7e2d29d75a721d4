package wire_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/internal/extension/wire"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/test/extensiontest"
)

// write replaces the files of a client certificate by a new one, as kubelet replaces those of a Secret, and returns them.
func write(t *testing.T, ca *pki.CA, dir, name string) wire.CertificateFiles {
	t.Helper()
	pair, err := ca.Issue(pki.Request{CommonName: name, Validity: time.Hour}, time.Now())
	testenv.Must(t, err)
	files := wire.CertificateFiles{Certificate: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key")}
	for file, content := range map[string][]byte{files.Certificate: pair.Certificate, files.Key: pair.Key} {
		testenv.Must(t, os.WriteFile(file+".new", content, 0o600))
		testenv.Must(t, os.Rename(file+".new", file))
	}
	return files
}

// TestClientCertificate calls a server that requires a client certificate: without one, with one, and with another one in the same files.
func TestClientCertificate(t *testing.T) {
	ca, err := pki.NewCA(pki.ECDSA, time.Now())
	testenv.Must(t, err)
	trust, err := ca.PEM()
	testenv.Must(t, err)
	shown := make(chan string, 1)
	server := extensiontest.Serve(t, extensiontest.Options{ClientCAs: trust.Certificate}, func(w http.ResponseWriter, r *http.Request) {
		shown <- r.TLS.PeerCertificates[0].Subject.CommonName
		extensiontest.Answer(200, kindless)(w, r)
	})
	post := func(c *wire.Caller) error {
		return c.Post(t.Context(), endpoint(t, server.Config()), beforeCreate(time.Minute),
			&runtimehooksv1.BeforeClusterCreateRequest{}, &runtimehooksv1.BeforeClusterCreateResponse{})
	}
	without, _ := caller(nil)
	if err := post(without); err == nil {
		t.Error("the server was called without a client certificate")
	}
	dir := t.TempDir()
	options := wire.Options{UserAgent: "test", Metrics: prometheus.NewRegistry(), Clock: clock.RealClock{}}
	with, watcher, err := wire.NewCallerWithCertificate(options, write(t, ca, dir, "first"))
	testenv.Must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- watcher.Start(ctx) }()
	t.Cleanup(func() { stop(); <-stopped })
	testenv.Must(t, post(with))
	if diff := cmp.Diff("first", <-shown); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	write(t, ca, dir, "second")
	// The files are watched: calls show the first certificate until the change was noticed.
	for got := ""; got != "second"; got = <-shown {
		testenv.Must(t, t.Context().Err())
		testenv.Must(t, post(with))
	}
}

func TestInvalidClientCertificate(t *testing.T) {
	_, _, err := wire.NewCallerWithCertificate(wire.Options{Metrics: prometheus.NewRegistry()}, wire.CertificateFiles{Certificate: "/none", Key: "/none"})
	if err == nil || !strings.HasPrefix(err.Error(), "reading the client certificate for runtime extensions from /none and /none: ") {
		t.Errorf("got %v", err)
	}
}
