package script

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseRequest(t *testing.T) {
	tests := []struct {
		reason       string
		method, path string
		want         Request
		none         bool
	}{
		{reason: "a core object", method: "GET", path: "/api/v1/namespaces/n/secrets/s", want: Request{Verb: "get", Resource: "secrets", Namespace: "n", Name: "s"}},
		{reason: "a list of all namespaces", method: "GET", path: "/api/v1/secrets?limit=5", want: Request{Verb: "list", Resource: "secrets"}},
		{reason: "a watch", method: "GET", path: "/apis/cluster.x-k8s.io/v1beta1/machines?watch=true", want: Request{Verb: "watch", Resource: "machines"}},
		{reason: "a create", method: "POST", path: "/apis/cluster.x-k8s.io/v1beta1/namespaces/n/machines", want: Request{Verb: "create", Resource: "machines", Namespace: "n"}},
		{reason: "a subresource", method: "PATCH", path: "/apis/cluster.x-k8s.io/v1beta1/namespaces/n/machines/m/status", want: Request{Verb: "patch", Resource: "machines/status", Namespace: "n", Name: "m"}},
		{reason: "a namespace itself", method: "DELETE", path: "/api/v1/namespaces/n", want: Request{Verb: "delete", Resource: "namespaces", Name: "n"}},
		{reason: "a collection", method: "DELETE", path: "/api/v1/namespaces/n/pods", want: Request{Verb: "deletecollection", Resource: "pods", Namespace: "n"}},
		{reason: "a cluster-scoped object", method: "PUT", path: "/api/v1/nodes/w", want: Request{Verb: "update", Resource: "nodes", Name: "w"}},
		{reason: "a forwarded port, whatever the method", method: "POST", path: "/api/v1/namespaces/kube-system/pods/etcd-a/portforward", want: Request{Verb: "connect", Resource: "pods/portforward", Namespace: "kube-system", Name: "etcd-a"}},
		{reason: "no resource", method: "GET", path: "/version", none: true},
		{reason: "discovery", method: "GET", path: "/apis/apps/v1", none: true},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			got, ok := ParseRequest(httptest.NewRequest(test.method, "https://h"+test.path, http.NoBody))
			if ok == test.none {
				t.Fatalf("Parse returned %v", ok)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestKind(t *testing.T) {
	for _, k := range []Kind{
		{Manager: "m", Verb: "patch", Resource: "machines/status"},
		{Manager: "m", Workload: true, Verb: "create", Resource: "secrets"},
	} {
		again, err := ParseKind(k.String())
		if err != nil || again != k {
			t.Errorf("%s is parsed as %v, %v", k, again, err)
		}
		if !k.Selects(k) || !(Kind{Workload: k.Workload}).Selects(k) {
			t.Errorf("%s is not selected by itself, or not by a kind with empty fields", k)
		}
		if (Kind{Workload: !k.Workload}).Selects(k) || (Kind{Workload: k.Workload, Verb: "delete"}).Selects(k) {
			t.Errorf("%s is selected by another cluster or verb", k)
		}
	}
	if _, err := ParseKind("a:b"); err == nil {
		t.Error("an incomplete kind is parsed")
	}
}
