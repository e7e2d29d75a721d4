package source

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/packages/repository"
	"sigs.k8s.io/cluster-api/providers/operator/internal/providerobject"
)

// server is GitHub's API with one release; while isDown is set, it fails.
func server(t *testing.T) (url string, isDown *atomic.Bool, requests *atomic.Int32) {
	t.Helper()
	isDown, requests = &atomic.Bool{}, &atomic.Int32{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		switch {
		case isDown.Load():
			w.WriteHeader(http.StatusInternalServerError)
		case strings.HasSuffix(r.URL.Path, "/releases/tags/v1.0.0"):
			fmt.Fprint(w, `{"tag_name": "v1.0.0", "assets": [{"id": 1, "name": "metadata.yaml"}, {"id": 2, "name": "infrastructure-components.yaml"}]}`)
		case strings.HasSuffix(r.URL.Path, "/releases/assets/1"):
			fmt.Fprint(w, metadataFile)
		case strings.HasSuffix(r.URL.Path, "/releases/assets/2"):
			fmt.Fprint(w, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: n}, data: {a: \"${A}\"}}")
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, isDown, requests
}

func TestFindDownloadsOnce(t *testing.T) {
	url, isDown, requests := server(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s"}}
	c := fake.NewClientBuilder().WithObjects(secret).Build()
	noEnvironment := func(string) (string, bool) { return "", false }
	now := testclock.NewFakePassiveClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	r := &Reader{Live: c, Clock: now, Config: ConfigFile("", noEnvironment), Options: repository.Options{GitHubAPI: url, SingleAttempt: true, Advice: Advice()}}
	o := &operatorv1.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "x", UID: "u", Generation: 1}}
	o.Spec = operatorv1.ProviderSpec{Version: "v1.0.0", SecretName: ptr.To("s"), FetchConfig: &operatorv1.FetchConfiguration{URL: "https://github.com/o/x/releases"}}
	p := providerobject.Provider{Type: clusterctlv1.InfrastructureProviderType, Object: o}

	isDown.Store(true)
	_, err := r.Find(t.Context(), p, nil)
	if download := (*DownloadError)(nil); !errors.As(err, &download) || requests.Load() != 1 || !strings.Contains(err.Error(), url+"/repos/o/x/releases/tags/v1.0.0: 500") {
		t.Errorf("%d requests, error %v", requests.Load(), err)
	}
	if left := r.Paused(p); left != firstPause {
		t.Errorf("after a failure, the next attempt waits for %s", left)
	}
	isDown.Store(false)
	for range 2 {
		found, err := r.Find(t.Context(), p, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = found.Components(p); err == nil || !strings.Contains(err.Error(), "spec.secretName: the components of infrastructure-x v1.0.0 need values of the variables A: Secret n/s does not have them") {
			t.Errorf("got error %v", err)
		}
	}
	if left := r.Paused(p); left > 0 {
		t.Errorf("after a success, the next attempt waits for %s", left)
	}
	if n := requests.Load(); n != 4 { // One failed; the release and its two files were read once.
		t.Errorf("%d requests", n)
	}
	secret.Data = map[string][]byte{"A": []byte("b")}
	if err := c.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	found, err := r.Find(t.Context(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	list, err := found.Components(p)
	if err != nil {
		t.Fatal(err)
	}
	if data := fmt.Sprint(list.Objects[len(list.Objects)-1].Object["data"]); data != "map[a:b]" || requests.Load() != 4 {
		t.Errorf("data %s after %d requests", data, requests.Load())
	}
	o.Generation = 2
	if _, err := r.Find(t.Context(), p, nil); err != nil || requests.Load() != 7 {
		t.Errorf("after a change of the spec: %d requests, error %v", requests.Load(), err)
	}
}
