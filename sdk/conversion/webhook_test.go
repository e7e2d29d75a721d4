package conversion

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// reviewOf returns the body of a request.
func reviewOf(desired string, objects ...string) []byte {
	review := apiextensionsv1.ConversionReview{Request: &apiextensionsv1.ConversionRequest{UID: "u", DesiredAPIVersion: desired}}
	review.SetGroupVersionKind(reviewKind())
	for _, object := range objects {
		review.Request.Objects = append(review.Request.Objects, runtime.RawExtension{Raw: []byte(object)})
	}
	body, err := json.Marshal(review)
	if err != nil {
		panic(err)
	}
	return body
}

// post sends a body to the webhook, and returns its response, if it has one.
func post(t *testing.T, handler http.Handler, body []byte) (*apiextensionsv1.ConversionResponse, int) {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, Path, bytes.NewReader(body))
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	if recorder.Code != http.StatusOK {
		return nil, recorder.Code
	}
	review := &apiextensionsv1.ConversionReview{}
	if err := json.Unmarshal(recorder.Body.Bytes(), review); err != nil {
		t.Fatalf("%v in %s", err, recorder.Body)
	}
	if review.GroupVersionKind() != reviewKind() || review.Response == nil || review.Response.UID != "u" || review.Request != nil {
		t.Errorf("the response is %s", recorder.Body)
	}
	return review.Response, recorder.Code
}

const (
	v1beta1 = "cluster.x-k8s.io/v1beta1"
	v1beta2 = "cluster.x-k8s.io/v1beta2"
	paused  = `{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Cluster","metadata":{"name":"c","uid":"u1","namespace":"ns"},"spec":{"paused":true}}`
)

func TestWebhook(t *testing.T) {
	handler := New(nil).Webhook()
	other := `{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"MachineSet","metadata":{"name":"m"},"spec":{"deletePolicy":"Oldest"}}`
	response, _ := post(t, handler, reviewOf(v1beta2, paused, other))
	if response.Result.Status != metav1.StatusSuccess || len(response.ConvertedObjects) != 2 {
		t.Fatalf("the response is %+v", response)
	}
	cluster, machineSet := &clusterv1.Cluster{}, &clusterv1.MachineSet{}
	for i, typed := range []any{cluster, machineSet} {
		if err := json.Unmarshal(response.ConvertedObjects[i].Raw, typed); err != nil {
			t.Fatal(err)
		}
	}
	if cluster.APIVersion != v1beta2 || cluster.UID != "u1" || cluster.Spec.Paused == nil || !*cluster.Spec.Paused {
		t.Errorf("the Cluster is %+v", cluster)
	}
	if machineSet.Spec.Deletion.Order != "Oldest" {
		t.Errorf("the MachineSet is %+v", machineSet)
	}
}

// hostile are objects that cannot be converted, and what the error has.
func hostile() map[string]string {
	deep := func(levels int) string { return strings.Repeat(`{"a":`, levels) + `1` + strings.Repeat(`}`, levels) }
	class := func(value string) string {
		return `{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Cluster","metadata":{"name":"c"},"spec":{"topology":{"class":"q","version":"v1.30.0",
			"variables":[{"name":"v","value":` + value + `}]}}}`
	}
	return map[string]string{
		`null`:           "parsing the object",
		`[]`:             "parsing the object",
		`"x"`:            "parsing the object",
		`{}`:             "kind is not supported",
		class(`1e999`):   "parsing the object",
		class(deep(600)): "levels",
		class(strings.Repeat("[", 9000) + strings.Repeat("]", 9000)):                           "levels",
		`{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Cluster","metadata":7}`:              "metadata is not an object",
		`{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Cluster","metadata":{},"spec":[]}`:   "converting",
		`{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Cluster","metadata":{},"spec":"x"}`:  "converting",
		`{"apiVersion":"cluster.x-k8s.io/v1alpha3","kind":"Cluster","metadata":{"name":"c"}}`:  "kind is not supported",
		`{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"ConfigMap","metadata":{"name":"c"}}`: "kind is not supported",
		`{"apiVersion":"a/b/c","kind":"Cluster","metadata":{"name":"c"}}`:                      "kind is not supported",
		`{"apiVersion":"ipam.cluster.x-k8s.io/v1beta1","kind":"IPAddress","metadata":{}}`:      "kind is not supported",
	}
}

// What cannot be converted fails its request with the reason, and no other one.
func TestWebhookHostileObjects(t *testing.T) {
	handler := New(nil).Webhook()
	for object, want := range hostile() {
		response, code := post(t, handler, reviewOf(v1beta2, paused, object))
		if code != http.StatusOK || response.Result.Status != metav1.StatusFailure || len(response.ConvertedObjects) != 0 ||
			!strings.Contains(response.Result.Message, "object 2 of 2") || !strings.Contains(response.Result.Message, want) {
			t.Errorf("%.200s: %d %+v, want %q", object, code, response, want)
		}
		if response != nil && len(response.Result.Message) > maxMessage {
			t.Errorf("%.200s: the message has %d bytes", object, len(response.Result.Message))
		}
	}
	if response, _ := post(t, handler, reviewOf(v1beta2, paused)); response.Result.Status != metav1.StatusSuccess {
		t.Errorf("the next object: %+v", response.Result)
	}
	for _, desired := range []string{"", "a/b/c", "cluster.x-k8s.io/v1alpha3", "v1"} {
		if response, _ := post(t, handler, reviewOf(desired, paused)); response.Result.Status != metav1.StatusFailure {
			t.Errorf("to %q: %+v", desired, response.Result)
		}
	}
}

// Annotations that were not written by a conversion do not make objects unreadable.
func TestWebhookForeignAnnotations(t *testing.T) {
	handler := New(nil).Webhook()
	for _, data := range []string{
		"", "null", "{", "[]", `{"spec":7}`, `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","spec":{"topology":[]}}`,
		strings.Repeat(`{"spec":`, 5000) + "1" + strings.Repeat("}", 5000),
		`{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Cluster","status":{"failureDomains":{"a":{}}}}`,
		strings.Repeat("x", 200<<10),
	} {
		for _, name := range []string{"cluster.x-k8s.io/conversion-data", "conversion.cluster.x-k8s.io/older-version"} {
			for from, to := range map[string]string{v1beta1: v1beta2, v1beta2: v1beta1} {
				object := fmt.Sprintf(`{"apiVersion":%q,"kind":"Cluster","metadata":{"name":"c","annotations":{%q:%q}},"spec":{"paused":true}}`, from, name, data)
				response, _ := post(t, handler, reviewOf(to, object))
				if response.Result.Status != metav1.StatusSuccess || !strings.Contains(string(response.ConvertedObjects[0].Raw), `"paused":true`) {
					t.Errorf("%s %.50s: %+v", name, data, response.Result)
				}
			}
		}
	}
}

// An object with as many items as fit is converted in a time that grows with its size only.
func TestWebhookHugeObject(t *testing.T) {
	var list []string
	for i := range 20000 {
		list = append(list, fmt.Sprintf(`{"name":"v%d","definitionFrom":"x","value":{"a":[{},null,""]}}`, i))
	}
	object := `{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Cluster","metadata":{"name":"c"},"spec":{"topology":{"class":"q","version":"v1.30.0",
		"variables":[` + strings.Join(list, ",") + `]}}}`
	start := time.Now()
	response, _ := post(t, New(nil).Webhook(), reviewOf(v1beta2, object))
	if response.Result.Status != metav1.StatusSuccess {
		t.Errorf("%+v", response.Result)
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("converting %d bytes took %s", len(object), took)
	}
}

func TestWebhookRequests(t *testing.T) {
	handler := New(nil).Webhook()
	for body, want := range map[string]int{
		"": http.StatusBadRequest, "{}": http.StatusBadRequest, "[": http.StatusBadRequest,
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}`:                   http.StatusBadRequest,
		`{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"ConversionReview","request":{}}`: http.StatusBadRequest,
		strings.Repeat(" ", maxReview+1):                                                       http.StatusRequestEntityTooLarge,
	} {
		if _, code := post(t, handler, []byte(body)); code != want {
			t.Errorf("%.50s: status %d, want %d", body, code, want)
		}
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, Path, nil))
	if recorder.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: status %d", recorder.Code)
	}
}

// specOf returns the spec of an object.
func specOf(t *testing.T, object string) any {
	t.Helper()
	tree := map[string]any{}
	if err := json.Unmarshal([]byte(object), &tree); err != nil {
		t.Fatal(err)
	}
	return tree["spec"]
}

// Whatever an object is, the webhook answers; what it converts, it converts back to what it converts to the same again.
func FuzzWebhook(f *testing.F) {
	for object := range hostile() {
		if len(object) < 1000 {
			f.Add(object, v1beta2)
		}
	}
	f.Add(paused, v1beta2)
	registry := New(nil)
	for _, kind := range registry.Kinds() {
		hub, _ := registry.Hub(kind)
		for _, version := range registry.Versions(kind) {
			f.Add(fmt.Sprintf(`{"apiVersion":"%s/%s","kind":%q,"metadata":{"name":"a","annotations":{"cluster.x-k8s.io/conversion-data":"{\"spec\":{\"paused\":false}}"}},
				"spec":{"template":{"spec":{"files":[{"path":"/a"}]}},"topology":{"variables":[{"name":"v","value":{}}]}},"status":{"ready":true}}`,
				kind.Group, version, kind.Kind), kind.Group+"/"+hub)
		}
	}
	handler := registry.Webhook()
	f.Fuzz(func(t *testing.T, object, desired string) {
		if !json.Valid([]byte(object)) {
			return
		}
		response, _ := post(t, handler, reviewOf(desired, object))
		if response == nil || response.Result.Status != metav1.StatusSuccess {
			if response != nil && strings.Contains(response.Result.Message, "panicked") {
				t.Error(response.Result.Message)
			}
			return
		}
		from := metav1.TypeMeta{}
		if err := json.Unmarshal([]byte(object), &from); err != nil {
			t.Fatal(err)
		}
		once := string(response.ConvertedObjects[0].Raw)
		back, _ := post(t, handler, reviewOf(from.APIVersion, once))
		if back.Result.Status != metav1.StatusSuccess {
			t.Fatalf("back: %s", back.Result.Message)
		}
		again, _ := post(t, handler, reviewOf(desired, string(back.ConvertedObjects[0].Raw)))
		if again.Result.Status != metav1.StatusSuccess {
			t.Fatalf("again: %s", again.Result.Message)
		}
		if diff := cmp.Diff(specOf(t, once), specOf(t, string(again.ConvertedObjects[0].Raw))); diff != "" {
			t.Errorf("the spec has changed (-first +second):\n%s", diff)
		}
	})
}
