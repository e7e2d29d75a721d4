package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func directory(t *testing.T) (*Directory, string) {
	t.Helper()
	dir := t.TempDir()
	store, err := NewDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store, dir
}

func TestModes(t *testing.T) {
	store, dir := directory(t)
	put(t, store, "ns/c1/a", "x")
	got := map[string]string{}
	for _, name := range []string{"ns", "ns/c1", "ns/c1/a", incomplete} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got[name] = info.Mode().String()
	}
	want := map[string]string{"ns": "drwx------", "ns/c1": "drwx------", "ns/c1/a": "-rw-------", incomplete: "drwx------"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestLinks has symbolic links and other files in the directory that lead elsewhere, or would block.
func TestLinks(t *testing.T) {
	store, dir := directory(t)
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"folder": outside, "file": secret, "relative": "../" + filepath.Base(outside)} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"folder/secret", "file", "relative/secret", "pipe", "folder"} {
		if content, err := store.Get(t.Context(), key); err == nil {
			content.Close()
			t.Errorf("%s can be read", key)
		}
	}
	for _, key := range []string{"folder/new", "relative/new"} {
		if err := store.Put(t.Context(), key, strings.NewReader("x")); err == nil {
			t.Errorf("%s can be written", key)
		}
		if err := store.Delete(t.Context(), strings.ReplaceAll(key, "new", "secret")); err == nil {
			t.Errorf("%s can be deleted", key)
		}
	}
	if all := keys(t, store, ""); len(all) > 0 {
		t.Errorf("listed: %q", all)
	}
	// A link in the place of an object is replaced, and deleted, itself.
	put(t, store, "file", "new")
	if got := string(get(t, store, "file")); got != "new" {
		t.Errorf("got %q", got)
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("outside: %v, %v", entries, err)
	}
	if content, err := os.ReadFile(secret); err != nil || string(content) != "secret" {
		t.Errorf("the file outside has %q, %v", content, err)
	}
}

func TestKeyBelowAnObject(t *testing.T) {
	store, dir := directory(t)
	put(t, store, "a", "x")
	if err := store.Put(t.Context(), "a/b", strings.NewReader("x")); err == nil ||
		err.Error() != "storing a/b: a part of its key is the key of another object" {
		t.Errorf("got %v", err)
	}
	if _, err := store.Get(t.Context(), "a/b"); !errors.Is(err, ErrNotFound) {
		t.Errorf("reading: %v", err)
	}
	if err := store.Delete(t.Context(), "a/b"); err != nil {
		t.Errorf("deleting: %v", err)
	}
	put(t, store, "folder/b", "x")
	if err := store.Put(t.Context(), "folder", strings.NewReader("x")); err == nil {
		t.Error("a folder is replaced")
	}
	if err := store.Delete(t.Context(), "folder"); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, incomplete))
	if err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if diff := cmp.Diff([]string{"a", "folder/b"}, keys(t, store, "")); diff != "" {
		t.Error(diff)
	}
}

func TestNoDirectory(t *testing.T) {
	if _, err := NewDirectory(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, ErrNoBucket) {
		t.Errorf("got %v", err)
	}
	store, dir := directory(t)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := store.Put(t.Context(), "a", strings.NewReader("x")); !errors.Is(err, ErrNoBucket) {
		t.Errorf("Put after the directory was deleted: %v", err)
	}
	if err := store.Check(t.Context()); !errors.Is(err, ErrNoBucket) {
		t.Errorf("Check after the directory was deleted: %v", err)
	}
}

func TestErrorsOfFileSystems(t *testing.T) {
	tests := []struct {
		errno syscall.Errno
		want  string
	}{
		{syscall.ENOSPC, "full"},
		{syscall.EDQUOT, "full"},
		{syscall.EFBIG, "full"},
		{syscall.EACCES, "credentials"},
		{syscall.EPERM, "credentials"},
		{syscall.EROFS, "credentials"},
		{syscall.ENOENT, "not found"},
		{syscall.EIO, ""},
	}
	for _, tc := range tests {
		err := typeOf(fmt.Errorf("storing: %w", &fs.PathError{Op: "write", Path: "a", Err: tc.errno}))
		if kind(err) != tc.want || (tc.want != "not found" && !errors.Is(err, tc.errno)) {
			t.Errorf("%s: %v, want %q", tc.errno, err, tc.want)
		}
	}
}

func TestCleanDirectory(t *testing.T) {
	store, dir := directory(t)
	if err := store.Clean(t.Context(), time.Now()); err != nil {
		t.Errorf("before the first upload: %v", err)
	}
	put(t, store, "a", "x")
	for name, age := range map[string]time.Duration{"old": 2 * time.Hour, "recent": 0} {
		file := filepath.Join(dir, incomplete, name)
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Clean(t.Context(), time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, incomplete))
	if err != nil || len(entries) != 1 || entries[0].Name() != "recent" {
		t.Errorf("left: %v, %v", entries, err)
	}
	if diff := cmp.Diff([]string{"a"}, keys(t, store, "")); diff != "" {
		t.Error(diff)
	}
}

func TestDirectoryHasNoURLs(t *testing.T) {
	store, _ := directory(t)
	if _, err := store.URL(t.Context(), "a", time.Hour); !errors.Is(err, ErrNoURL) {
		t.Errorf("got %v", err)
	}
}
