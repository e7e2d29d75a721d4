package root

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/packages/repository"
)

func TestMessage(t *testing.T) {
	tests := map[string]struct{ reason, current, latest, want string }{
		"Newer":     {reason: "A newer patch release is reported.", current: "v1.7.0", latest: "v1.7.2", want: "New clusterctl version available: v1.7.0 -> v1.7.2\npage"},
		"Same":      {reason: "The same one is not.", current: "v1.7.2", latest: "v1.7.2"},
		"Older":     {reason: "An older one is not.", current: "v1.7.3", latest: "v1.7.2"},
		"Minor":     {reason: "Another minor version is not.", current: "v1.6.0", latest: "v1.7.2"},
		"Dirty":     {reason: "Builds with local changes are ignored.", current: "v1.7.0-dirty", latest: "v1.7.2"},
		"Described": {reason: "Builds on top of the latest tag are newer than it.", current: "v1.7.2-3-gabcdef0", latest: "v1.7.2"},
		"OldBuild":  {reason: "Builds on top of an older tag get the message.", current: "v1.7.1-3-gabcdef0", latest: "v1.7.2", want: "New clusterctl version available: v1.7.1-3-gabcdef0 -> v1.7.2\npage"},
		"Candidate": {reason: "A release follows its candidates.", current: "v1.7.2-rc.0", latest: "v1.7.2", want: "New clusterctl version available: v1.7.2-rc.0 -> v1.7.2\npage"},
		"Unknown":   {reason: "An invalid version is ignored.", current: "unknown", latest: "v1.7.2"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := (&checker{Current: tc.current}).message(seenRelease{Version: tc.latest, URL: "page"})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nmessage(): -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestStart(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path != "/sigs.k8s.io/cluster-api/@v/list" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintln(w, "v1.7.1\nv1.7.2\nv1.8.0-rc.0")
	}))
	defer server.Close()
	now := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	c := &checker{
		Current: "v1.7.0", Dir: filepath.Join(t.TempDir(), "cluster-api"), Now: func() time.Time { return now },
		Store: repository.NewStore(repository.Options{GoProxy: server.URL, GitHub: "https://github.example", RetryTimeout: time.Minute, RetryInterval: time.Millisecond}),
	}
	want := "New clusterctl version available: v1.7.0 -> v1.7.2\nhttps://github.example/kubernetes-sigs/cluster-api/releases/tag/v1.7.2"
	for range 2 {
		if got := c.Start(t.Context())(time.Minute); got != want {
			t.Errorf("want %q, got %q", want, got)
		}
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("the second run must use the first one's answer (two pages), but %d pages were read", n)
	}
	raw, err := os.ReadFile(filepath.Join(c.Dir, "version.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	wantState := "LastCheck: \"2024-05-01T12:00:00Z\"\nLatestRelease:\n  URL: https://github.example/kubernetes-sigs/cluster-api/releases/tag/v1.7.2\n  Version: v1.7.2\n"
	if diff := cmp.Diff(wantState, string(raw)); diff != "" {
		t.Errorf("state: -want +got:\n%s", diff)
	}

	server.Close()
	now = now.Add(25 * time.Hour)
	c.Store = repository.NewStore(repository.Options{GoProxy: server.URL, GitHubAPI: server.URL, RetryTimeout: time.Millisecond, RetryInterval: time.Millisecond})
	if got := c.Start(t.Context())(time.Minute); got != "" {
		t.Errorf("without a response there is no message, got %q", got)
	}
}

func TestStartDoesNotDelay(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	c := &checker{Current: "v1.7.0", Dir: t.TempDir(), Now: time.Now, Store: repository.NewStore(repository.Options{GoProxy: server.URL})}
	if got := c.Start(t.Context())(0); got != "" {
		t.Errorf("without timeout there is no message, got %q", got)
	}
}
