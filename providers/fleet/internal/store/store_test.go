package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/minio/minio-go/v7"
)

// implementations are the stores that all tests of this file run over. leftovers returns what is in the store although no object shows it.
func implementations(t *testing.T, test func(t *testing.T, store Store, leftovers func() []string)) {
	t.Helper()
	t.Run("S3", func(t *testing.T) {
		server := newServer(t)
		store := server.store(t, nil)
		test(t, store, func() []string {
			var uploads []string
			for upload := range store.client.ListIncompleteUploads(context.WithoutCancel(t.Context()), bucket, "", true) {
				if minio.ToErrorResponse(upload.Err).Code == "NoSuchUpload" {
					return nil // how gofakes3 reports that there are none
				}
				if upload.Err != nil {
					t.Fatal(upload.Err)
				}
				uploads = append(uploads, upload.Key)
			}
			return uploads
		})
	})
	t.Run("Directory", func(t *testing.T) {
		dir := t.TempDir()
		store, err := NewDirectory(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		test(t, store, func() []string {
			entries, err := os.ReadDir(filepath.Join(dir, incomplete))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			var names []string
			for _, entry := range entries {
				names = append(names, entry.Name())
			}
			return names
		})
	})
}

// keys returns the sorted keys with a prefix.
func keys(t *testing.T, store Store, prefix string) []string {
	t.Helper()
	var all []string
	if err := store.List(context.WithoutCancel(t.Context()), prefix, func(e Entry) error {
		all = append(all, e.Key)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

func put(t *testing.T, store Store, key, content string) {
	t.Helper()
	if err := store.Put(t.Context(), key, strings.NewReader(content)); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, store Store, key string) []byte {
	t.Helper()
	content, err := store.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	all, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestObjects(t *testing.T) {
	implementations(t, func(t *testing.T, store Store, leftovers func() []string) {
		start := time.Now().Add(-2 * time.Second)
		for _, size := range []int{0, 1, partSize - 1, partSize, partSize + 1, 2*partSize + 5} {
			want := make([]byte, size)
			random := rand.NewChaCha8([32]byte{byte(size)})
			_, _ = random.Read(want)
			// A reader that returns little at a time, and one that returns io.EOF with the last bytes.
			for _, content := range []io.Reader{iotest.HalfReader(bytes.NewReader(want)), iotest.DataErrReader(bytes.NewReader(want))} {
				if err := store.Put(t.Context(), "ns/c1/a", content); err != nil {
					t.Fatal(err)
				}
				if got := get(t, store, "ns/c1/a"); !bytes.Equal(got, want) {
					t.Errorf("got %d bytes that differ, want %d", len(got), size)
				}
			}
			if err := store.List(t.Context(), "", func(e Entry) error {
				if e.Key != "ns/c1/a" || e.Size != int64(size) || e.Modified.Before(start) {
					t.Errorf("listed %+v, want %d bytes", e, size)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // The second time there is none.
			if err := store.Delete(t.Context(), "ns/c1/a"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := store.Get(t.Context(), "ns/c1/a"); !errors.Is(err, ErrNotFound) {
			t.Errorf("reading what was deleted: %v", err)
		}
		if all := keys(t, store, ""); len(all) > 0 || len(leftovers()) > 0 {
			t.Errorf("left: %q, %q", all, leftovers())
		}
	})
}

func TestAbortedUploads(t *testing.T) {
	broken := errors.New("etcd has closed the stream")
	tests := []struct {
		reason string
		before int // bytes of the content before the error
	}{
		{"content that cannot be read at all", 0},
		{"content that ends in the first part", 100},
		{"content that ends in a later part", 2*partSize + 100},
		{"content that ends between parts", partSize},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			implementations(t, func(t *testing.T, store Store, leftovers func() []string) {
				put(t, store, "other", "x")
				for _, cause := range []error{broken, io.ErrUnexpectedEOF, ErrNotFound} {
					content := io.MultiReader(bytes.NewReader(make([]byte, tc.before)), iotest.ErrReader(cause))
					err := store.Put(t.Context(), "a", content)
					if !errors.Is(err, cause) || err.Error() != "storing a: "+cause.Error() {
						t.Errorf("got %v, want %v", err, cause)
					}
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				stop := errors.New("the backup was deleted")
				content := io.MultiReader(bytes.NewReader(make([]byte, tc.before)), readerFunc(func(p []byte) (int, error) {
					cancel(stop)
					return len(p), nil
				}))
				if err := store.Put(ctx, "a", content); !errors.Is(err, stop) {
					t.Errorf("canceled: %v", err)
				}
				if diff := cmp.Diff([]string{"other"}, keys(t, store, "")); diff != "" || len(leftovers()) > 0 {
					t.Errorf("leftovers %q, objects: %s", leftovers(), diff)
				}
			})
		})
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestVisibleWhenComplete(t *testing.T) {
	implementations(t, func(t *testing.T, store Store, _ func() []string) {
		put(t, store, "a", "old")
		looked := 0
		look := func([]byte) (int, error) {
			looked++
			if got := string(get(t, store, "a")); got != "old" {
				t.Errorf("during an upload the object is %q", got)
			}
			if diff := cmp.Diff([]string{"a"}, keys(t, store, "")); diff != "" {
				t.Error(diff)
			}
			return 0, io.EOF
		}
		for _, key := range []string{"a", "b"} {
			content := io.MultiReader(bytes.NewReader(make([]byte, partSize+1)), readerFunc(look))
			if err := store.Put(t.Context(), key, content); err != nil {
				t.Fatal(err)
			}
			put(t, store, "a", "old")
		}
		if looked != 2 {
			t.Errorf("looked %d times", looked)
		}
	})
}

func TestList(t *testing.T) {
	implementations(t, func(t *testing.T, store Store, _ func() []string) {
		for _, key := range []string{"a/1", "a/b/2", "ab/3", "b", "a-b/4"} {
			put(t, store, key, key)
		}
		tests := []struct {
			reason, prefix string
			want           []string
		}{
			{"all", "", []string{"a-b/4", "a/1", "a/b/2", "ab/3", "b"}},
			{"a prefix that ends within a part", "a", []string{"a-b/4", "a/1", "a/b/2", "ab/3"}},
			{"a folder", "a/", []string{"a/1", "a/b/2"}},
			{"a key", "a/b/2", []string{"a/b/2"}},
			{"nothing", "c", nil},
		}
		for _, tc := range tests {
			if diff := cmp.Diff(tc.want, keys(t, store, tc.prefix)); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		}
		stop := fmt.Errorf("enough: %w", os.ErrNotExist)
		calls := 0
		err := store.List(t.Context(), "", func(Entry) error { calls++; return stop })
		if !errors.Is(err, stop) || errors.Is(err, ErrNotFound) || calls != 1 {
			t.Errorf("after %d calls: %v", calls, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := store.List(ctx, "", func(Entry) error { return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("with a context that has ended: %v", err)
		}
	})
}

func TestManyObjects(t *testing.T) {
	implementations(t, func(t *testing.T, store Store, _ func() []string) {
		var want []string
		for i := range 1100 { // more than a page
			want = append(want, fmt.Sprintf("ns/c%04d", i))
			put(t, store, want[i], "")
		}
		if diff := cmp.Diff(want, keys(t, store, "ns/")); diff != "" {
			t.Error(diff)
		}
	})
}

func TestInvalidKeys(t *testing.T) {
	implementations(t, func(t *testing.T, store Store, _ func() []string) {
		for _, key := range []string{
			"", ".", "..", "../a", "a/../../b", "/a", "a/", "a//b", "a\\b", "a\x00", "a b", "ä", ".check-1", "a/.hidden",
			strings.Repeat("a/", 300) + "a", strings.Repeat("a", 256),
		} {
			want := fmt.Sprintf("invalid key %q of an object", key)
			errs := []error{store.Put(t.Context(), key, strings.NewReader("")), store.Delete(t.Context(), key)}
			_, err := store.Get(t.Context(), key)
			errs = append(errs, err)
			_, err = store.URL(t.Context(), key, time.Hour)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("URL: %v", err)
			}
			for _, err := range errs {
				if err == nil || err.Error() != want {
					t.Errorf("got %v, want %s", err, want)
				}
			}
		}
	})
}

func TestCheck(t *testing.T) {
	implementations(t, func(t *testing.T, store Store, leftovers func() []string) {
		for range 2 { // The second time there is an object.
			if err := store.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			put(t, store, "a", "")
		}
		if diff := cmp.Diff([]string{"a"}, keys(t, store, "")); diff != "" || len(leftovers()) > 0 {
			t.Errorf("leftovers %q, objects: %s", leftovers(), diff)
		}
	})
}
