package access_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"

	"sigs.k8s.io/cluster-api/sdk/manager/internal/access"
)

// reviewer is an API server that knows alice, who is in the group staff, and bob. Staff may read metrics.
type reviewer struct {
	broken, failing atomic.Bool // fails all requests, or authenticates no token
	tokens, access  atomic.Int32
}

func (a *reviewer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if a.broken.Load() {
		http.Error(w, "{}", http.StatusForbidden)
		return
	}
	switch r.URL.Path {
	case "/apis/authentication.k8s.io/v1/tokenreviews":
		a.tokens.Add(1)
		review := &authenticationv1.TokenReview{}
		_ = json.NewDecoder(r.Body).Decode(review)
		users := map[string]authenticationv1.UserInfo{
			"alices": {Username: "alice", UID: "1", Groups: []string{"staff"}, Extra: map[string]authenticationv1.ExtraValue{"shoe": {"left"}}},
			"bobs":   {Username: "bob"},
		}
		review.Status.User, review.Status.Authenticated = users[review.Spec.Token], users[review.Spec.Token].Username != "" && !a.failing.Load()
		_ = json.NewEncoder(w).Encode(review)
	case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
		a.access.Add(1)
		review := &authorizationv1.SubjectAccessReview{}
		_ = json.NewDecoder(r.Body).Decode(review)
		staff := authorizationv1.SubjectAccessReviewSpec{
			User: "alice", UID: "1", Groups: []string{"staff"}, Extra: map[string]authorizationv1.ExtraValue{"shoe": {"left"}},
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: "get", Path: "/metrics"},
		}
		review.Status.Allowed = cmp.Equal(staff, review.Spec)
		_ = json.NewEncoder(w).Encode(review)
	}
}

type world struct {
	api     *reviewer
	clock   *testingclock.FakeClock
	handler http.Handler
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{api: &reviewer{}, clock: testingclock.NewFakeClock(time.Unix(1, 0))}
	server := httptest.NewServer(w.api)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	guard, err := access.New(config, server.Client(), w.clock, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	w.handler = guard.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	return w
}

func (w *world) ask(method, path, authorization string) int {
	return w.askFrom("192.0.2.1:1234", method, path, authorization)
}

func (w *world) askFrom(address, method, path, authorization string) int {
	answer, request := httptest.NewRecorder(), httptest.NewRequest(method, path, nil)
	request.RemoteAddr = address
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	w.handler.ServeHTTP(answer, request)
	return answer.Code
}

func TestProtect(t *testing.T) {
	tests := map[string]struct {
		reason                      string
		method, path, authorization string
		broken                      bool
		want                        int
	}{
		"allowed":        {"the API server allows it, for this user with groups and extra fields", "GET", "/metrics", "Bearer alices", false, 204},
		"query":          {"permission is for the path", "GET", "/metrics?name[]=a", "Bearer alices", false, 204},
		"scheme's case":  {"the scheme has no case", "GET", "/metrics", "bearer alices", false, 204},
		"other path":     {"permission for one path is none for another", "GET", "/debug/pprof/heap", "Bearer alices", false, 403},
		"other method":   {"to read is not to write", "PUT", "/metrics", "Bearer alices", false, 403},
		"other user":     {"a user who may not", "GET", "/metrics", "Bearer bobs", false, 403},
		"forged":         {"an unknown token", "GET", "/metrics", "Bearer forged", false, 401},
		"none":           {"anonymous requests are rejected", "GET", "/metrics", "", false, 401},
		"empty":          {"an empty token is none", "GET", "/metrics", "Bearer ", false, 401},
		"password":       {"only tokens are understood", "GET", "/metrics", "Basic alices", false, 401},
		"no API server":  {"what cannot be decided is not allowed", "GET", "/metrics", "Bearer alices", true, 500},
		"forged, broken": {"tokens cannot be reviewed without an API server", "GET", "/metrics", "Bearer forged", true, 500},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.api.broken.Store(tt.broken)
			for range 2 { // An answer that is remembered is the same.
				if got := w.ask(tt.method, tt.path, tt.authorization); got != tt.want {
					t.Errorf("%s: got %d, want %d", tt.reason, got, tt.want)
				}
			}
		})
	}
}

func TestRemembers(t *testing.T) {
	w := newWorld(t)
	asked := func() [2]int32 { return [2]int32{w.api.tokens.Load(), w.api.access.Load()} }
	steps := []struct {
		reason string
		after  time.Duration
		token  string
		want   int
		asked  [2]int32
	}{
		{"who is new is looked up", 0, "alices", 204, [2]int32{1, 1}},
		{"who asks again is known", 50 * time.Second, "alices", 204, [2]int32{1, 1}},
		{"a token may be revoked", 11 * time.Second, "alices", 204, [2]int32{2, 1}},
		{"permissions may be revoked", 5 * time.Minute, "alices", 204, [2]int32{3, 2}},
		{"a forged token is looked up", 0, "forged", 401, [2]int32{4, 2}},
		{"and again: the review may have failed on the way", time.Second, "forged", 401, [2]int32{5, 2}},
		{"who may not is looked up", 0, "bobs", 403, [2]int32{6, 3}},
		{"and may be granted at any time", time.Second, "bobs", 403, [2]int32{6, 4}},
	}
	for _, s := range steps {
		w.clock.Step(s.after)
		if got := w.ask(http.MethodGet, "/metrics", "Bearer "+s.token); got != s.want || asked() != s.asked {
			t.Errorf("%s: got %d after %v reviews of tokens and access, want %d after %v", s.reason, got, asked(), s.want, s.asked)
		}
	}
}

func TestFailuresAreNotRemembered(t *testing.T) {
	w := newWorld(t)
	w.api.broken.Store(true)
	if got := w.ask(http.MethodGet, "/metrics", "Bearer alices"); got != 500 {
		t.Fatalf("got %d, want 500", got)
	}
	w.api.broken.Store(false)
	if got := w.ask(http.MethodGet, "/metrics", "Bearer alices"); got != 204 {
		t.Errorf("got %d, want 204: the API server answers again", got)
	}
}

// A failed authenticator of the API server responds as if the token was unknown.
func TestFailedReviewsAreNotRemembered(t *testing.T) {
	w := newWorld(t)
	w.api.failing.Store(true)
	if got := w.ask(http.MethodGet, "/metrics", "Bearer alices"); got != 401 {
		t.Fatalf("got %d, want 401", got)
	}
	w.api.failing.Store(false)
	if got := w.ask(http.MethodGet, "/metrics", "Bearer alices"); got != 204 {
		t.Errorf("got %d, want 204: the authenticator works again", got)
	}
}

// Forged tokens do not block users with valid tokens, and cause few requests.
func TestFlood(t *testing.T) {
	w := newWorld(t)
	if got := w.ask(http.MethodGet, "/metrics", "Bearer alices"); got != 204 {
		t.Fatalf("got %d, want 204", got)
	}
	w.clock.Step(2 * time.Minute) // Her token must be reviewed again.
	before := w.api.tokens.Load()
	answers := map[int]int{}
	for i := range 1000 {
		answers[w.ask(http.MethodGet, "/metrics", "Bearer made-up-"+strconv.Itoa(i))]++
	}
	if diff := cmp.Diff(map[int]int{401: 20, 429: 980}, answers); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if got := w.ask(http.MethodGet, "/metrics", "Bearer alices"); got != 204 {
		t.Errorf("got %d, want 204: she was known before the flood", got)
	}
	if reviews := w.api.tokens.Load() - before; reviews != 21 {
		t.Errorf("the API server had to review %d tokens", reviews)
	}
}

// TestFloodFromElsewhere: a scraper gets a new token every hour, which is as unknown as a forged one.
func TestFloodFromElsewhere(t *testing.T) {
	for _, c := range []struct {
		reason, flood, scraper string
		want                   int
	}{
		{"another address", "192.0.2.1:%d", "192.0.2.2:1234", 204},
		{"another network", "[2001:db8::1]:%d", "[2001:db8:0:1::1]:1234", 204},
		{"another port of the same address does not matter", "192.0.2.1:%d", "192.0.2.1:9", 429},
		{"a host has any address of its network", "[2001:db8::%x]:1", "[2001:db8::ffff:1]:1", 429},
		{"an address is the same however it is written", "[::ffff:192.0.2.1]:%d", "192.0.2.1:9", 429},
		{"what is no address is one place", "pipe-%d", "@", 429},
	} {
		w := newWorld(t)
		for i := 1; i <= 1000; i++ {
			w.askFrom(fmt.Sprintf(c.flood, i), http.MethodGet, "/metrics", "Bearer made-up-"+strconv.Itoa(i))
		}
		if reviews := w.api.tokens.Load(); reviews != 20 {
			t.Errorf("%s: the API server had to review %d tokens, want 20", c.reason, reviews)
		}
		if got := w.askFrom(c.scraper, http.MethodGet, "/metrics", "Bearer alices"); got != c.want {
			t.Errorf("%s: got %d, want %d", c.reason, got, c.want)
		}
	}
}

// A user who requests missing paths does not evict permissions.
func TestDenialsAreNotRemembered(t *testing.T) {
	w := newWorld(t)
	if got := w.ask(http.MethodGet, "/metrics", "Bearer alices"); got != 204 {
		t.Fatalf("got %d, want 204", got)
	}
	for i := range 1000 {
		if got := w.ask(http.MethodGet, "/"+strconv.Itoa(i), "Bearer bobs"); got != 403 {
			t.Fatalf("got %d, want 403", got)
		}
	}
	before := w.api.access.Load()
	if got := w.ask(http.MethodGet, "/metrics", "Bearer alices"); got != 204 || w.api.access.Load() != before {
		t.Errorf("got %d after %d more reviews, want 204 after none", got, w.api.access.Load()-before)
	}
}
