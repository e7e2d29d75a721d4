package proxy

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"sigs.k8s.io/cluster-api/test/fault/script"
)

// upstream is an API server that counts requests.
type upstream struct {
	*httptest.Server
	reached atomic.Int32
	accept  atomic.Value
}

const body = `{"kind":"Machine","metadata":{"name":"a","namespace":"n"}}`

func newUpstream(t *testing.T) *upstream {
	u := &upstream{}
	u.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.reached.Add(1)
		u.accept.Store(r.Header.Get("Accept"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(u.Close)
	return u
}

// manager is a fake of the proxied manager.
type manager struct {
	*http.Client
	url           string
	kills, starts atomic.Int32
	proxy         *Proxy
}

func newManager(t *testing.T, u *upstream, faults ...script.Fault) *manager {
	t.Helper()
	scripts := &script.Set{}
	s := script.New("n", faults...)
	scripts.Activate(s)
	s.Arm()
	m := &manager{}
	p, err := New(Options{
		Manager: "m", Scripts: scripts,
		Upstream: &rest.Config{Host: u.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}},
		Replace: func(between func()) error {
			m.kills.Add(1)
			between()
			m.starts.Add(1)
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := p.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	m.url, m.proxy = config.Host, p
	if m.Client, err = rest.HTTPClientFor(config); err != nil {
		t.Fatal(err)
	}
	return m
}

// patch sends one write.
func (m *manager) patch(ctx context.Context) (code int, answer string, err error) {
	return m.send(ctx, strings.NewReader("{}"))
}

func (m *manager) send(ctx context.Context, body io.Reader) (code int, answer string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, m.url+"/apis/cluster.x-k8s.io/v1beta1/namespaces/n/machines/a", body)
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Accept", "application/vnd.kubernetes.protobuf;as=Table, application/json")
	response, err := m.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	return response.StatusCode, string(raw), err
}

func TestRequestFaults(t *testing.T) {
	tests := []struct {
		do      script.Action
		reason  string
		reaches int32
		code    int
		killed  int32
	}{
		{do: script.KillAfter, reason: "written, and the manager is killed", reaches: 1, killed: 1},
		{do: script.KillBefore, reason: "not written, and the manager is killed", killed: 1},
		{do: script.LoseAnswer, reason: "written, but the response is lost", reaches: 1},
		{do: script.TimeOut, reason: "written, but the response is a timeout", reaches: 1, code: 504},
		{do: script.Fail500, reason: "written, but the response is an error", reaches: 1, code: 500},
		{do: script.Conflict, reason: "written, but the response is a conflict", reaches: 1, code: 409},
		{do: script.TooMany, reason: "written, but the response is too many requests", reaches: 1, code: 429},
		{do: script.Reject, reason: "rejected, and not written", code: 500},
		{do: script.Refuse, reason: "the connection breaks, and not written"},
		{do: script.BlackHole, reason: "no response, and not written"},
		{do: script.Stall, reason: "written, but the response is incomplete", reaches: 1},
	}
	for _, test := range tests {
		t.Run(string(test.do)+" "+test.reason, func(t *testing.T) {
			u := newUpstream(t)
			m := newManager(t, u, script.Fault{When: script.Kind{Manager: "m", Verb: "patch", Resource: "machines"}, Nth: 1, Do: test.do, For: time.Millisecond})
			code, answer, err := m.patch(t.Context())
			if test.code != 0 && err != nil || test.code == 0 && err == nil {
				t.Fatalf("status %d, error %v", code, err)
			}
			if test.code != 0 && code != test.code {
				t.Errorf("status %d, want %d: %s", code, test.code, answer)
			}
			if n := u.reached.Load(); n != test.reaches {
				t.Errorf("the API server got %d requests, want %d", n, test.reaches)
			}
			if m.kills.Load() != test.killed || m.starts.Load() != test.killed {
				t.Errorf("%d kills and %d starts, want %d", m.kills.Load(), m.starts.Load(), test.killed)
			}
			if code, answer, err := m.patch(t.Context()); err != nil || code != 200 || answer != body {
				t.Errorf("next request: status %d, %q, %v", code, answer, err)
			}
			if accept := u.accept.Load(); accept != "application/json;as=Table, application/json" {
				t.Errorf("the Accept header is %q", accept)
			}
		})
	}
}

// halting is a request body whose second half is sent by a manager that is not suspended.
type halting struct {
	suspended, resumed chan struct{}
	end                <-chan struct{}
	sent               int
}

func (h *halting) Read(p []byte) (int, error) {
	h.sent++
	switch h.sent {
	case 1:
		return copy(p, "{"), nil
	case 2:
		select {
		case <-h.suspended:
			select {
			case <-h.resumed:
			case <-h.end:
			}
		case <-time.After(100 * time.Millisecond): // Time to suspend it too early.
		}
		return copy(p, "}"), nil
	}
	return 0, io.EOF
}

func TestSuspendedManagerSendsNothing(t *testing.T) {
	u := newUpstream(t)
	m := newManager(t, u, script.Fault{When: script.Kind{Manager: "m", Verb: "patch", Resource: "machines"}, Nth: 1, Do: script.Suspend, For: time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	sent := &halting{suspended: make(chan struct{}), resumed: make(chan struct{}), end: ctx.Done()}
	m.proxy.options.Suspend = func() error { close(sent.suspended); return nil }
	m.proxy.options.Resume = func() error { close(sent.resumed); return nil }
	if code, answer, err := m.send(ctx, sent); err != nil || code != http.StatusOK || answer != body {
		t.Errorf("the request of a suspended manager: status %d, %q, %v", code, answer, err)
	}
	select {
	case <-sent.resumed:
	case <-ctx.Done():
		t.Error("the manager did not resume")
	}
}
