package serving_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/sdk/manager/internal/serving"
	"sigs.k8s.io/cluster-api/sdk/manager/internal/webhookcert"
)

// replica starts a webhook server on a socket that answers with its name.
func replica(ctx context.Context, t *testing.T, socket, name string) <-chan error {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := serving.NewWebhooks(serving.WebhookOptions{
		Listener: listener, GetCertificate: webhookcert.NewMemory(clock.RealClock{}, "svc.ns.svc").GetCertificate,
	})
	server.Register("/answer", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) }))
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	return ended
}

// Connections to the first replica are in use when it stops, and new ones reach the second.
func TestClientsChangeReplicasWithoutFailures(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"h2", "http/1.1"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			sockets := []string{filepath.Join(folder, "first"), filepath.Join(folder, "second")}
			ctx, stopFirst := context.WithCancel(t.Context())
			first := replica(ctx, t, sockets[0], "first")
			ctx, stopSecond := context.WithCancel(t.Context())
			second := replica(ctx, t, sockets[1], "second")
			var endpoint atomic.Int32
			transport := &http.Transport{
				TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}},
				ForceAttemptHTTP2: protocol == "h2",
				DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
					return (&net.Dialer{}).DialContext(ctx, "unix", sockets[endpoint.Load()])
				},
			}
			var clients sync.WaitGroup
			changed := make(chan struct{})
			var warm sync.WaitGroup
			warm.Add(8)
			for range 8 {
				clients.Go(func() { callUntil(t, &http.Client{Transport: transport}, warm.Done, changed) })
			}
			warm.Wait()
			endpoint.Store(1)
			stopFirst()
			if err := <-first; err != nil {
				t.Errorf("stopping: %v", err)
			}
			close(changed)
			clients.Wait()
			transport.CloseIdleConnections()
			stopSecond()
			if err := <-second; err != nil {
				t.Errorf("stopping: %v", err)
			}
		})
	}
}

// callUntil sends requests until the channel is closed and the second replica answers. It calls warm after the first hundred.
func callUntil(t *testing.T, client *http.Client, warm func(), changed <-chan struct{}) {
	for n, last := 1, false; !last; n++ {
		select {
		case <-changed:
			last = true
		default:
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://svc.ns.svc/answer", http.NoBody)
		if err != nil {
			t.Error(err)
			return
		}
		response, err := client.Do(request)
		if err != nil {
			t.Errorf("request %d: %v", n, err)
			return
		}
		name, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			t.Errorf("response %d: %v", n, err)
			return
		}
		if n == 100 {
			warm()
		}
		if last && string(name) != "second" {
			t.Errorf("response %d is from the %s replica, which has stopped", n, name)
		}
	}
}
