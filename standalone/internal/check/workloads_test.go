package check

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// answers is a transport that answers, or fails, and counts requests.
type answers struct {
	status int
	err    error
	sent   int
}

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	a.sent++
	if a.err != nil {
		return nil, a.err
	}
	recorder := httptest.NewRecorder()
	recorder.WriteHeader(a.status)
	return recorder.Result(), nil
}

// Workload clusters are only read. What would have been written is noted, and whether their API servers have answered.
func TestWorkloads(t *testing.T) {
	t.Parallel()
	const a, b, etcd = "https://proxy/a", "https://proxy/ab", "/api/v1/namespaces/kube-system/pods/etcd-0/portforward"
	w := newWorkloads(false)
	w.add("ns/a", a)
	w.add("ns/b", b)
	ok, broken := &answers{status: http.StatusOK}, &answers{err: errors.New("unreachable")}
	send := func(next http.RoundTripper, method, url string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if response, err := w.wrap(next).RoundTrip(r); err == nil {
			_ = response.Body.Close()
		}
	}
	if diff := cmp.Diff([]string{"ns/a", "ns/b"}, w.unread()); diff != "" {
		t.Errorf("clusters that were never asked are unread (-want +got):\n%s", diff)
	}
	send(ok, http.MethodGet, a+"/api/v1/nodes")
	send(broken, http.MethodGet, b+"/api/v1/nodes")
	for range 2 {
		send(ok, http.MethodPatch, a+"/api/v1/nodes/n")
	}
	send(ok, http.MethodPatch, a+"/api/v1/nodes/n?dryRun=All")
	send(ok, http.MethodPost, a+"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
	send(ok, http.MethodGet, b+etcd)
	send(ok, http.MethodDelete, "https://stranger/api/v1/nodes/n")
	if ok.sent != 1 || broken.sent != 1 {
		t.Errorf("%d and %d requests were sent", ok.sent, broken.sent)
	}
	if diff := cmp.Diff([]string{"ns/b"}, w.unread()); diff != "" {
		t.Errorf("unread (-want +got):\n%s", diff)
	}
	want := []string{"https://stranger: DELETE /api/v1/nodes/n", "ns/a: PATCH /api/v1/nodes/n"}
	if diff := cmp.Diff(want, w.writes()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]bool{"ns/b": true}, w.etcd()); diff != "" {
		t.Errorf("clusters whose etcd was asked (-want +got):\n%s", diff)
	}
	if waiting := w.waiting(); len(waiting) > 0 {
		t.Errorf("no request is open, but %v", waiting)
	}

	disabled := newWorkloads(true)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a+"/api/v1/nodes", nil)
	if err != nil {
		t.Fatal(err)
	}
	if response, err := disabled.wrap(ok).RoundTrip(r); !errors.Is(err, errDisabled) {
		t.Errorf("without workload clusters, the answer is %v, %v", response, err)
	}
	if ok.sent != 1 {
		t.Error("a request was sent")
	}
}

func TestVerbs(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ method, url, want string }{
		{http.MethodGet, "/api/v1/namespaces", "list namespaces"},
		{http.MethodGet, "/api/v1/namespaces/ns", "get namespaces"},
		{http.MethodGet, "/apis/cluster.x-k8s.io/v1beta1/machines?watch=true", "watch machines.cluster.x-k8s.io"},
		{http.MethodPatch, "/apis/cluster.x-k8s.io/v1beta1/namespaces/ns/machines/m/status", "patch machines.cluster.x-k8s.io/status"},
		{http.MethodPost, "/api/v1/namespaces/ns/secrets", "create secrets"},
		{http.MethodGet, "/version", "get /version"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), tc.method, "https://server"+tc.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := verbOf(r); got != tc.want {
			t.Errorf("%s %s: %q, want %q", tc.method, tc.url, got, tc.want)
		}
	}
}
