package apiserver

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/apiserver/access"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// fuzzedGroup returns a workload cluster with some objects.
func fuzzedGroup(t testing.TB) *cloud.Group {
	t.Helper()
	simulated := cloud.New(cloud.Options{Limit: 1 << 20})
	t.Cleanup(func() { _ = simulated.Close() })
	group, err := simulated.EnsureGroup(types.NamespacedName{Namespace: "default", Name: "fuzzed"}, "uid")
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	maps := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", Labels: map[string]string{"app": "x"}},
		Data: map[string]string{"k": "v"}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "t", Effect: corev1.TaintEffectNoSchedule}}}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"},
		Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	_, errNamespace := store.Ensure(group, namespace)
	_, errMap := store.Ensure(group, maps)
	_, errNode := store.Ensure(group, node)
	_, errPod := store.Ensure(group, pod)
	for _, err := range []error{errNamespace, errMap, errNode, errPod} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return group
}

// FuzzRequest checks that no request causes a panic or an internal error, that responses are JSON or YAML, that rejected
// requests and dry runs change nothing, and that objects keep their keys and UIDs.
func FuzzRequest(f *testing.F) {
	const maps, one = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/configmaps/a"
	const nodes, pods = "/api/v1/nodes/n", "/api/v1/namespaces/default/pods/p"
	for _, seed := range []struct{ method, path, query, contentType, body string }{
		{"GET", one, "", "", ""}, {"GET", maps, "labelSelector=app+in+(x,y),!z&fieldSelector=metadata.name%3Da&limit=1", "", ""},
		{"GET", maps, "continue=e30&limit=2", "", ""}, {"GET", maps, "resourceVersion=5&resourceVersionMatch=Exact", "", ""},
		{"GET", "/api/v1/pods", "fieldSelector=spec.nodeName!=n", "", ""},
		{"POST", maps, "", "application/json", `{"metadata":{"name":"b"},"data":{"é":"x"}}`},
		{"POST", maps, "dryRun=All", "application/yaml", "metadata: {generateName: x-}\nbinaryData: {a: eA==}\n"},
		{"POST", maps, "fieldValidation=Strict", "", `{"x":1,"x":2}`},
		{"POST", maps, "", "application/vnd.kubernetes.protobuf", "k8s\x00\n\x0f\n\x02v1\x12\tConfigMap"},
		{"PUT", one, "", "application/json",
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default"},"data":null}`},
		{"PUT", one, "", "", `{"metadata":{"name":"other","uid":"x","resourceVersion":"999"}}`},
		{"PUT", nodes + "/status", "", "", `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`},
		{"PATCH", one, "", "application/json-patch+json", `[{"op":"replace","path":"/metadata/name","value":"z"}]`},
		{"PATCH", one, "", "application/json-patch+json", `[{"op":"remove","path":""},{"op":"copy","from":"/data","path":"/data/x"}]`},
		{"PATCH", one, "", "application/merge-patch+json", `{"metadata":{"labels":null,"uid":"x"},"data":{"k":null}}`},
		{"PATCH", one, "", "application/merge-patch+json", `null`},
		{"PATCH", nodes, "", "application/strategic-merge-patch+json",
			`{"spec":{"taints":[{"$patch":"delete","effect":"NoSchedule","key":"t"}],"$setElementOrder/taints":[{"key":"t"}]}}`},
		{"PATCH", pods, "", "application/strategic-merge-patch+json",
			`{"spec":{"containers":[{"name":"c","$retainKeys":["name"]}],"$patch":"replace"}}`},
		{"PATCH", pods, "", "application/strategic-merge-patch+json",
			`{"metadata":{"$deleteFromPrimitiveList/finalizers":["x"],"finalizers":[1]}}`},
		{"PATCH", nodes, "", "application/strategic-merge-patch+json", `{"spec":{"taints":"x"}}`},
		{"PATCH", pods, "", "application/strategic-merge-patch+json", `{"spec":{"containers":[{"image":"x"}]}}`},
		{"PATCH", one, "fieldManager=m&force=true", "application/apply-patch+yaml", "apiVersion: v1\nkind: ConfigMap\ndata: {k: w}\n"},
		{"PATCH", "/api/v1/namespaces/default/configmaps/new", "fieldManager=m", "application/apply-patch+yaml",
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {managedFields: []}\n"}, {"PATCH", one, "", "application/apply-patch+yaml", "{}"},
		{"PATCH", nodes, "fieldManager=m", "application/apply-patch+yaml",
			"apiVersion: v1\nkind: Node\nspec: {taints: [{key: a}, {key: a}]}\n"}, {"PATCH", one, "", "text/plain", "x"},
		{"PATCH", one, "", ";;", "x"}, {"DELETE", one, "propagationPolicy=Orphan&gracePeriodSeconds=-1", "", ""},
		{"DELETE", maps, "labelSelector=app", "application/json", `{"preconditions":{"uid":"x"}}`},
		{"DELETE", pods, "", "application/yaml", "gracePeriodSeconds: 30\ndryRun: [All]\n"},
		{"DELETE", "/api/v1/namespaces/default", "", "", ""},
		{"POST", pods + "/eviction", "", "", `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"}}`},
		{"GET", pods + "/log", "", "", ""}, {"HEAD", one, "", "", ""}, {"OPTIONS", one, "", "", ""}, {"POST", one, "", "", "{}"},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "", "",
			`{"spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}}`},
		{"POST", "/api/v1/namespaces/default/secrets", "", "", `{"stringData":{"a":"b"},"metadata":{"name":"s"},"type":"x"}`},
		{"POST", "/apis/apps/v1/namespaces/default/deployments", "", "", `{"metadata":{"name":"d"},"spec":{"replicas":-1}}`},
		{"PATCH", "/apis/apps/v1/namespaces/default/deployments/d/scale", "", "application/merge-patch+json", `{"spec":{"replicas":3}}`},
		{"GET", "/api/v1/namespaces/default/configmaps/a/b", "", "", ""}, {"GET", "/api/v1/namespaces/x/status", "", "", ""},
		{"GET", "/apis/apps/v1/x", "", "", ""}, {"POST", maps, "", "", `{"metadata":{"name":"é/..","namespace":"other"}}`},
		{"POST", maps, "", "", `{"metadata":{"generateName":"` + "x\u0000" + `"}}`},
	} {
		f.Add(seed.method, seed.path, seed.query, seed.contentType, "application/json", []byte(seed.body))
		f.Add(seed.method, seed.path, seed.query, seed.contentType, "application/json;as=Table;v=v1;g=meta.k8s.io,application/yaml",
			[]byte(seed.body))
	}
	server := New(Options{})
	f.Cleanup(func() { _ = server.Close() })
	f.Fuzz(func(t *testing.T, method, path, query, contentType, accept string, body []byte) {
		u, err := url.ParseRequestURI(path)
		if err != nil || len(body) > 32<<10 {
			t.Skip("no request")
		}
		u.RawQuery = query
		r := &http.Request{Method: method, URL: u, Header: http.Header{"Content-Type": {contentType}, "User-Agent": {"fuzz/1"}},
			Body: http.NoBody}
		r = r.WithContext(t.Context())
		if len(body) > 0 {
			r.Body = readCloser{bytes.NewReader(body)}
		}
		asked := server.catalog.parse(r)
		if asked == nil || asked.verb == "watch" || asked.subresource == "portforward" {
			t.Skip("not served, or a watch without end")
		}
		representation, err := negotiate(accept)
		if err != nil {
			t.Skip("no representation")
		}
		group, w := fuzzedGroup(t), httptest.NewRecorder()
		c := &call{request: asked, server: server, endpoint: &Endpoint{group: group, large: make(chan struct{}, maxLarge)}, group: group,
			user: &access.User{Name: "u", Groups: []string{access.Masters}}, w: w, r: r, accept: representation}
		before, uids := group.Revision(), identities(group)
		if err := c.serve(); err != nil {
			writeError(w, err)
		}
		checkAnswer(t, w, accept)
		if changed := group.Revision() != before; changed && asked.verb != "deletecollection" && (w.Code >= 400 || asked.dryRun()) {
			t.Errorf("status %d, dry run %t, but objects have changed", w.Code, asked.dryRun())
		}
		for key, uid := range identities(group) {
			if was, known := uids[key]; known && was != uid {
				t.Errorf("the UID of %v has changed", key)
			}
		}
	})
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

// identities returns the UIDs of all objects. It fails if the content of an object does not match its key.
func identities(g *cloud.Group) map[store.Key]types.UID {
	all := map[store.Key]types.UID{}
	for _, resource := range []string{"configmaps", "nodes", "pods", "namespaces", "secrets"} {
		stored, _ := g.List(store.Resource{Resource: resource}, "", store.Selector{})
		for _, o := range stored {
			u := o.Unstructured()
			all[o.Key] = u.GetUID()
			if u.GetName() != o.Key.Name || u.GetNamespace() != o.Key.Namespace {
				all[o.Key] = types.UID("is " + u.GetNamespace() + "/" + u.GetName())
			}
		}
	}
	return all
}

func checkAnswer(t *testing.T, w *httptest.ResponseRecorder, accept string) {
	t.Helper()
	if w.Code == http.StatusInternalServerError {
		t.Errorf("internal error: %s", w.Body)
	}
	if w.Code >= 400 {
		var status metav1.Status
		if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil || status.Status != metav1.StatusFailure ||
			int(status.Code) != w.Code || status.Message == "" {
			t.Errorf("status %d: %s, %v", w.Code, w.Body, err)
		}
		return
	}
	if w.Header().Get("Content-Type") == "application/json" && w.Body.Len() > 0 && !json.Valid(w.Body.Bytes()) {
		t.Errorf("Accept is %q, but the response is not JSON: %q", accept, w.Body)
	}
}
