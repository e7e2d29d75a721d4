package cache_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/internal/cache"
)

func open(t *testing.T, dir string) *cache.Cache {
	t.Helper()
	c, err := cache.Open(dir, func() { t.Error("the cache is in use") })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestFile(t *testing.T) {
	c, builds := open(t, t.TempDir()), 0
	build := func(_ context.Context, path string) error {
		builds++
		return os.WriteFile(path, []byte("built"), 0o644)
	}
	steps := []struct {
		reason string
		inputs any
		builds int
	}{
		{reason: "the first time builds", inputs: []string{"v1"}, builds: 1},
		{reason: "the same inputs do not build", inputs: []string{"v1"}, builds: 1},
		{reason: "other inputs build", inputs: []string{"v2"}, builds: 2},
		{reason: "the earlier file is gone", inputs: []string{"v1"}, builds: 3},
	}
	for _, step := range steps {
		path, err := c.File(t.Context(), "program", step.inputs, build)
		if err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}
		if content, err := os.ReadFile(path); err != nil || string(content) != "built" {
			t.Errorf("%s: got %q, %v", step.reason, content, err)
		}
		if builds != step.builds {
			t.Errorf("%s: built %d times, want %d", step.reason, builds, step.builds)
		}
	}
}

func TestFileThatFails(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	failure := errors.New("failed")
	_, err := c.File(t.Context(), "program", 1, func(_ context.Context, path string) error {
		return errors.Join(os.WriteFile(path, []byte("half"), 0o644), failure)
	})
	if !errors.Is(err, failure) {
		t.Fatalf("got %v, want %v", err, failure)
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "program", "*")); len(found) > 0 {
		t.Errorf("a file that was not finished must not be in the cache, got %v", found)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
	if _, err := os.Stat(filepath.Join(dir, "unfinished")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("opening the cache removes what was not finished, got %v", err)
	}
}

func TestOpenWaits(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir)
	busy, opened := make(chan struct{}), make(chan error)
	go func() {
		second, err := cache.Open(dir, func() { close(busy) })
		if err == nil {
			err = second.Close()
		}
		opened <- err
	}()
	<-busy
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Error(err)
	}
}
